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
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text

ROWS = 200  # rows of a table that are shown
NOTES = 5  # notes on a file that are shown


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
            label="Predict a table", on_click=lambda _: self._unfold(), variant="outlined",
            size="small", margin=0,
        )  # fmt: skip
        self._terms = text(
            f"<p class='quiet'>A file of at most {self._drop.limit // 10**6} MB, of any kind that "
            "can be uploaded, with the columns that the model was trained on"
            f"{', or a ZIP of images' * images}. "
            "It needs no target, and is not kept. The result has all of its columns, then the "
            "predictions, and a file that describes each column. For longer tables there "
            "is <code>scant predict</code>, which reads any length.</p>",
            visible=False,
        )
        self._field = column()  # holds the dropper while open: it redraws all the time
        self._message = text("", visible=False)
        self._file = download(
            page, "Download the predictions", "predictions.zip", self._content, visible=False
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
        self._say(f"Predicting {name}…", "quiet", "note")
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
        outside = (
            f" {answer.outside:,} of them lie outside the training data (column “outside”): there "
            "the model extrapolates."
            if answer.outside
            else ""
        )
        self._say(f"{name}: {answer.rows:,} rows predicted.{outside}", "", "note")
        notes = "".join(
            f"<p class='quiet' role='note'>{html.escape(n)}</p>" for n in answer.notes[:NOTES]
        )
        self._message.object += notes + _totals(answer.totals)

    def _refused(self, sentence: str) -> None:
        self._say(sentence, "error", "alert")

    def _say(self, sentence: str, kind: str, role: str) -> None:
        self._message.object = f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>"
        self._message.visible = True

    def _content(self) -> bytes:
        if self._answer is None:
            raise BadInput("There are no predictions to download any more; choose a file again.")
        return self._answer.content


def _totals(totals: pd.DataFrame | None) -> str:
    """Return predicted sums against observed totals as a collapsed table; "" for None."""
    if totals is None:
        return ""
    heads = {
        "task": "task", "place": "polygon", "parts": "parts", "observed": "observed",
        "predicted": "predicted", "std": "deviation", "inside95": "in its 95% interval",
    }  # fmt: skip
    rows = ""
    for row in totals.head(ROWS).to_dict(orient="records"):
        cells = "".join(f"<td>{html.escape(_cell(name, row[name]))}</td>" for name in heads)
        rows += f"<tr>{cells}</tr>"
    head = "".join(f"<th scope='col'>{name}</th>" for name in heads.values())
    more = (
        f"<p class='quiet'>The first {ROWS} of {len(totals):,}.</p>" if len(totals) > ROWS else ""
    )
    table = f"<div class='scroll' tabindex='0'><table><tr>{head}</tr>{rows}</table></div>"
    return (
        "<details><summary>Predicted parts against observed totals</summary>"
        f"{table}{more}</details>"
    )


def _cell(name: str, value: object) -> str:
    if name == "inside95":
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
