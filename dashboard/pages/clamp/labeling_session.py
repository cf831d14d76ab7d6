"""One window's part in a labeling session: labels into the store and to the model, patches back.

A session belongs to a run, and its labels lie in the store: whoever opens the run, in this window
or another, today or after a crash, goes on where it stands. The model keeps no labels of its own;
it is sent all that stand with every question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scant.dashboard.controls.labeling_widget import LabelingWidget, card
from scant.dashboard.live.run_state import RunState
from scant.dashboard.study_page.context import PageContext
from scant.errors import BadInput, NotAllowed
from scant.store.label_agreement import (
    NAMELESS,
    by_labeler,
    clean_name,
    shown_as,
    shown_names,
    standing,
)
from scant.store.records import Label

Answer = Mapping[str, np.ndarray]
AHEAD = 8  # patches that the browser holds before they are wanted
HELD = 150  # patches that the browser surely keeps
MOST = 100  # patches that the model names at once
AT_ONCE = 12  # patches of one question to the model
LISTED = 48  # labels of the history
LOOK = 3000  # milliseconds between looks at what other windows have put into the store
MODEL, OTHERS = "what the model needs", "what others labeled"
WAIT = "The model chooses the next patch…"
DONE = "All patches are labeled or skipped."
NONE_OF_OTHERS = "No other visitor has labeled a patch that you have not."


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
        self.labels: list[Label] = []
        self.answer: Answer = {}
        self.who, self.of = NAMELESS, MODEL  # as typed; the visitor is the page's
        self._classes: list[str] = ["", ""]
        self._features: list[str] = []
        self._forget()
        self._timer: Any = None

    def _forget(self) -> None:
        self.labels, self.answer = [], {}
        self._given: list[Label] = []  # as the store has them
        self._shown = self.who  # the name under which the person at this widget is shown
        self._f1: dict[int, float] = {}  # by the number of labels that it came of
        self._acts: list[tuple[str, int]] = []  # of this window, to be undone
        self._skipped: list[int] = []
        self._sent: dict[int, None] = {}  # what the browser holds, the latest last
        self._fetching: set[int] = set()
        self._asking = self._again = False

    @property
    def standing(self) -> dict[int, Label]:
        """The label that counts of each row."""
        return standing(self.labels)

    @property
    def own(self) -> dict[int, str]:
        """The labels of the person at this widget that stand, by row."""
        return by_labeler(self.labels).get(self._shown, {})

    def _take(self, labels: list[Label]) -> None:
        """Have these labels, each under a name that is nobody else's."""
        self._given = labels
        visitor = self._page.visit.owner
        names = shown_names(labels, visitor, self.who)
        self._shown = names[visitor, self.who]
        self.labels = shown_as(labels, names)

    @property
    def skipped(self) -> int:
        """How many patches were skipped in this window and not labeled since."""
        return len(set(self._skipped) - set(self.standing))

    def open(self, run: RunState) -> None:
        """Begin at what is in the store."""
        self.run = run
        self._classes = [str(c) for c in run.metadata["classes"]]
        self._features = [str(f) for f in run.metadata.get("columns", ())]
        self._batch = int(run.record.settings["batch_size"])
        self._lay_out()
        self._read(first=True)
        if self._timer is None:
            self._timer = self._page.visit.doc.add_periodic_callback(self._read, LOOK)

    def close(self) -> None:
        """Leave the run."""
        self.run = None
        self._forget()
        self.widget.param.update(open=False, cards=[], queue=[], history=[], idle="")
        if self._timer is not None:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None

    def _lay_out(self) -> None:
        """Send the browser everything anew.

        What was said before a page is up is lost on it, and what is equal is not said again: so all
        is taken away first.
        """
        nothing: dict[str, Any] = {"classes": ["", ""], "cards": [], "queue": [], "history": []}
        self.widget.param.update(**nothing, open=False, undoable=False, idle="")
        self._sent.clear()
        self.widget.param.update(
            classes=self._classes, open=True, idle=WAIT, session=self.widget.session + 1
        )

    def choose(self, of: str) -> None:
        """Ask about what the model needs, or about what others have labeled."""
        self.of = of
        if self.run is not None:
            self._lay_out()  # else the patch on show would stay
            self._show()
            self._queue()

    # --- what the person does ---

    def _hear(self, message: Mapping[str, Any]) -> None:
        act, turn = str(message["act"]), int(message.get("turn", 0))
        self.who = clean_name(str(message.get("who", "")))
        if self.run is None:
            return
        self._take(self._given)
        if act in ("ready", "who"):
            if act == "ready":
                self._lay_out()
            self._show()
            self._queue()
        elif act == "label":
            word = self._classes[1 if message.get("value") else 0]
            self._put(turn, int(message["row"]), word, gone=int(message["row"]), next=True)
        elif act == "skip":
            row = int(message["row"])
            self._skipped.append(row)
            self._acts.append(("skip", row))
            self.widget.undoable = True
            self.widget.answer(turn, said=f"Skipped patch {row}.", gone=row, next=True)
            self._refit()
        elif act == "undo":
            self._undo(turn)
        elif act == "again":
            self._back(turn, int(message["row"]), "")

    def _put(self, turn: int, row: int, word: str, **answer: Any) -> None:
        """Put a label into the store ("" takes one back), then answer the press."""
        run = self.run
        assert run is not None
        store, who, most = self._page.service.store, self.who, len(self.answer.get("p", ()))
        visitor = self._page.visit.owner

        def write() -> list[Label]:
            if not visitor:
                raise NotAllowed("a label belongs to a visitor, so allow this page's cookie.")
            if not 0 <= row < most:
                raise BadInput(f"There is no patch {row} in this pool; load the page anew.")
            store.add_label(run.id, row, word, who, visitor)
            labels: list[Label] = store.labels(run.id)
            return labels

        def written(labels: list[Label]) -> None:
            if self.run is not run:
                return
            if word:
                self._acts.append(("label", row))
                self.widget.answer(turn, said=f"Patch {row}: {word}.", **answer)
            else:
                self._back(turn, row, f"Took back the label of patch {row}.")
            self._take(labels)
            self._page.turn(partial(self._tell, run))  # the next patch waits for no figure

        self._page.background(
            asyncio.to_thread(write), written,
            lambda sentence: self.widget.answer(turn, error=f"Not saved: {sentence}"),
        )  # fmt: skip

    def _undo(self, turn: int) -> None:
        """Take back this window's last act; before the first, this person's last label."""
        own = self.own
        while self._acts and self._acts[-1][0] == "label" and self._acts[-1][1] not in own:
            self._acts.pop()
        act, row = self._acts.pop() if self._acts else ("label", next(reversed(own), -1))
        if act == "skip":
            self._skipped = [r for r in self._skipped if r != row]
            self._back(turn, row, f"Patch {row} is asked again.")
            self._show()
        elif row in own:
            self._put(turn, row, "")
        else:
            self.widget.answer(turn, said="You have no label to undo.")

    def _back(self, turn: int, row: int, message: str) -> None:
        """Show a patch again, sending it along where the browser may have dropped it."""
        done = partial(self.widget.answer, turn, said=message, back=row)
        self._fetch([row], done, anew=True)

    # --- labels ---

    def _read(self, first: bool = False) -> None:
        """See what is in the store; another window may have added to it."""
        run = self.run
        if run is None:
            return

        def read(labels: list[Label]) -> None:
            # A model that could not answer, for want of a worker, is asked again.
            if self.run is run and (first or len(labels) > len(self.labels) or not self.answer):
                self._take(labels)
                self._tell(run)

        self._page.background(asyncio.to_thread(self._page.service.store.labels, run.id), read)

    def _tell(self, run: RunState) -> None:
        """Have everybody know of the labels."""
        if self.run is run:
            self._show()
            self._changed()
            self._refit()

    def _show(self) -> None:
        """The history, latest first."""
        given = list(self.standing.values())[::-1][:LISTED]
        history = [{"row": v.item, "label": v.label, "who": v.labeler} for v in given]
        self.widget.param.update(history=history, undoable=bool(self._acts or self.own))

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
        stand = self.standing
        known = [[r, self._classes.index(v.label)] for r, v in stand.items()
                 if v.label in self._classes]  # fmt: skip
        past = [f1 for n, f1 in sorted(self._f1.items()) if n < len(stand) and n % self._batch == 0]
        query = {"labels": known, "batch": min(AHEAD + self.skipped, MOST), "f1": past}

        def answered(answer: Answer) -> None:
            if self.run is not run:
                return
            self.answer = answer
            self._f1[len(stand)] = float(np.ravel(answer["f1"])[0])
            self._on_answer(answer, stand)
            self._queue()
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
        stand = self.standing
        if self.of == MODEL:
            rows = [int(r) for r in self.answer["queue"]]
            why = [str(w) for w in self.answer["reason"]]
            kept = [(r, w) for r, w in zip(rows, why) if r not in stand and r not in self._skipped]
            idle = DONE if not len(rows) else WAIT
        else:
            own = self.own
            kept = [
                (r, "labeled by another visitor; which class do you see?")
                for r in stand
                if r not in own
            ]
            kept = [(r, w) for r, w in kept if r not in self._skipped][:AHEAD]
            idle = NONE_OF_OTHERS
        self.widget.param.update(queue=[{"row": r, "why": w} for r, w in kept], idle=idle)
        self._fetch([r for r, _ in kept] + list(stand)[: -AT_ONCE - 1 : -1])

    def _fetch(
        self, rows: Sequence[int], done: Callable[[], None] = lambda: None, anew: bool = False
    ) -> None:
        """Send the browser these patches, those it has not been sent."""
        run = self.run
        if run is None:
            return
        here = self._sent.keys() | self._fetching
        lacking = [r for r in dict.fromkeys(rows) if anew or r not in here]
        lacking = lacking[:AT_ONCE]
        if not lacking:
            done()
            return
        self._fetching.update(lacking)

        async def bring() -> list[dict[str, Any]]:
            try:
                answer = await self._page.service.explore(run.id, "patches", {"rows": lacking})
                return await asyncio.to_thread(self._cards, lacking, answer)
            finally:
                self._fetching.difference_update(lacking)

        def brought(cards: list[dict[str, Any]]) -> None:
            if self.run is run:
                held = {r: None for r in self._sent if r not in lacking} | dict.fromkeys(lacking)
                self._sent = dict.fromkeys(list(held)[-HELD:])
                self.widget.cards = cards
                done()

        self._page.background(bring(), brought)

    def _cards(self, rows: Sequence[int], answer: Answer) -> list[dict[str, Any]]:
        return [
            card(row, answer["image"][i], answer["thumb"][i], answer["box"][i],
                 list(zip(self._features, map(float, answer["x"][i]))))
            for i, row in enumerate(rows)
        ]  # fmt: skip
