"""Loading a file of labels into a session: a button, a file field and a report."""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Callable

import panel_material_ui as pmui

from scant.errors import NotAllowed
from scant.tables.annotations.formats import FORMATS, read
from scant_dashboard.controls.file_dropper import BoundedDropper
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.pages.clamp.labels_out import PoolFiles
from scant_dashboard.pages.clamp.prelabels import Prelabels, prelabels
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

TERMS = later(
    "A file of labels for these rows: {formats}. They are matched by the picture's name and the "
    "box, and become pre-labels of the labeler whom the file names: the model learns from them "
    "until somebody corrects them. Choose “pre-labels to check” above to go through them."
)
NOTES = 5  # notes on a file that are shown


class LabelsIn:
    """Loads labels from a file as pre-labels.

    Args:
        page: The page of the view.
        pool: Returns the files of the current run; None if there is no run.
        loaded: Called once the labels are in the store.
    """

    def __init__(
        self, page: PageContext, pool: Callable[[], PoolFiles | None], loaded: Callable[[], None]
    ) -> None:
        self._page, self._pool, self._loaded = page, pool, loaded
        self._dropper: BoundedDropper | None = None
        self.button = pmui.Button(
            label=tr("Load labels"), on_click=lambda _: self._unfold(), variant="outlined",
            size="small", margin=0, disabled=True,
        )  # fmt: skip
        formats = ", ".join(one.name for one in FORMATS)
        self._terms = text(f"<p class='quiet'>{tr(TERMS, formats=formats)}</p>", visible=False)
        self._field = column()  # holds the dropper while open: it redraws all the time
        self._message = text("", visible=False)
        self.panel = column(self._terms, self._field, self._message, css=":host { gap: 10px; }")

    def clear(self) -> None:
        """Discard the previous run."""
        self.button.disabled = True
        self._message.visible = self._terms.visible = False
        self._field.objects = []
        if self._dropper is not None:
            self._dropper.release()

    def _unfold(self) -> None:
        opened = not self._terms.visible
        self._terms.visible = opened
        if self._dropper is None:
            self._dropper = BoundedDropper(
                self._page.visit, True, lambda: None, self._dropped, self._refused
            )
        self._field.objects = [self._dropper] if opened else []

    def _dropped(self, files: dict[str, bytes | str]) -> None:
        if not files or self._dropper is None:  # cleared below
            return
        name, content = next(iter(files.items()))
        self._dropper.value = {}
        self.load(name, content.encode() if isinstance(content, str) else content)

    def load(self, name: str, content: bytes) -> None:
        """Read a file and store its labels."""
        pool = self._pool()
        if pool is None:
            return
        self._say([tr("Reading {file}…", file=name)], "quiet", "note")
        notes: list[str] = []
        no_visitor = tr("A label belongs to a visitor, so allow this page's cookie.")

        def keep() -> Prelabels:
            visitor, store, run = self._page.visit.owner, self._page.service.store, pool.run
            if not visitor:
                raise NotAllowed(no_visitor)
            classes = [str(c) for c in run.metadata["classes"]]
            annotations = read(content, name, notes)
            made = prelabels(
                annotations, pool.places, classes, store.labels(run.id), visitor, time.time()
            )
            store.add_labels(run.id, made.labels)
            return made

        def stored(made: Prelabels) -> None:
            self._say([made.sentence(name), *notes[:NOTES]], "", "status")
            self._loaded()

        def over() -> None:
            if self._dropper is not None:
                self._dropper.release()

        self._page.background(asyncio.to_thread(keep), stored, self._refused, over)

    def _refused(self, sentence: str) -> None:
        self._say([sentence], "error", "alert")

    def _say(self, sentences: list[str], kind: str, role: str) -> None:
        self._message.object = "".join(
            f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>" for sentence in sentences
        )
        self._message.visible = True
