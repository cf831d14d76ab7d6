"""A query of the fitted model: an overview to choose from, and the answer."""

from __future__ import annotations

from typing import Any

from scant_dashboard.plots.base import NOTHING
from scant_dashboard.translate import tr


class QuestionView:
    """An overview and an answer with a common caption; a subclass queries and shows.

    Attributes:
        prompt: Instruction shown until there is an answer.
    """

    prompt = ""

    def __init__(self, overview: Any, answer: Any) -> None:
        self._overview, self._answer = overview, answer
        self.figures = (*overview.figures, *answer.figures)

    @property
    def alt(self) -> str:
        answer = tr(self.prompt) if self._answer.alt == NOTHING else self._answer.alt
        return f"{self._overview.alt} {answer}"

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self._overview.say()
        self._answer.say()
