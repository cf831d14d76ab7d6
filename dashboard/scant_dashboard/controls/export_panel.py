"""Exports of a run: its link, numbers, figures, and code that repeats it."""

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

REPLAY, REPLAY_LABEL = "replay.html", "Replay as one file"
CARDS = (f"{CARD}.html", f"{CARD}.md")

_BESIDE = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 10px; }
:host > * { width: auto !important; }
"""


class ExportPanel:
    """Permalink and downloads of the run on show."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._link = pmui.TextInput(
            label="Link to this run", value="", size="small", sizing_mode="stretch_width", margin=0
        )
        copy = pmui.Button(label="Copy link", variant="outlined", size="small", margin=0)
        copy.js_on_click(
            args={"field": self._link},
            code="navigator.clipboard.writeText(field.data.value)",
        )
        self._files = [
            self._file("Settings", "settings.json", export.settings_json),
            self._file("Metrics", "metrics.csv", export.metrics_csv),
            download(page, REPLAY_LABEL, REPLAY, self._replay),
            download(page, "Predictions", "predictions.zip", self._predictions),
            download(page, "Table", export.TABLE, self._table, visible=False),
            download(page, "Model card", CARDS[0], partial(self._card, page=True)),
            download(page, "Model card (Markdown)", CARDS[1], partial(self._card, page=False)),
            self._file("Notebook", "run.ipynb", export.notebook),
            self._file("Script", "run.py", export.script),
            self._file(
                "All figures", "figures.html", lambda run: export.figures_html(run, page.views)
            ),
        ]
        self.lesson = LessonLink(page)
        self.predict = PredictPanel(page)
        self.panel = column(
            text(
                "<p>Everyone with the link sees this run, live during training. The notebook and "
                "the script repeat the run with the <code>scant</code> package, without this "
                "server; if you uploaded a table, put the file “Table” beside them. The replay is "
                "a page that opens from disk, stands in slides, and prints. Each figure's own "
                "tools save it as PNG or SVG.</p>"
            ),
            column(self._link, copy, css=_BESIDE),
            pn.FlexBox(*self._files, gap="10px", margin=0, sizing_mode="stretch_width"),
            self.predict.panel,
            self.lesson.panel,
            css=":host { gap: 14px; }",
        )

    def open(self, run: RunState) -> None:
        """Offer what this run has come to so far."""
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

    def _on_show(self) -> RunState:
        assert self._run is not None, "files are available once a run is shown"
        return self._run

    async def _predictions(self) -> bytes:
        """The whole table of the run, predicted by its model on a worker."""
        made: bytes = await self._page.service.predictions(self._on_show().id)
        return made

    async def _replay(self) -> bytes:
        """The run as one file, made by a process beside the server."""
        return await self._page.visit.site.replays.made(self._on_show().id)

    async def _table(self) -> bytes:
        """The visitor's table as the run learned from it, read and written off the event loop."""
        upload = self._on_show().record.data.removeprefix("upload:")
        store = self._page.service.store
        return await asyncio.to_thread(lambda: export.table_csv(store.upload_table(upload)))

    async def _card(self, page: bool) -> str:
        """The run's model card, as a page of HTML or as Markdown; read off the event loop."""
        run, store = self._on_show(), self._page.service.store
        card = await asyncio.to_thread(export.card_of, run, store)
        return as_page(card) if page else card

    def _file(
        self,
        label: str,
        filename: str,
        make: Callable[[RunState], str | bytes],
        visible: bool = True,
    ) -> pmui.FileDownload:
        return download(self._page, label, filename, lambda: make(self._on_show()), visible=visible)
