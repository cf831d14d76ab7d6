"""Guess, then reveal: a question whose answer is hidden until the visitor, or a room, has guessed.

Guesses stay in the browser or come from the phones of a room (`room/`). The answer is sent to the
browser only when it is revealed; while `hidden`, the page must also withhold everything else that
would give it away.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import param
from jaxtyping import UInt8
from panel.custom import JSComponent

from scant_dashboard.page_parts.widgets import column
from scant_dashboard.room.question import Question, Vote, jpeg
from scant_dashboard.template import component, style
from scant_dashboard.translate import later, tr

HIDDEN_TEXT = later("Hidden until you guess and press Reveal.")


class GuessFirst(JSComponent):
    """A switch "Guess first"; when on, it shows a question, a control to guess with, and Reveal.

    Attributes:
        first: Whether answers are to be guessed first.
        question: The question; "" for none.
        idle: Text to show while there is no question.
        choices: Labels of the buttons; if empty, a slider or a picture is shown instead.
        picture: The picture's address; "" for none.
        span: Minimum, maximum and step of the slider.
        start: Initial value of the slider.
        unit: Unit of numbers, shown after them.
        digits: Number of decimals.
        revealed: Whether the visitor has asked for the answer.
        answer: The answer in a sentence; "" while it is hidden.
        truth: The value, the index of the right button, or the place on the picture (fractions of
            its width from the left and of its height from the top); None while hidden.
        band: Range that also counts as right: (low, high), or the sides of a box on the picture.
        turn: Number of the question.
        room: Code of the room; "" for this window alone.
        phones: Number of phones in the room.
        votes: Number of phones that have answered.
        guesses: Their answers, once revealed.
        seen: Whether the room's question is in the viewport.
        answered_by: Titles of the figures whose captions state the answer; see `withholds`.
        panel: Layout of the component and, below it, the room's guesses.
    """

    first = param.Boolean(default=False)
    question = param.String("")
    idle = param.String("")
    choices = param.List(default=[])
    picture = param.String("")
    span = param.List(default=[0, 100, 1])
    start = param.Number(default=50)
    unit = param.String("")
    digits = param.Integer(default=0)
    revealed = param.Boolean(default=False)
    answer = param.String("")
    truth = param.Parameter(default=None)
    band = param.List(default=[])
    turn = param.Integer(default=0)
    room = param.String("")
    phones = param.Integer(default=0)
    votes = param.Integer(default=0)
    guesses = param.List(default=[])
    seen = param.Boolean(default=False)

    _esm = component("reveal")

    def still(self) -> str:
        """Return the static markup for a page without scripts."""
        label = tr("Guess first")
        return f"<label class='first' data-live><input type='checkbox'> {label}</label>"

    def __init__(self, *, answered_by: Collection[str] = (), **params: Any) -> None:
        self.answered_by = answered_by
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [style("reveal")])
        super().__init__(**params)
        self._solution: tuple[str, Vote, list[float]] | None = None
        self._image = b""
        self.below = column(css=":host { gap: 6px; }")
        self.panel = column(self, self.below, css=":host { gap: 10px; }")
        self._listeners: list[Callable[[], None]] = []
        self._was = self.first, self.hidden
        self.param.watch(lambda *_: self._changed(), ["first", "revealed", "question"])

    @property
    def hidden(self) -> bool:
        """Whether the answer to the current question, or to one announced, is hidden."""
        return bool(self.first and (self.question or self.idle) and not self.revealed)

    def withholds(self, title: str, training: bool) -> bool:
        """Whether the caption of this figure must not be shown yet.

        Args:
            title: The figure's title.
            training: Whether the run goes on; its question is asked at the end.
        """
        asked = self.hidden or (self.first and training)
        return asked and title in self.answered_by

    @property
    def room_question(self) -> Question:
        """The question in the form sent to a room."""
        low, high, step = self.span
        return Question(self.question, tuple(self.choices), (low, high, step), self.start,
                        self.unit, self.digits, self._image)  # fmt: skip

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` whenever `first` or `hidden` has changed."""
        self._listeners.append(changed)

    def ask(
        self,
        question: str,
        choices: Sequence[str] = (),
        span: tuple[float, float, float] = (0, 100, 1),
        start: float = 50,
        picture: UInt8[np.ndarray, "h w 3"] | None = None,
    ) -> None:
        """Ask a question; its answer is set later by `know`.

        Args:
            question: Text of the question; "" removes the current one.
            choices: Labels of the possible answers.
            span: Minimum, maximum and step of a numerical answer.
            start: Initial value of the slider.
            picture: Picture on which to choose a place; with choices, an illustration.
        """
        self._solution = None
        self._image = b"" if picture is None else jpeg(picture)
        self.below.objects = []
        self.param.update(
            question=question, choices=list(choices), span=list(span), start=start,
            revealed=False, answer="", truth=None, band=[], guesses=[], turn=self.turn + 1,
            picture=f"data:image/jpeg;base64,{b64encode(self._image).decode()}"
            if self._image else "",
        )  # fmt: skip

    def know(self, answer: str, truth: Vote, band: Sequence[float] = ()) -> None:
        """Set the answer to the current question; the browser gets it once it may be shown.

        Args:
            answer: The answer in a sentence.
            truth: The attribute of this name.
            band: The attribute of this name; empty for none.
        """
        self._solution = answer, truth, [float(v) for v in band]
        self._publish()

    def _changed(self) -> None:
        if self.revealed and not self.first:  # switched off: the next guess starts afresh
            self.below.objects = []
            self.param.update(revealed=False, answer="", truth=None, band=[], guesses=[],
                              turn=self.turn + 1)  # fmt: skip
            return
        self._publish()
        if self.hidden != self._was:
            self._was = self.first, self.hidden
            for changed in self._listeners:
                changed()

    def _publish(self) -> None:
        if self._solution is not None and self.first and self.revealed:
            answer, truth, band = self._solution
            self.param.update(answer=answer, truth=list(truth) if isinstance(truth, tuple)
                              else float(truth), band=band)  # fmt: skip
