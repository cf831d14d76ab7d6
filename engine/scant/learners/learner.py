"""The interface of all methods that a study's model is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from scant.deadline import NEVER, Deadline
from scant.errors import BadInput
from scant.predictive import Predictive
from scant.problem import Problem

FLOOR = 1e-4  # minimum predictive variance relative to the target's variance
X = Float[ndarray, "_ d"]


class OutOfTime(BadInput):
    """The predictions would not be ready at the deadline."""

    def __init__(self) -> None:
        super().__init__("the time for comparisons was used up.")


@dataclass(frozen=True)
class Capabilities:
    """Kinds of problems that a learner takes, and the form of its predictions.

    Attributes:
        values: True if it predicts values.
        classes: True if it predicts classes.
        missing: True if inputs may be missing (NaN).
        censored: True if values may be lower bounds.
        parts: True if classes may compete in several parts.
        images: True if it is only for images.
        views: True if it needs columns in views.
        density: True if it predicts densities or probabilities, not only means or classes.
        trees: True if it also learns from `Problem.contrasts`.
    """

    values: bool = False
    classes: bool = False
    missing: bool = False
    censored: bool = False
    parts: bool = False
    images: bool = False
    views: bool = False
    density: bool = True
    trees: bool = False

    def refuse(self, problem: Problem) -> str:
        """Return why a problem is of another kind; "" if it is not."""
        gaps = not self.missing and any(np.isnan(x).any() for x in (problem.x, problem.x_test))
        reasons = {
            "it does not predict classes.": problem.classes and not self.classes,
            "it does not predict values.": not problem.classes and not self.values,
            "it takes no missing values.": gaps,
            "it takes no censored values.": problem.late is not None and not self.censored,
            "it takes no rows that belong to several classes in parts.": problem.part is not None
            and not self.parts,
            "it is for images only.": self.images and not problem.images,
            "it needs columns in views.": self.views and problem.views is None,
        }
        return next((reason for reason, applies in reasons.items() if applies), "")


@dataclass(frozen=True)
class Learner:
    """A method that learns from a problem's rows and predicts its held-out rows.

    Attributes:
        name: Name in the report.
        answer: Function of a problem and a deadline that returns the predictions; it may raise
            `OutOfTime`.
        capabilities: Kinds of problems that it takes.
        limit: Function of a problem that returns why it is too large, in a sentence; "" if it is
            not.
        code: Two lines of Python code with `X`, `y` and `X_new`; "" if there are none.

    Example:
        problem = Problem(x, y, x_test, y_test, scores=("RMSE",))
        ridge = general_tools(classes=0)[0]
        problem.scored(ridge.predict(problem)).crps
    """

    name: str
    answer: Callable[[Problem, Deadline], Predictive]
    capabilities: Capabilities
    limit: Callable[[Problem], str] = lambda problem: ""
    code: str = ""

    def refuse(self, problem: Problem) -> str:
        """Return why the learner does not take a problem, in a sentence; "" if it does."""
        return self.capabilities.refuse(problem) or self.limit(problem)

    def predict(self, problem: Problem, deadline: Deadline = NEVER) -> Predictive:
        """Learn from a problem's rows and predict its held-out rows.

        Raises:
            BadInput: The learner does not take the problem, or time is not enough (`OutOfTime`).
        """
        if reason := self.refuse(problem):
            raise BadInput(reason)
        return self.answer(problem, deadline)


def lacks_classes(problem: Problem) -> str:
    """Return that a class has no rows to fit to; "" if all have some."""
    fitted = problem.y if problem.spared is None else problem.y[~problem.spared]
    lacks = problem.classes and len(np.unique(fitted)) < problem.classes
    return "a class has no rows to learn from." if lacks else ""
