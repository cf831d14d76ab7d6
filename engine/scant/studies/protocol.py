"""The science of each page, one file a study, each with a class `Study` of the form below.

Only workers, notebooks and the command line import these files: they bring torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor

from scant.deadline import Deadline
from scant.errors import BadInput
from scant.events import Report
from scant.optim.state import with_prefix as part
from scant.problem import Comparison
from scant.studies import Settings, entry

Tensors = dict[str, Tensor]


class Step(NamedTuple):
    """What one optimizer step came to (see `events.Progress` for the meaning of both)."""

    elbo: float
    score: float


@runtime_checkable
class FittedStudy(Protocol):
    """What can be asked of a study that is fitted or restored (see `Study`)."""

    settings: Settings
    device: torch.device
    metadata: dict[str, Any]  # names that label the arrays' axes, JSON-able (see `events.Started`)

    @property
    def inputs(self) -> list[str]:
        """Columns of numbers that `predict` reads; none of images, whose pixels tell themselves."""

    def predict(self, table: pd.DataFrame) -> pd.DataFrame: ...
    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]: ...
    def limits(self) -> tuple[str, ...]: ...


@runtime_checkable
class Study(FittedStudy, Protocol):
    """How `training.train` drives a study, and what can be asked of it afterwards.

    A study is made from settings and a table (None: it generates its demonstration data), which
    fixes the split and the scaling. Then, in this order:

    It then says what each row is for (`roles`), which a restored study does not know.

    - `start_restart(r, s, best)` sets up stage s of restart r. With several stages the model goes
      from coarse to fine; a later stage starts from `best`, the best parameters so far of this
      restart. The generator comes from the seed and r alone, so that a resumed run can start any
      restart afresh and `load` into it.
    - `step()` takes one optimizer step. A non-finite `elbo` ends the run as diverged.
    - `parameters()` is what the loop keeps when a score is best (tensors; the loop clones them);
      `state()` is all else that a bitwise resume needs (optimizer, generator, counters).
    - `snapshot()` shows the posterior at the present parameters; it must not draw from the
      generator, for the loop takes snapshots by the clock.
    - `finalize(kept)` gets (score, parameters) of every restart that took a step, chooses or
      combines, computes metrics and baselines, and leaves the study fitted.
    - `comparison(report)` is the problem as a matrix and the answer to it, for rivals; None where
      nothing is held out or rows are no table.
    - `fitted()` is the model as tensors and JSON-able metadata; `restore` is its inverse and needs
      no training table.
    - `predict(table)` keeps the table's rows, order and columns as they are, in front, and adds
      the columns that the catalog names (`Entry.predicted`). A study whose rows depend on each
      other sets `together`: its files are read and predicted as a whole.
    - `explore(question, …)` answers the catalog's questions from the fitted model, no retraining.
    - `limits()` names the methods that predict, then limits of these (`events.Report.limits`).
    """

    notes: list[str]  # said as `Note` events, in order, once
    roles: np.ndarray  # what each row of the table is for: train, validation, test, else empty

    deadline: Deadline  # when the fit is to end, set by the loop; `finalize` goes by it
    search_share: float  # of the deadline's time, that steps may take; the rest is for `finalize`
    scored: bool  # whether anybody reads the report's comparisons; not those of a further fold
    # Takes the report without other methods, before these are fitted; None where nobody waits.
    results: Callable[[Report], None] | None
    # Of a fit on everything, the scored fit: what rows left out of that one have chosen holds.
    earlier: Any

    restarts: int
    stages: int  # of one restart; 1 for most
    max_steps: int  # of one restart, shared by its stages
    patience: int  # steps without a better score before a stage counts as converged; 0: never
    scheduled: bool  # whether steps come to rest at max_steps, so that a restart is then done
    reason: str  # why it is done, in a sentence, where it knows better than the loop; else empty
    tolerance: float  # how much better a score must be to count

    def __init__(
        self, settings: Settings, table: pd.DataFrame | None, device: torch.device
    ) -> None: ...

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None: ...
    def step(self) -> Step: ...
    def snapshot(self) -> dict[str, np.ndarray]: ...

    def parameters(self) -> Tensors: ...
    def state(self) -> Tensors: ...
    def load(self, parameters: Tensors, state: Tensors) -> None: ...

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report: ...
    def comparison(self, report: Report) -> Comparison | None: ...
    def fitted(self) -> tuple[Tensors, dict[str, Any]]: ...
    @classmethod
    def restore(
        cls, settings: Settings, tensors: Tensors, meta: dict[str, Any], device: torch.device
    ) -> FittedStudy: ...


def arrays(tensors: Tensors, prefix: str) -> dict[str, Any]:
    """`part` as NumPy arrays."""
    return {k: v.cpu().numpy() for k, v in part(tensors, prefix).items()}


def to_numpy(values: Tensor) -> np.ndarray:
    """A tensor as an array, without gradients."""
    array: np.ndarray = values.detach().cpu().numpy()
    return array


def clone(tensors: Tensors) -> Tensors:
    """Copies, of which no two share memory, as safetensors wants them."""
    return {k: v.detach().clone().contiguous() for k, v in tensors.items()}


def blob(tensors: Tensors, meta: dict) -> bytes:
    """What `Study.fitted` gives as safetensors, `meta` in the header; `scant.load` reads it."""
    return save(clone(tensors), metadata={"meta": json.dumps(meta)})


def roles(rows: int, **places: Any) -> np.ndarray:
    """The word of each row of a table, by the places of the rows that a word is of.

    A row that is trained on is called so, whatever else it is for (as in a fit on everything).
    """
    result = np.full(rows, "", dtype=object)
    for word, at in sorted(places.items(), key=lambda place: place[0] == "train"):
        result[at] = word
    return result


def required(study: str, table: pd.DataFrame | None) -> pd.DataFrame:
    """The table, for a study that has no data of its own.

    Raises:
        BadInput: There is none.
    """
    if table is None:
        raise BadInput(f"The {study} study needs a table; name a file or a data set.")
    return table


def study_class(name: str) -> type[Study]:
    """The `Study` class of a catalogd study (imports torch and the science).

    Raises:
        NotFound: There is no study of that name.
    """
    result: type[Study] = import_module(f"scant.studies.{entry(name).name}.study").Study
    return result
