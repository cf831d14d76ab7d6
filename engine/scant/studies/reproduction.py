"""The form of a study's `reproduce.py`: what its `reproduce` is given and yields.

`reproduce(quick, data, fit)` takes whether less of everything will do, the folder with the
publications' data (None: stand-ins are generated) and `scant.fit`, with which some studies train:
fitting lies above the studies, which do not import it. It yields runs, which are done one by one
and not at all if their scores are already stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from scant.events import Event, Finished, Report
from scant.studies.figure_data import FigureData


class Experiment(NamedTuple):
    """An experiment of a publication.

    Attributes:
        name: Its name and size.
        data: Whose rows: "stand-in for …" in it says that they are not the publication's.
        varies: What differs between repeats, over which spreads are taken.
    """

    name: str
    data: str
    varies: str


class Score(NamedTuple):
    """One metric of one run.

    Attributes:
        experiment: Experiment that the run is part of.
        method: Name of the model and of the way in which it was used.
        metric: Name of the metric.
        value: Our value.
    """

    experiment: Experiment
    method: str
    metric: str
    value: float


class Run(NamedTuple):
    """A run whose scores are stored together.

    Attributes:
        key: Name of the run, unique in its study.
        scores: Does the run and returns its scores, and data of figures.
    """

    key: str
    scores: Callable[[], Iterable[Score | FigureData]]


Runs = Iterator[Run]


class FitEvents(Protocol):
    """The events of a fit, after the last of which `study` is fitted."""

    @property
    def study(self) -> Any: ...
    def __iter__(self) -> Iterator[Event]: ...


Fit = Callable[..., FitEvents]


def finish(events: Iterable[Event]) -> Report:
    """Train to the end. Other events are not kept: those of 10,000 steps take gigabytes."""
    [last] = deque(events, maxlen=1)
    assert isinstance(last, Finished)
    return last.report
