"""Guess, then reveal: a question first, and its answer once the visitor, or a room, has guessed.

The guesses are counted in the browser and go nowhere. The answer does not leave the server before
it is to be seen; what else would give it away is for the page to hold back while `hidden`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import param
from panel.custom import JSComponent
from scant.dashboard.frame.template import assets, style


class GuessFirst(JSComponent):
    """A switch "Guess first"; with it on, a question, buttons or a slider to guess, and Reveal.

    Attributes:
        first: Whether answers are to be guessed first.
        question: What is asked; "" while there is nothing to ask.
        idle: What stands there in its place.
        choices: Words of the buttons; without any there is a slider.
        span: Least and most of the slider, and its step.
        start: Where the slider stands at first.
        unit: Stands behind numbers.
        digits: Of numbers, after the point.
        revealed: Whether the visitor has asked for the answer.
        answer: The answer in a sentence; "" while it is hidden.
        truth: The number, or the number of the right button; None while it is hidden.
        turn: Counts the questions.
    """

    first = param.Boolean(default=False)
    question = param.String("")
    idle = param.String("")
    choices = param.List(default=[])
    span = param.List(default=[0, 100, 1])
    start = param.Number(default=50)
    unit = param.String("")
    digits = param.Integer(default=0)
    revealed = param.Boolean(default=False)
    answer = param.String("")
    truth = param.Number(default=None, allow_None=True)
    turn = param.Integer(default=0)

    _esm = assets() / "reveal.js"

    def still(self) -> str:
        """As markup, for a page without scripts."""
        return "<label class='first' data-live><input type='checkbox'> Guess first</label>"

    def __init__(self, **params: Any) -> None:
        params.setdefault("sizing_mode", "stretch_width")
        params.setdefault("margin", 0)
        params.setdefault("stylesheets", [style("reveal")])
        super().__init__(**params)
        self._known: tuple[str, float] | None = None
        self._listeners: list[Callable[[], None]] = []
        self._was = self.first, self.hidden
        self.param.watch(lambda *_: self._changed(), ["first", "revealed", "question"])

    @property
    def hidden(self) -> bool:
        """Whether there is a question with a hidden answer."""
        return bool(self.first and self.question and not self.revealed)

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed()` called when `first` or `hidden` has changed."""
        self._listeners.append(changed)

    def ask(
        self,
        question: str,
        choices: Sequence[str] = (),
        span: tuple[float, float, float] = (0, 100, 1),
        start: float = 50,
    ) -> None:
        """Put a question; "" takes the last one back. Its answer comes by `know`."""
        self._known = None
        self.param.update(
            question=question, choices=list(choices), span=list(span), start=start,
            revealed=False, answer="", truth=None, turn=self.turn + 1,
        )  # fmt: skip

    def know(self, answer: str, truth: float) -> None:
        """The answer to the question that stands; the browser is told when it may be seen."""
        self._known = answer, float(truth)
        self._publish()

    def _changed(self) -> None:
        if self.revealed and not self.first:  # switched off: the next time it is asked anew
            self.param.update(revealed=False, answer="", truth=None, turn=self.turn + 1)
            return
        self._publish()
        if self.hidden != self._was:
            self._was = self.first, self.hidden
            for changed in self._listeners:
                changed()

    def _publish(self) -> None:
        if self._known is not None and self.first and self.revealed:
            self.param.update(answer=self._known[0], truth=self._known[1])
