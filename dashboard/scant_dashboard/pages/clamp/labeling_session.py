"""One window's part in a labeling session: labels go to the store and the model, patches come back.

A session belongs to a run, and its labels are in the store: it continues where it stopped when the
run is opened again, in this or another window, even after a crash. The model stores no labels; it
receives all current ones with every query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from scant.errors import BadInput, NotAllowed
from scant.store.label_agreement import NAMELESS, clean_name
from scant.store.records import ADJUDICATOR, Label
from scant_dashboard.controls.labeling_widget import LabelingWidget
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.pages.clamp.labels_out import PoolFiles
from scant_dashboard.pages.clamp.patch_sender import AT_ONCE, PatchSender
from scant_dashboard.pages.clamp.progress import Answer, progress_of
from scant_dashboard.pages.clamp.session_labels import SessionLabels, classes_of, stored_message
from scant_dashboard.pages.clamp.session_lists import LISTED, lists
from scant_dashboard.pages.clamp.session_queue import MAX_QUEUE, MODEL, next_patches
from scant_dashboard.pages.clamp.window_actions import LABEL, SKIP, WindowActions
from scant_dashboard.translate import later, tr

AHEAD = 8  # number of patches that the browser prefetches
POLL_MS = 3000  # milliseconds between checks for labels of other windows
WAIT = later("The model chooses the next row…")


class LabelingSession:
    """The labels of a run, the widget with which one person adds to them, and the querying model.

    Args:
        page: The page of the session.
        on_answer: Called with the model's answer to "ask", and the labels that it was sent.
        changed: Called when the labels have changed.

    Attributes:
        run: The run; None if there is none.
        pool: Files of the run; None if there is none.
    """

    def __init__(
        self,
        page: PageContext,
        on_answer: Callable[[Answer, Mapping[int, Label]], None],
        changed: Callable[[], None],
    ) -> None:
        self._page, self._on_answer, self._changed = page, on_answer, changed
        self.widget = LabelingWidget(self._on_press)
        self.run: RunState | None = None
        self.pool: PoolFiles | None = None
        self.who, self.of = NAMELESS, MODEL  # `who` is as typed; the visitor is the page's
        self.classes: list[str] = ["", ""]
        self.patches = PatchSender(page, self.widget)
        self._forget()
        self._timer: Any = None

    def _forget(self) -> None:
        self._given: list[Label] = []  # as in the store
        self.labels, self.answer = SessionLabels(), Answer()
        self._acts = WindowActions()
        self._asking = self._again = False

    @property
    def skipped(self) -> int:
        """Number of patches skipped in this window and not labeled since."""
        return len(set(self._acts.skips) - set(self.labels.standing))

    def _take(self, given: list[Label]) -> None:
        """Set the labels, with display names that are unique per visitor."""
        self._given = given
        self.labels = SessionLabels(given, self._page.visit.owner, self.who)

    def open(self, run: RunState) -> None:
        """Start with the labels in the store."""
        self.run, self.pool = run, PoolFiles(run, self._page.service.store)
        self.classes = classes_of(run.metadata)
        self.patches.open(run)
        self._resend()
        self.poll(first=True)
        if self._timer is None:
            self._timer = self._page.visit.doc.add_periodic_callback(self.poll, POLL_MS)

    def close(self) -> None:
        """Leave the run."""
        self.run = self.pool = None
        self.patches.open(None)
        self._forget()
        self.widget.param.update(**_empty_state())
        if self._timer is not None:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None

    def _resend(self) -> None:
        """Send everything to the browser again.

        Messages sent before the page is up are lost, and equal values are not sent again, so all
        values are cleared first.
        """
        self.widget.param.update(**_empty_state(), classes=[], progress={}, undoable=False)
        self.patches.reset()
        self.widget.param.update(
            classes=self.classes, open=True, idle=tr(WAIT), session=self.widget.session + 1
        )

    def choose(self, of: str) -> None:
        """Set the kind of patches to query: the model's choice or another one (`session_queue`)."""
        self.of = of
        if self.run is not None:
            self._resend()  # otherwise the current patch would stay
            self._show()
            self._queue()

    def pick(self, row: int) -> None:
        """Show a patch chosen elsewhere on the page."""
        if self.run is not None:
            self._name([row])
            self.patches.send([row], partial(self.widget.show_row, row), again=True)

    def _name(self, rows: Iterable[int]) -> None:
        """Send the names of placed patches."""
        if self.pool is not None:
            placed = {str(row): name for row, name in self.pool.placed_names(rows).items()}
            self.widget.names = {**self.widget.names, **placed}

    # --- what the person does ---

    def _on_press(self, message: Mapping[str, Any]) -> None:
        act, turn, row = str(message["act"]), int(message.get("turn", 0)), message.get("row")
        self.who = clean_name(str(message.get("who", "")))
        if self.run is None or self.pool is None:
            return
        self._take(self._given)
        if act in ("ready", "who"):
            if act == "ready":
                self._resend()
            self._show()
            self._queue()
        elif act == "undo":
            self._undo(turn)
        elif row is None:
            return
        elif act in ("label", "unsure"):
            self._answered(turn, int(row), message)
        elif act == "skip":
            self._acts.append(SKIP, int(row))
            self.widget.undoable = True
            skipped = tr("Skipped {patch}.", patch=self.pool.name(int(row)))
            self.widget.answer(turn, said=skipped, gone=int(row), next=True)
            self._refit()
        elif act in ("again", "decide"):
            deciding = act == "decide" and int(row) in self.labels.disputes
            self._back(turn, int(row), "", deciding)

    def _answered(self, turn: int, row: int, message: Mapping[str, Any]) -> None:
        """Store the pressed class, or that the person is unsure."""
        value, unsure = int(message.get("value", 0)), message["act"] == "unsure"
        if not unsure and not 0 <= value < len(self.classes):
            error = tr("There is no class {n}; reload the page.", n=value + 1)
            self.widget.answer(turn, error=error)
            return
        role = ADJUDICATOR if message.get("deciding") and row in self.labels.disputes else ""
        label = "unsure" if unsure else self.classes[value]
        self._store_label(turn, row, label, role, unsure=unsure, gone=row, next=True)

    def _store_label(
        self, turn: int, row: int, label: str, role: str, unsure: bool = False, **answer: Any
    ) -> None:
        """Write a label to the store ("" removes the current one), then answer the press."""
        run, pool = self.run, self.pool
        assert run is not None
        assert pool is not None
        store, who, visitor = self._page.service.store, self.who, self._page.visit.owner
        n_pool = len(self.answer.get("p", ()))
        # Here, because `write` runs in a thread without a language.
        no_visitor = tr("a label belongs to a visitor, so allow this page's cookie.")
        no_row = tr("There is no row {row} in this pool; reload the page.", row=row)

        def write() -> list[Label]:
            if not visitor:
                raise NotAllowed(no_visitor)
            if not 0 <= row < n_pool and row not in pool.places.placed:
                raise BadInput(no_row)
            store.add_label(run.id, row, label, who, visitor, role=role, unsure=unsure)
            labels: list[Label] = store.labels(run.id)
            return labels

        def written(given: list[Label]) -> None:
            if self.run is not run:
                return
            said = stored_message(pool.name(row), tr("unsure") if unsure else label, bool(role))
            if label:
                self._acts.append(role or LABEL, row)
                self.widget.answer(turn, said=said, **answer)
            else:
                self._back(turn, row, said, bool(role))
            self._take(given)
            # Later, so that the next patch does not wait for figures.
            self._page.turn(partial(self._labels_changed, run))

        self._page.background(
            asyncio.to_thread(write), written,
            lambda why: self.widget.answer(turn, error=tr("Not saved: {reason}", reason=why)),
        )  # fmt: skip

    def _undo(self, turn: int) -> None:
        """Undo the last action of this window, or else this person's last label."""
        own, pool = self.labels.own, self.pool
        assert pool is not None
        act, row = self._acts.pop(self.labels) or (LABEL, next(reversed(own), -1))
        if act == SKIP:
            self._back(turn, row, tr("Asked again: {patch}.", patch=pool.name(row)))
            self._show()
        elif act == ADJUDICATOR or row in own:
            self._store_label(turn, row, "", ADJUDICATOR if act == ADJUDICATOR else "")
        else:
            self.widget.answer(turn, said=tr("You have no label to undo."))

    def _back(self, turn: int, row: int, message: str, deciding: bool = False) -> None:
        """Show a patch again, and send it in case the browser has dropped it."""
        self._name([row])
        done = partial(self.widget.answer, turn, said=message, back=row, deciding=deciding)
        self.patches.send([row], done, again=True)

    # --- labels ---

    def poll(self, first: bool = False) -> None:
        """Read the labels in the store, to which another window may have added."""
        run, pool = self.run, self.pool
        if run is None or pool is None:
            return

        def stored() -> list[Label]:
            labels: list[Label] = self._page.service.store.labels(run.id)
            pool.placed_names(label.item for label in labels)  # here, as it may read the table
            return labels

        def read(given: list[Label]) -> None:
            # Repeat a query that failed because no worker was free.
            if self.run is run and (first or len(given) > len(self._given) or not self.answer):
                self._take(given)
                self._labels_changed(run)

        self._page.background(asyncio.to_thread(stored), read)

    def _labels_changed(self, run: RunState) -> None:
        """Update the page and the model after the labels have changed."""
        if self.run is run:
            self._show()
            self._changed()
            self._refit()

    def _show(self) -> None:
        """Update the lists of patches and the progress."""
        undoable = bool(self._acts or self.labels.own)
        self._name(self.labels.standing)
        self.widget.param.update(**lists(self.labels), undoable=undoable)
        self._progress()

    def _progress(self) -> None:
        if self.run is not None:
            budget = int(self.run.record.settings["budget"])
            tested = int(dict(self.run.metadata.get("rows", {})).get("test", 0))
            self.widget.progress = progress_of(self.answer, self.labels.sure, budget, tested)

    # --- the model ---

    def _refit(self) -> None:
        """Send the current labels to the model; at most one query runs and one waits."""
        run, pool = self.run, self.pool
        if run is None or pool is None:
            return
        if self._asking:
            self._again = True
            return
        self._asking, self._again = True, False
        taught = self.labels.taught(self.classes)
        # The model knows neither skipped nor unsure patches and may select them again.
        passed_over = self.skipped + len(self.labels.standing) - len(taught)
        query = {"labels": taught, "batch": min(AHEAD + passed_over, MAX_QUEUE)}
        stand = self.labels.sure

        def answered(answer: Answer) -> None:
            if self.run is not run:
                return
            self.answer = answer
            self._queue()
            self._progress()
            self._on_answer(answer, stand)
            self._page.read(at_once=True)

        def over() -> None:
            if self.run is run:
                self._asking = False
                if self._again:
                    self._refit()

        work = pool.explore(self._page.service, "ask", query)
        self._page.background(work, answered, last=over)

    def _queue(self) -> None:
        """Send the next patches to the browser."""
        if self.run is None or not self.answer:
            return
        queue, idle = next_patches(
            self.of, self.answer, self.labels, self._acts.skips, self.classes
        )
        self.widget.param.update(queue=queue[:AHEAD], idle=tr(idle or WAIT))
        listed = [*self.labels.disputes, *self.labels.unsure]
        latest = list(self.labels.standing)[: -AT_ONCE - 1 : -1]
        self.patches.send([one["row"] for one in queue[:AHEAD]] + listed[:LISTED] + latest)


def _empty_state() -> dict[str, Any]:
    return {
        **lists(SessionLabels()),
        "names": {},
        "cards": [],
        "queue": [],
        "open": False,
        "idle": "",
    }
