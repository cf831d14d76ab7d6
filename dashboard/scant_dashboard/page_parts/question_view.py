"""A query of the fitted model: an overview to choose from, and the answer."""

from __future__ import annotations

from typing import Any

from scant_dashboard.plots.base import NOTHING


class QuestionView:
    """An overview and an answer that read as one view; a subclass asks and shows.

    Attributes:
        prompt: What to do, said where there is no answer yet.
    """

    prompt = ""

    def __init__(self, overview: Any, answer: Any) -> None:
        self._overview, self._answer = overview, answer
        self.figures = (*overview.figures, *answer.figures)

    @property
    def alt(self) -> str:
        answer = self.prompt if self._answer.alt == NOTHING else self._answer.alt
        return f"{self._overview.alt} {answer}"

    def say(self) -> None:
        """Tell the readings to a screen reader."""
        self._overview.say()
        self._answer.say()
