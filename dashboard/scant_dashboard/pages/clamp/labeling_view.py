"""The clamp page's labeling widget, for one or several people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float

from scant.events import Report, Snapshot
from scant.store.records import Label
from scant_dashboard.engine_text import translated
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.clamp.labeling_session import LabelingSession
from scant_dashboard.pages.clamp.progress import Answer
from scant_dashboard.pages.clamp.session_labels import expert_of
from scant_dashboard.pages.clamp.session_queue import KINDS, MODEL
from scant_dashboard.plots.base import View
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

INVITE = later(
    "A simulated expert answers in this run. Take its place to start your own session on the "
    "same rows; it opens in a few seconds."
)
PREPARING = later("The rows are being prepared; labeling starts in a few seconds.")
HELP = later(
    "Keys: <kbd>1</kbd> to <kbd>9</kbd> label with the class of that number, "
    "<kbd>u</kbd> says that you are unsure, <kbd>s</kbd> skips, <kbd>z</kbd> undoes your last act. "
    "The model does not learn from unsure rows; they are listed, to be looked at again. Each "
    "label is stored before the next row appears. Everyone with this page's link can label, on "
    "any machine; skipped rows return when the page is reloaded. Where two people disagree, "
    "click the row in the list: the class that you then press overrides both."
)


class LabelingView(View):
    """The labeling widget or, if the expert is simulated, an invitation to a labeling session.

    It is one of the live views, but opens only with `Labels.open`, once the model can be queried.

    Args:
        page: The page of the view.
        on_answer: Called with the model's answer and the labels that it was sent.
    """

    title = later("Label")
    figures: tuple[Any, ...] = ()

    def __init__(
        self, page: PageContext, on_answer: Callable[[Answer, Mapping[int, Label]], None]
    ) -> None:
        self._page = page
        self.changed: Callable[[], None] = lambda: None
        self.session = LabelingSession(page, on_answer, self._changed)
        self._run: RunState | None = None
        self.invite = pmui.Button(label=tr("Label these rows yourself"), margin=0, visible=False)
        self.invite.on_click(lambda _: self._begin())
        self.prompt = text("")
        self.of = pmui.Select(label=tr("Ask me about"), options={tr(kind): kind for kind in KINDS},
                              value=MODEL, size="small", margin=0, width=260,
                              visible=False)  # fmt: skip
        self.of.param.watch(lambda _: self.session.choose(str(self.of.value)), "value")
        # In a column, because the widget's style sheet overrides its `visible`.
        self.container = pn.Column(
            self.session.widget, sizing_mode="stretch_width", margin=0, visible=False
        )
        self.panel = stacked(self.prompt, self.invite, self.of, self.container)

    @property
    def alt(self) -> str:
        run = self.session.run
        if run is None:
            return ""
        labels, classes = self.session.labels, self.session.classes
        counts = [sum(v.label == c for v in labels.sure.values()) for c in classes]
        each = ", ".join(f"{n} {c}" for n, c in zip(counts, classes))
        rest = [
            tr("{n} unsure", n=len(labels.unsure)) if labels.unsure else "",
            tr("{n} skipped", n=self.session.skipped) if self.session.skipped else "",
            tr("{n} to be decided", n=len(labels.open_disputes)) if labels.open_disputes else "",
        ]
        advice = self.session.answer.get("advice")
        hint = (
            f" {translated(str(np.ravel(advice)[0]))}" if advice is not None and labels.sure else ""
        )
        n_pool = len(self.session.answer.get("p", ())) or run.metadata["rows"]["pool"]
        placed = sum(row >= n_pool for row in labels.sure)
        counted = "; ".join(filter(None, [each, *rest]))
        message = tr("{n} of {total:,} rows labeled: {counts}.", n=len(labels.sure),
                     total=n_pool + placed, counts=counted)  # fmt: skip
        return message + hint

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show who labels; a run that is still preparing has nothing to label yet."""
        if self.session.run is None and metadata.get("expert"):
            self._announce(str(metadata["expert"]))

    def _announce(self, expert: str) -> None:
        """Offer a labeling session if the run's expert is simulated."""
        self.invite.visible = expert == "simulated"
        preparing = f"<p class='quiet'>{tr(PREPARING)}</p>" if expert == "you" else ""
        self.prompt.object = f"<p>{tr(INVITE)}</p>" if self.invite.visible else preparing

    def open(self, run: RunState) -> None:
        """Open the widget once the run can be queried."""
        self.prompt.object = f"<p class='quiet'>{tr(HELP)}</p>"
        self.invite.visible = False
        self.of.visible = self.container.visible = True
        self.session.open(run)

    def clear(self, run: RunState) -> None:
        """Discard the previous run; offer a session if this one has a simulated expert."""
        self.session.close()
        self._run = run
        self.container.visible = self.of.visible = False
        self.of.value = MODEL
        self._announce(expert_of(run))

    def pick_around(self, row: int, offset: Float[np.ndarray, " 2"]) -> None:
        """Show the patch around a point of a picture.

        Args:
            row: The nearest patch.
            offset: Offset of the point from its center, as shares of its width and height.
        """
        pool, pick = self.session.pool, self.session.pick
        if pool is None or not pool.run.metadata.get("placed"):
            return pick(row)

        def patch() -> int:
            return pool.places.placed.patch_around(row, offset)  # may read the table

        self._page.background(asyncio.to_thread(patch), pick, lambda _: pick(row))

    def _begin(self) -> None:
        """Start a labeling session with the data and settings of the current run."""
        run = self._run
        assert run is not None, "there is a button only beside a run"
        self.invite.disabled = True
        values = {**run.record.settings, "expert": "you"}

        def opened(new: str) -> None:
            self._page.open(new)
            self._page.address()

        self._page.background(
            self._page.submit(values, run.record.data), opened,
            last=lambda: setattr(self.invite, "disabled", False),
        )  # fmt: skip

    def _changed(self) -> None:
        self.changed()
        self._page.read(at_once=True)
