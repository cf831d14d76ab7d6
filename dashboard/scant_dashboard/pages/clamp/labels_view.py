"""Summary of a session's labels: counts by labeler, agreement, and files to save or load."""

from __future__ import annotations

import asyncio
from functools import partial
from html import escape

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant.errors import BadInput
from scant.html_table import html_table
from scant.store.records import ADJUDICATOR
from scant.tables.annotations.formats import FORMATS, format_named
from scant_dashboard.controls.download import download
from scant_dashboard.engine_text import translated
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.clamp.labeling_view import LabelingView
from scant_dashboard.pages.clamp.labels_in import LabelsIn
from scant_dashboard.pages.clamp.labels_out import PoolFiles, history_csv, labels_file, pool_csv
from scant_dashboard.pages.clamp.session_labels import SessionLabels
from scant_dashboard.pages.clamp.session_lists import agreement
from scant_dashboard.plots.base import View
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

CLOSED = later("No labeling session is open; open a run first.")


class Labels(View):
    """The labels by labeler, their agreement, and the files to save and load."""

    title = later("The labels")
    figures: tuple[object, ...] = ()

    def __init__(self, page: PageContext, labeling: LabelingView) -> None:
        self._page, self._labeling = page, labeling
        labeling.changed = self._show
        self.alt = ""
        self.table = text("")
        self.format = pmui.Select(
            label=tr("Format of the labels"), options=[one.name for one in FORMATS],
            value=FORMATS[0].name, size="small", margin=0, width=200,
        )  # fmt: skip
        self.format_limits = text("", visible=False)
        self.labels = download(
            page, tr("Download labels"), FORMATS[0].file, self.labels_file, disabled=True
        )
        self.format.param.watch(lambda _: self._chosen(), "value")
        self.files = [self.labels] + [
            download(page, tr(label), file, make, disabled=True)
            for label, file, make in (
                (later("History of labels"), "labels-history.csv", self.history),
                (later("Predictions for the pool"), "pool.csv", self.pool_csv),
                (later("Model"), "model.safetensors", self._model),
            )
        ]
        session = labeling.session
        self.load = LabelsIn(page, lambda: session.pool, partial(session.poll, first=True))
        row = partial(pn.FlexBox, gap="10px", margin=0, align_items="center")
        self.panel = stacked(
            self.table, row(self.format, self.labels), self.format_limits, row(*self.files[1:]),
            row(self.load.button), self.load.panel,
        )  # fmt: skip

    def open(self, run: RunState) -> None:
        """Open the widget, because the run can be queried."""
        self._labeling.open(run)
        for button in (*self.files, self.load.button):
            button.disabled = False
        self._show()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.table.object, self.alt = "", ""
        for file in self.files:
            file.disabled = True
        self.load.clear()

    def _chosen(self) -> None:
        """Set the file name of the chosen format, and state which information it cannot hold."""
        own = format_named(str(self.format.value))
        self.labels.filename = own.file
        self.format_limits.object = f"<p class='quiet'>{escape(translated(own.carries))}</p>"
        self.format_limits.visible = bool(own.carries)

    def _show(self) -> None:
        session = self._labeling.session
        if session.run is None:
            return
        self.table.object = table(session.labels, session.classes)
        self.alt = agreement(session.labels)

    def _opened(self) -> tuple[PoolFiles, SessionLabels]:
        session = self._labeling.session
        if session.pool is None:
            raise BadInput(tr(CLOSED))
        return session.pool, session.labels

    async def labels_file(self) -> bytes:
        """Return the current labels in the chosen format."""
        pool, labels = self._opened()
        return await asyncio.to_thread(labels_file, pool, labels.standing, str(self.format.value))

    async def history(self) -> str:
        """Return all labels ever given."""
        return await asyncio.to_thread(history_csv, *self._opened())

    def pool_csv(self) -> str:
        """Return the pool's rows with predictions from the current labels."""
        pool, labels = self._opened()
        return pool_csv(pool, labels, self._labeling.session.answer)

    async def _model(self) -> bytes:
        """Return the model of the current labels, for `scant.load` with settings.json."""
        pool, labels = self._opened()
        taught = labels.taught(self._labeling.session.classes)
        made = await pool.explore(self._page.service, "model", {"labels": taught})
        return np.asarray(made["file"], np.uint8).tobytes()


def table(labels: SessionLabels, classes: list[str]) -> str:
    """Count labels by labeler and class, with a row of decisions."""
    rows = []
    for who, own in labels.people.items():
        classes_given = [v.label for v in own.values() if not v.unsure]
        counts = [classes_given.count(c) for c in classes] + [len(own) - len(classes_given)]
        rows.append((escape(who), [str(n) for n in counts]))
    decided = [v for v in labels.standing.values() if v.role == ADJUDICATOR]
    if decided:
        classes_given = [v.label for v in decided if not v.unsure]
        counts = [classes_given.count(c) for c in classes] + [len(decided) - len(classes_given)]
        rows.append((f"<i>{tr('decisions')}</i>", [str(n) for n in counts]))
    if not rows:
        return f"<p class='quiet'>{tr('None yet.')}</p>"
    return html_table([*map(escape, classes), tr("unsure")], rows, tr("Labeler"))
