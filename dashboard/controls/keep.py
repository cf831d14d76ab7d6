"""What a visitor takes home: the link, the numbers, the figures, and code that does it again."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui

from dashboard import export
from dashboard.controls.lesson import LessonLink
from dashboard.history import History
from dashboard.pages.place import column
from dashboard.shell import text
from engine.errors import BadInput, NotFound

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage


_PLAIN: dict[str, Any] = {"variant": "outlined", "size": "small", "margin": 0}
_BESIDE = """
:host { display: grid !important; grid-template-columns: minmax(0, 1fr) auto; gap: 10px; }
:host > * { width: auto !important; }
"""


class Keep:
    """Permalink and downloads of the run on show."""

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._run: History | None = None
        self._link = pmui.TextInput(
            label="Link to this run", value="", size="small", sizing_mode="stretch_width", margin=0
        )
        copy = pmui.Button(label="Copy link", variant="outlined", size="small", margin=0)
        copy.js_on_click(
            args={"field": self._link},
            code="navigator.clipboard.writeText(field.data.value)",
        )
        self._files = [
            self._file("Settings", "settings.json", lambda run: export.settings_json(run)),
            self._file("Metrics", "metrics.csv", lambda run: export.metrics_csv(run)),
            self._file(
                "Predictions",
                "predictions.csv",
                lambda run: export.predictions_csv(run, page.entry),
            ),
            self._table(),
            self._file("Notebook", "run.ipynb", lambda run: export.notebook(run)),
            self._file("Script", "run.py", lambda run: export.script(run)),
            self._file("Figures", "figures.html", lambda run: export.figures_html(run, page.views)),
        ]
        self.lesson = LessonLink(page)
        self.panel = column(
            text(
                "<p>Whoever has the link sees this run, live while it trains. The notebook and the "
                "script do the run again through <code>engine</code>, without this server; for a "
                "table of your own, put the file “Table” beside them. Each figure's own tools save "
                "it as PNG or SVG.</p>"
            ),
            column(self._link, copy, css=_BESIDE),
            pn.FlexBox(*self._files, gap="10px", margin=0, sizing_mode="stretch_width"),
            self.lesson.panel,
            css=":host { gap: 14px; }",
        )

    def open(self, run: History) -> None:
        """Offer what this run has come to so far."""
        self._run = run
        self.lesson.write()
        self._link.value = self._page.link(hash=run.record.data_hash[:12] or None)
        for file in self._files:
            if file.filename == export.TABLE:
                file.visible = run.record.data.startswith("upload:")
            needs_report = file.filename in ("metrics.csv", "predictions.csv")
            off = needs_report and run.report is None
            if file.disabled != off:
                file.disabled = off

    def _table(self) -> pmui.FileDownload:
        """The visitor's table as the run learnt from it, read and written off the event loop."""

        async def content() -> io.BytesIO:
            assert self._run is not None, "a file can be asked for once a run is on show"
            upload = self._run.record.data.removeprefix("upload:")
            store = self._page.service.store
            try:
                made = await asyncio.to_thread(lambda: export.table_csv(store.upload_table(upload)))
            except NotFound as error:
                sentence = str(error)
                self._page.turn(lambda: self._page.say(sentence, "error"))
                made = sentence.encode()
            return io.BytesIO(made)

        return pmui.FileDownload(
            callback=content, filename=export.TABLE, label="Table", embed=False, auto=True,
            visible=False, **_PLAIN,
        )  # fmt: skip

    def _file(
        self, label: str, filename: str, make: Callable[[History], str | bytes]
    ) -> pmui.FileDownload:
        def content() -> io.BytesIO:
            try:
                assert self._run is not None, "a file can be asked for once a run is on show"
                made = make(self._run)
            except BadInput as error:
                self._page.say(str(error), "error")
                made = str(error)
            return io.BytesIO(made.encode() if isinstance(made, str) else made)

        return pmui.FileDownload(
            callback=content, filename=filename, label=label, embed=False, auto=True, **_PLAIN
        )
