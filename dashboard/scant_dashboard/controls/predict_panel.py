"""*Predict a table*: predictions of the current run for files of the visitor."""

from __future__ import annotations

import html
import re

import pandas as pd
import panel_material_ui as pmui

from scant.errors import BadInput
from scant.studies.predicted_columns import FilePrediction
from scant_dashboard.controls.download import download
from scant_dashboard.controls.file_dropper import BoundedDropper
from scant_dashboard.engine_text import translated
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import later, ntr, tr

ROWS = 200  # rows of a table that are shown
NOTES = 5  # notes on a file that are shown
TABLE = later(
    "A file of at most {megabytes:,} MB, of any kind that can be uploaded, with the columns that "
    "the model was trained on."
)
IMAGES = later(
    "A file of at most {megabytes:,} MB: a ZIP of images, or a table with the columns that the "
    "model was trained on."
)
TERMS = later(
    "It needs no target, and the server does not keep it. The result has all columns of the file, "
    "then the predictions, and a file that describes each column. "
    "<code>scant predict</code> reads tables of any length."
)


class PredictPanel:
    """A button that opens a file field, and the predictions for the last file."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._answer: FilePrediction | None = None
        self._n_files = 0  # files so far: a late answer to an earlier file is dropped
        images = page.entry.table.images
        self._drop = BoundedDropper(page.visit, images, self._forget, self._dropped, self._refused)
        self._open = pmui.Button(
            label=tr("Predict a table"), on_click=lambda _: self._unfold(), variant="outlined",
            size="small", margin=0,
        )  # fmt: skip
        terms = tr(IMAGES if images else TABLE, megabytes=self._drop.limit // 10**6)
        self._terms = text(f"<p class='quiet'>{terms} {tr(TERMS)}</p>", visible=False)
        self._field = column()  # holds the dropper while open: it redraws all the time
        self._message = text("", visible=False)
        self._file = download(
            page, tr("Download the predictions"), "predictions.zip", self._content, visible=False
        )
        self.panel = column(
            self._open, self._terms, self._field, self._message, self._file,
            visible=False, css=":host { gap: 10px; }",
        )  # fmt: skip

    def open(self, run: RunState) -> None:
        """Offer predictions of this run once it has a usable model."""
        if self._run is None or self._run.id != run.id:
            self._drop.release()
            self._forget()
        self._run = run
        self.panel.visible = run.state.usable and run.report is not None

    def _unfold(self) -> None:
        opened = not self._terms.visible
        self._terms.visible = opened
        self._field.objects = [self._drop] if opened else []

    def _forget(self) -> None:
        """Discard the last predictions: another file or run has replaced them."""
        self._n_files += 1
        self._answer = None
        self._file.visible = self._message.visible = False

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files or self._run is None:  # emptied below
            return
        name, content = next(iter(files.items()))
        self._drop.value = {}
        self._forget()
        turn = self._n_files
        self._say(tr("Predicting {file}…", file=name), "quiet", "note")
        content = content.encode() if isinstance(content, str) else content
        self._page.background(
            self._page.service.predict_file(self._run.id, name, content),
            lambda answer: self._answered(name, answer) if turn == self._n_files else None,
            refused=lambda sentence: self._refused(sentence) if turn == self._n_files else None,
            last=self._drop.release,
        )

    def _answered(self, name: str, answer: FilePrediction) -> None:
        self._answer = answer
        stem = re.sub(r"[^\w-]+", "_", name.split(".")[0])[:80] or "table"
        self._file.filename, self._file.visible = f"{stem}.predictions.zip", True
        message = ntr(
            "{file}: {n:,} row predicted.", "{file}: {n:,} rows predicted.", answer.rows, file=name
        )
        if answer.outside:
            message += " " + ntr(
                "{n:,} of them lies outside the training data (column “outside”): there the model "
                "extrapolates.",
                "{n:,} of them lie outside the training data (column “outside”): there the model "
                "extrapolates.",
                answer.outside,
            )
        self._say(message, "", "note")
        notes = "".join(
            f"<p class='quiet' role='note'>{html.escape(translated(note))}</p>"
            for note in answer.notes[:NOTES]
        )
        self._message.object += notes + _totals(answer.totals)

    def _refused(self, sentence: str) -> None:
        self._say(sentence, "error", "alert")

    def _say(self, sentence: str, kind: str, role: str) -> None:
        self._message.object = (
            f"<p class='{kind}' role='{role}'>{html.escape(translated(sentence))}</p>"
        )
        self._message.visible = True

    def _content(self) -> bytes:
        if self._answer is None:
            raise BadInput(
                tr("There are no longer any predictions to download; choose a file again.")
            )
        return self._answer.content


def _totals(totals: pd.DataFrame | None) -> str:
    """Return predicted sums against observed totals as a collapsed table; "" for None."""
    if totals is None:
        return ""
    heads = {
        "task": tr("task"), "place": tr("polygon"), "parts": tr("parts"),
        "observed": tr("observed"), "predicted": tr("predicted"), "std": tr("deviation"),
        "inside95": tr("in its 95% interval"),
    }  # fmt: skip
    rows = ""
    for row in totals.head(ROWS).to_dict(orient="records"):
        cells = "".join(f"<td>{html.escape(_cell(name, row[name]))}</td>" for name in heads)
        rows += f"<tr>{cells}</tr>"
    head = "".join(f"<th scope='col'>{name}</th>" for name in heads.values())
    more = ""
    if len(totals) > ROWS:
        note = tr("The first {shown:,} of {rows:,} rows.", shown=ROWS, rows=len(totals))
        more = f"<p class='quiet'>{note}</p>"
    table = f"<div class='scroll' tabindex='0'><table><tr>{head}</tr>{rows}</table></div>"
    return (
        f"<details><summary>{tr('Predicted parts against observed totals')}</summary>"
        f"{table}{more}</details>"
    )


def _cell(name: str, value: object) -> str:
    if name == "inside95":
        return tr("yes") if value else tr("no")
    return tr("{value:.4g}", value=value) if isinstance(value, float) else str(value)
