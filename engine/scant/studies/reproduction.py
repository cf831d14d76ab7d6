"""The form of a study's `reproduce.py`: what its `reproduce` is given and yields.

`reproduce(quick, data, fit)` takes whether less of everything will do, the folder with the
publications' data (None: stand-ins are generated) and `scant.fit`, with which some studies train:
fitting lies above the studies, which do not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from scant.events import Event


class Score(NamedTuple):
    """One figure of one run.

    Attributes:
        experiment: The publication's experiment and its size.
        data: Whose rows: "stand-in for …" in it says that they are not the publication's.
        method: Name of the model and of the way in which it was used.
        metric: Name of the figure.
        value: Ours; NaN for a published method that is not here.
        published: Theirs, where there is one.
    """

    experiment: str
    data: str
    method: str
    metric: str
    value: float
    published: float | None = None


Runs = Iterator[list[Score]]  # the scores of one run after another


class FitEvents(Protocol):
    """The events of a fit, after the last of which `study` is fitted."""

    @property
    def study(self) -> Any: ...
    def __iter__(self) -> Iterator[Event]: ...


Fit = Callable[..., FitEvents]
