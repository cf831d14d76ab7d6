"""*Predict a table*: a visitor's file, predicted by the run on show as often as they like."""

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

ROWS = 200  # of a table that are shown
NOTES = 5  # that are shown of a file


class PredictPanel:
    """A button that unfolds a field for a file, and the predictions of the last one."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._answer: FilePrediction | None = None
        self._asked = 0  # files so far: an answer that comes after another file is dropped
        images = page.entry.table.images
        self._drop = BoundedDropper(page, self._forget, self._dropped, self._refused)
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
        self._field = column()  # a dropper draws all the time that it is on a page
        self._said = text("", visible=False)
        self._file = download(
            page, "Download the predictions", "predictions.zip", self._content, visible=False
        )
        self.panel = column(
            self._open, self._terms, self._field, self._said, self._file,
            visible=False, css=":host { gap: 10px; }",
        )  # fmt: skip

    def open(self, run: RunState) -> None:
        """Offer to predict with this run, once it has left a model."""
        if self._run is None or self._run.id != run.id:
            self._drop.release()
            self._forget()
        self._run = run
        self.panel.visible = run.state.usable and run.report is not None

    def _unfold(self) -> None:
        shown = not self._terms.visible
        self._terms.visible = shown
        self._field.objects = [self._drop] if shown else []

    def _forget(self) -> None:
        """Another file begins to come, or another run is on show."""
        self._asked += 1
        self._answer = None
        self._file.visible = self._said.visible = False

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files or self._run is None:  # emptied below
            return
        name, content = next(iter(files.items()))
        self._drop.value = {}
        self._forget()
        turn = self._asked
        self._say(f"Predicting {name}…", "quiet", "note")
        content = content.encode() if isinstance(content, str) else content
        self._page.background(
            self._page.service.predict_file(self._run.id, name, content),
            lambda answer: self._answered(name, answer) if turn == self._asked else None,
            refused=lambda sentence: self._refused(sentence) if turn == self._asked else None,
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
        self._said.object += notes + _totals(answer.totals)

    def _refused(self, sentence: str) -> None:
        self._say(sentence, "error", "alert")

    def _say(self, sentence: str, kind: str, role: str) -> None:
        self._said.object = f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>"
        self._said.visible = True

    def _content(self) -> bytes:
        if self._answer is None:
            raise BadInput("There are no predictions to download any more; choose a file again.")
        return self._answer.content


def _totals(told: pd.DataFrame | None) -> str:
    """Predicted parts against observed totals as a table that unfolds; "" where there are none."""
    if told is None:
        return ""
    heads = {
        "task": "task", "place": "polygon", "parts": "parts", "observed": "observed",
        "predicted": "predicted", "std": "deviation", "inside95": "in its 95% interval",
    }  # fmt: skip
    rows = ""
    for row in told.head(ROWS).to_dict(orient="records"):
        cells = "".join(f"<td>{html.escape(_cell(name, row[name]))}</td>" for name in heads)
        rows += f"<tr>{cells}</tr>"
    head = "".join(f"<th scope='col'>{name}</th>" for name in heads.values())
    more = f"<p class='quiet'>The first {ROWS} of {len(told):,}.</p>" if len(told) > ROWS else ""
    table = f"<div class='scroll' tabindex='0'><table><tr>{head}</tr>{rows}</table></div>"
    return (
        "<details><summary>Predicted parts against observed totals</summary>"
        f"{table}{more}</details>"
    )


def _cell(name: str, value: object) -> str:
    if name == "inside95":
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
