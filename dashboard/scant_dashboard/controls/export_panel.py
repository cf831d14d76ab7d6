"""Exports of a run: link, numbers, figures, and code that repeats it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import panel as pn
import panel_material_ui as pmui

from scant.training.model_card import page as as_page
from scant.training.result_folder import CARD
from scant_dashboard import export
from scant_dashboard.controls.download import download
from scant_dashboard.controls.lesson import LessonLink
from scant_dashboard.controls.predict_panel import PredictPanel
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

REPLAY = "replay.html"
CARDS = (f"{CARD}.html", f"{CARD}.md")
HELP = later(
    "Everyone with the link sees this run, live during training. The notebook and the script "
    "repeat the run with the <code>scant</code> package, without this server; if you uploaded a "
    "table, put the file “Table” beside them. The replay is one file: open it from disk, show it "
    "in slides, or print it. The tools of each figure save it as PNG or SVG."
)

_FIELD_AND_BUTTON = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 10px; }
:host > * { width: auto !important; }
"""


class ExportPanel:
    """Permalink and downloads of the current run."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._link = pmui.TextInput(
            label=tr("Link to this run"),
            value="",
            size="small",
            sizing_mode="stretch_width",
            margin=0,
        )
        copy = pmui.Button(label=tr("Copy link"), variant="outlined", size="small", margin=0)
        copy.js_on_click(
            args={"field": self._link},
            code="navigator.clipboard.writeText(field.data.value)",
        )
        self._files = [
            self._file(tr("Settings"), "settings.json", export.settings_json),
            self._file(tr("Metrics"), "metrics.csv", export.metrics_csv),
            download(page, tr("Replay as one file"), REPLAY, self._replay),
            download(page, tr("Predictions"), "predictions.zip", self._predictions),
            download(page, tr("Table"), export.TABLE, self._table, visible=False),
            download(page, tr("Model card"), CARDS[0], partial(self._card, page=True)),
            download(page, tr("Model card (Markdown)"), CARDS[1], partial(self._card, page=False)),
            self._file(tr("Notebook"), "run.ipynb", export.notebook),
            self._file(tr("Script"), "run.py", export.script),
            self._file(
                tr("All figures"), "figures.html", lambda run: export.figures_html(run, page.views)
            ),
        ]
        self.lesson = LessonLink(page)
        self.predict = PredictPanel(page)
        self.panel = column(
            text(f"<p>{tr(HELP)}</p>"),
            column(self._link, copy, css=_FIELD_AND_BUTTON),
            pn.FlexBox(*self._files, gap="10px", margin=0, sizing_mode="stretch_width"),
            self.predict.panel,
            self.lesson.panel,
            css=":host { gap: 14px; }",
        )

    def open(self, run: RunState) -> None:
        """Offer the files that this run has so far."""
        self._run = run
        self.lesson.write()
        self.predict.open(run)
        self._link.value = self._page.link(hash=run.record.data_hash[:12] or None)
        for file in self._files:
            if file.filename == export.TABLE:
                file.visible = run.record.data.startswith("upload:")
            needs_report = file.filename in ("metrics.csv", "predictions.zip", *CARDS)
            off = needs_report and run.report is None
            off |= file.filename == REPLAY and not run.state.final
            if file.disabled != off:
                file.disabled = off

    def _current(self) -> RunState:
        assert self._run is not None, "files are available once a run is shown"
        return self._run

    async def _predictions(self) -> bytes:
        """Predict the whole table of the run on a worker."""
        made: bytes = await self._page.service.predictions(self._current().id)
        return made

    async def _replay(self) -> bytes:
        """Make the replay, as one HTML file, in a separate process."""
        return await self._page.visit.site.replays.made(self._current().id)

    async def _table(self) -> bytes:
        """Return the visitor's table as the run used it, as CSV; reads off the event loop."""
        upload = self._current().record.data.removeprefix("upload:")
        store = self._page.service.store
        return await asyncio.to_thread(lambda: export.table_csv(store.upload_table(upload)))

    async def _card(self, page: bool) -> str:
        """Return the run's model card as HTML or Markdown; reads off the event loop."""
        run, store = self._current(), self._page.service.store
        card = await asyncio.to_thread(export.card_of, run, store)
        return as_page(card) if page else card

    def _file(
        self,
        label: str,
        filename: str,
        make: Callable[[RunState], str | bytes],
        visible: bool = True,
    ) -> pmui.FileDownload:
        return download(self._page, label, filename, lambda: make(self._current()), visible=visible)
