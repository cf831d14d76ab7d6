"""Learners fitted to one problem, one after the other, and their scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from scant.deadline import NEVER, Deadline
from scant.errors import BadInput
from scant.evaluate.scores import metrics_of
from scant.events import Metric
from scant.learners.learner import Learner, OutOfTime
from scant.predictive import Predictive
from scant.predictive.scored import Scored
from scant.problem import Problem


class Result(NamedTuple):
    """Predictions of a learner, or the reason why there are none.

    Attributes:
        name: Name of the learner.
        scored: Predictions beside the truth; None if there are none.
        metrics: Scores of the predictions.
        reason: Why there are no predictions, in a sentence.
        seconds: Duration of learning and prediction.
    """

    name: str
    scored: Scored | None
    metrics: Sequence[Metric] = ()
    reason: str = ""
    seconds: float = 0.0

    @property
    def predictive(self) -> Predictive | None:
        """Predictions of the held-out rows."""
        return None if self.scored is None else self.scored.predictive

    @property
    def note(self) -> str:
        """Sentence of a report on a learner that does not take the problem; "" of any other."""
        if not self.reason or self.reason == str(OutOfTime()):
            return ""  # a report names the phases that were cut short (`Deadline.skipped`)
        return f"{self.name} is left out of the comparison: {self.reason}"


def fit_all(
    problem: Problem,
    learners: Iterable[Learner],
    names: Iterable[str] = (),
    deadline: Deadline = NEVER,
    phase: str = "",
    *,
    minimum: int = 0,
    halted: Callable[[], bool] = lambda: False,
) -> Iterator[Result]:
    """Fit learners as far as time allows; each gives one result, with an exception as its reason.

    Args:
        problem: Problem to learn and predict.
        learners: Learners, fastest first.
        names: Scores to compute, by their names in `SCORES`.
        deadline: Time of all learners.
        phase: Name of the learners in `deadline.skipped`; "": none is noted.
        minimum: Number of learners that are fitted in any case, unless halted.
        halted: Function that returns True if no further learner is to be begun.
    """
    learners, done, names = list(learners), 0, tuple(names)
    label = f"comparing with {phase or 'other methods'}"
    begun = deadline.units(learners, phase, minimum=minimum, label=label)
    for learner in learners:
        start = time.monotonic()
        try:
            if halted():
                raise BadInput("the run was stopped.")
            if next(begun, None) is None:
                raise OutOfTime
            end = deadline if done >= minimum else NEVER
            scored = problem.scored(learner.predict(problem, end))
        except Exception as error:
            reason = next(iter(str(error).splitlines()), "it failed without a message.")[:200]
            yield Result(learner.name, None, reason=reason)
            continue
        done += 1
        seconds = time.monotonic() - start
        metrics = metrics_of(problem, scored, learner.name, names)
        yield Result(learner.name, scored, metrics, seconds=seconds)
