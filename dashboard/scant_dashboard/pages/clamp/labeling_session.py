"""One window's part in a labeling session: labels into the store and to the model, patches back.

A session belongs to a run, and its labels lie in the store: whoever opens the run, in this window
or another, today or after a crash, goes on where it stands. The model keeps no labels of its own;
it is sent all that stand with every question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scant.errors import BadInput, NotAllowed
from scant.store.label_agreement import NAMELESS, clean_name
from scant.store.records import ADJUDICATOR, Label
from scant_dashboard.controls.labeling_widget import LabelingWidget
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.pages.clamp.patch_sender import AT_ONCE, PatchSender
from scant_dashboard.pages.clamp.progress import Answer, progress_of
from scant_dashboard.pages.clamp.session_labels import SessionLabels, classes_of
from scant_dashboard.pages.clamp.session_lists import LISTED, lists
from scant_dashboard.pages.clamp.session_queue import MODEL, MOST, next_patches

AHEAD = 8  # patches that the browser holds before they are wanted
LOOK = 3000  # milliseconds between looks at what other windows have put into the store
WAIT = "The model chooses the next patch…"


class LabelingSession:
    """The labels of a run, the widget by which one person adds to them, and the model that asks.

    Args:
        page: The page that it stands on.
        on_answer: Called with the model's answer to "ask", and the labels that it was told.
        changed: Called when the labels have changed.
    """

    def __init__(
        self,
        page: PageContext,
        on_answer: Callable[[Answer, Mapping[int, Label]], None],
        changed: Callable[[], None],
    ) -> None:
        self._page, self._on_answer, self._changed = page, on_answer, changed
        self.widget = LabelingWidget(self._hear)
        self.run: RunState | None = None
        self.who, self.of = NAMELESS, MODEL  # as typed; the visitor is the page's
        self.classes: list[str] = ["", ""]
        self.patches = PatchSender(page, self.widget)
        self._forget()
        self._timer: Any = None

    def _forget(self) -> None:
        self._given: list[Label] = []  # as the store has them
        self.labels, self.answer = SessionLabels(), Answer()
        self._acts: list[tuple[str, int]] = []  # of this window, to be undone
        self._skips: list[int] = []
        self._asking = self._again = False

    @property
    def skipped(self) -> int:
        """How many patches were skipped in this window and not labeled since."""
        return len(set(self._skips) - set(self.labels.standing))

    def _take(self, given: list[Label]) -> None:
        """Have these labels, each under a name that is nobody else's."""
        self._given = given
        self.labels = SessionLabels(given, self._page.visit.owner, self.who)

    def open(self, run: RunState) -> None:
        """Begin at what is in the store."""
        self.run = run
        self.classes = classes_of(run.metadata)
        self.patches.open(run)
        self._lay_out()
        self.look(first=True)
        if self._timer is None:
            self._timer = self._page.visit.doc.add_periodic_callback(self.look, LOOK)

    def close(self) -> None:
        """Leave the run."""
        self.run = None
        self.patches.open(None)
        self._forget()
        self.widget.param.update(**_nothing())
        if self._timer is not None:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None

    def _lay_out(self) -> None:
        """Send the browser everything anew.

        What was said before a page is up is lost on it, and what is equal is not said again: so all
        is taken away first.
        """
        self.widget.param.update(**_nothing(), classes=[], progress={}, undoable=False)
        self.patches.anew()
        self.widget.param.update(
            classes=self.classes, open=True, idle=WAIT, session=self.widget.session + 1
        )

    def choose(self, of: str) -> None:
        """Ask about what the model needs, or about another kind of patches (`session_queue`)."""
        self.of = of
        if self.run is not None:
            self._lay_out()  # else the patch on show would stay
            self._show()
            self._queue()

    def pick(self, row: int) -> None:
        """Show a patch that was chosen elsewhere on the page."""
        if self.run is not None:
            self.patches.send([row], partial(self.widget.bring_up, row), anew=True)

    # --- what the person does ---

    def _hear(self, message: Mapping[str, Any]) -> None:
        act, turn, row = str(message["act"]), int(message.get("turn", 0)), message.get("row")
        self.who = clean_name(str(message.get("who", "")))
        if self.run is None:
            return
        self._take(self._given)
        if act in ("ready", "who"):
            if act == "ready":
                self._lay_out()
            self._show()
            self._queue()
        elif act == "undo":
            self._undo(turn)
        elif row is None:
            return
        elif act in ("label", "unsure"):
            self._answered(turn, int(row), message)
        elif act == "skip":
            self._skips.append(int(row))
            self._acts.append(("skip", int(row)))
            self.widget.undoable = True
            self.widget.answer(turn, said=f"Skipped patch {row}.", gone=int(row), next=True)
            self._refit()
        elif act in ("again", "decide"):
            deciding = act == "decide" and int(row) in self.labels.disputes
            self._back(turn, int(row), "", deciding)

    def _answered(self, turn: int, row: int, message: Mapping[str, Any]) -> None:
        """Keep the class that was pressed, or that the person is unsure."""
        value, unsure = int(message.get("value", 0)), message["act"] == "unsure"
        if not unsure and not 0 <= value < len(self.classes):
            self.widget.answer(turn, error=f"There is no class {value + 1}; load the page anew.")
            return
        role = ADJUDICATOR if message.get("deciding") and row in self.labels.disputes else ""
        word = "unsure" if unsure else self.classes[value]
        self._put(turn, row, word, role, unsure=unsure, gone=row, next=True)

    def _put(
        self, turn: int, row: int, word: str, role: str, unsure: bool = False, **answer: Any
    ) -> None:
        """Put a label into the store ("" takes one back), then answer the press."""
        run = self.run
        assert run is not None
        store, who, visitor = self._page.service.store, self.who, self._page.visit.owner
        most = len(self.answer.get("p", ()))

        def write() -> list[Label]:
            if not visitor:
                raise NotAllowed("a label belongs to a visitor, so allow this page's cookie.")
            if not 0 <= row < most:
                raise BadInput(f"There is no patch {row} in this pool; load the page anew.")
            store.add_label(run.id, row, word, who, visitor, role=role, unsure=unsure)
            labels: list[Label] = store.labels(run.id)
            return labels

        def written(given: list[Label]) -> None:
            if self.run is not run:
                return
            if word:
                self._acts.append((role or "label", row))
                decided = "Decided on patch" if role else "Patch"
                self.widget.answer(turn, said=f"{decided} {row}: {word}.", **answer)
            else:
                what = "decision on" if role else "label of"
                self._back(turn, row, f"Took back the {what} patch {row}.", bool(role))
            self._take(given)
            self._page.turn(partial(self._tell, run))  # the next patch waits for no figure

        self._page.background(
            asyncio.to_thread(write), written,
            lambda sentence: self.widget.answer(turn, error=f"Not saved: {sentence}"),
        )  # fmt: skip

    def _undo(self, turn: int) -> None:
        """Take back this window's last act; before the first, this person's last label."""
        own = self.labels.own
        while self._acts and not self._stands(*self._acts[-1]):
            self._acts.pop()
        act, row = self._acts.pop() if self._acts else ("label", next(reversed(own), -1))
        if act == "skip":
            self._skips = [r for r in self._skips if r != row]
            self._back(turn, row, f"Patch {row} is asked again.")
            self._show()
        elif act == ADJUDICATOR or row in own:
            self._put(turn, row, "", ADJUDICATOR if act == ADJUDICATOR else "")
        else:
            self.widget.answer(turn, said="You have no label to undo.")

    def _stands(self, act: str, row: int) -> bool:
        if act == ADJUDICATOR:
            return self.labels.decided(row)
        return act == "skip" or row in self.labels.own

    def _back(self, turn: int, row: int, message: str, deciding: bool = False) -> None:
        """Show a patch again, sending it along where the browser may have dropped it."""
        done = partial(self.widget.answer, turn, said=message, back=row, deciding=deciding)
        self.patches.send([row], done, anew=True)

    # --- labels ---

    def look(self, first: bool = False) -> None:
        """See what is in the store; another window may have added to it."""
        run = self.run
        if run is None:
            return

        def read(given: list[Label]) -> None:
            # A model that could not answer, for want of a worker, is asked again.
            if self.run is run and (first or len(given) > len(self._given) or not self.answer):
                self._take(given)
                self._tell(run)

        self._page.background(asyncio.to_thread(self._page.service.store.labels, run.id), read)

    def _tell(self, run: RunState) -> None:
        """Have everybody know of the labels."""
        if self.run is run:
            self._show()
            self._changed()
            self._refit()

    def _show(self) -> None:
        """The lists of patches to come back to, and how far the session is."""
        undoable = bool(self._acts or self.labels.own)
        self.widget.param.update(**lists(self.labels), undoable=undoable)
        self._progress()

    def _progress(self) -> None:
        if self.run is not None:
            budget = int(self.run.record.settings["budget"])
            tested = int(dict(self.run.metadata.get("rows", {})).get("test", 0))
            self.widget.progress = progress_of(self.answer, self.labels.sure, budget, tested)

    # --- the model ---

    def _refit(self) -> None:
        """Have the model learn the labels that stand; one question at a time, the latest wins."""
        run = self.run
        if run is None:
            return
        if self._asking:
            self._again = True
            return
        self._asking, self._again = True, False
        taught = self.labels.taught(self.classes)
        # It may name what was skipped, and what nobody was sure of, as it knows of neither.
        passed_over = self.skipped + len(self.labels.standing) - len(taught)
        query = {"labels": taught, "batch": min(AHEAD + passed_over, MOST)}
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

        self._page.background(self._page.service.explore(run.id, "ask", query), answered, last=over)

    def _queue(self) -> None:
        """Tell the browser what comes next, and send it the patches that it lacks."""
        if self.run is None or not self.answer:
            return
        kept, idle = next_patches(self.of, self.answer, self.labels, self._skips, self.classes)
        self.widget.param.update(queue=kept[:AHEAD], idle=idle or WAIT)
        listed = [*self.labels.disputes, *self.labels.unsure]
        latest = list(self.labels.standing)[: -AT_ONCE - 1 : -1]
        self.patches.send([one["row"] for one in kept[:AHEAD]] + listed[:LISTED] + latest)


def _nothing() -> dict[str, Any]:
    return {**lists(SessionLabels()), "cards": [], "queue": [], "open": False, "idle": ""}
