"""Guess, then reveal: a question first, and its answer once the visitor, or a room, has guessed.

The guesses are counted in the browser and go nowhere, or come from the phones of a room (`room/`).
The answer does not leave the server before it is to be seen; what else would give it away is for
the page to hold back while `hidden`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import param
from jaxtyping import UInt8
from panel.custom import JSComponent

from scant_dashboard.page_parts.widgets import column
from scant_dashboard.room.question import Question, Vote, jpeg
from scant_dashboard.template import component, style


class GuessFirst(JSComponent):
    """A switch "Guess first"; with it on, a question, a control to guess with, and Reveal.

    Attributes:
        first: Whether answers are to be guessed first.
        question: What is asked; "" while there is nothing to ask.
        idle: What stands there in its place.
        choices: Words of the buttons; without any there is a slider, or a picture to touch.
        picture: The picture's address; "" for none.
        span: Least and most of the slider, and its step.
        start: Where the slider stands at first.
        unit: Stands behind numbers.
        digits: Of numbers, after the point.
        revealed: Whether the visitor has asked for the answer.
        answer: The answer in a sentence; "" while it is hidden.
        truth: The number, the number of the right button or the place on the picture (shares from
            the left and from the top); None while it is hidden.
        band: What counts as right beside it: low and high, or the sides of a box on the picture.
        turn: Counts the questions.
        room: The code of the room that is asked; "" for the window alone.
        phones: How many phones the room has.
        votes: How many of them have answered.
        guesses: What they have answered, once it is revealed.
        seen: Whether the question of a room is in view.
        panel: What is laid out: the component, and the room's guesses below it.
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
        """As markup, for a page without scripts."""
        return "<label class='first' data-live><input type='checkbox'> Guess first</label>"

    def __init__(self, **params: Any) -> None:
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [style("reveal")])
        super().__init__(**params)
        self._known: tuple[str, Vote, list[float]] | None = None
        self._image = b""
        self.below = column(css=":host { gap: 6px; }")
        self.panel = column(self, self.below, css=":host { gap: 10px; }")
        self._listeners: list[Callable[[], None]] = []
        self._was = self.first, self.hidden
        self.param.watch(lambda *_: self._changed(), ["first", "revealed", "question"])

    @property
    def hidden(self) -> bool:
        """Whether there is a question with a hidden answer."""
        return bool(self.first and self.question and not self.revealed)

    @property
    def asked(self) -> Question:
        """The question as a room is asked it."""
        least, most, step = self.span
        return Question(self.question, tuple(self.choices), (least, most, step), self.start,
                        self.unit, self.digits, self._image)  # fmt: skip

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed()` called when `first` or `hidden` has changed."""
        self._listeners.append(changed)

    def ask(
        self,
        question: str,
        choices: Sequence[str] = (),
        span: tuple[float, float, float] = (0, 100, 1),
        start: float = 50,
        picture: UInt8[np.ndarray, "h w 3"] | None = None,
    ) -> None:
        """Put a question; "" takes the last one back. Its answer comes by `know`.

        Args:
            question: In words.
            choices: What may be chosen.
            span: Least and most of a number, and its step.
            start: Where the slider stands at first.
            picture: On which a place is to be found; with choices, what they are about.
        """
        self._known = None
        self._image = b"" if picture is None else jpeg(picture)
        self.below.objects = []
        self.param.update(
            question=question, choices=list(choices), span=list(span), start=start,
            revealed=False, answer="", truth=None, band=[], guesses=[], turn=self.turn + 1,
            picture=f"data:image/jpeg;base64,{b64encode(self._image).decode()}"
            if self._image else "",
        )  # fmt: skip

    def know(self, answer: str, truth: Vote, band: Sequence[float] = ()) -> None:
        """The answer to the question that stands; the browser is told when it may be seen.

        Args:
            answer: In a sentence.
            truth: The attribute of this name.
            band: The attribute of this name; empty where there is none.
        """
        self._known = answer, truth, [float(v) for v in band]
        self._publish()

    def _changed(self) -> None:
        if self.revealed and not self.first:  # switched off: the next time it is asked anew
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
        if self._known is not None and self.first and self.revealed:
            answer, truth, band = self._known
            self.param.update(answer=answer, truth=list(truth) if isinstance(truth, tuple)
                              else float(truth), band=band)  # fmt: skip
