"""A fitted aggregation study as data, for its report and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from scant.errors import BadInput
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.tasks import TaskGP
from scant.studies import intervals
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.preprocessing import Scale
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.aggregation.stack import Parts, Stack
from scant.studies.aggregation.table import Supports
from torch import Tensor
from torch.distributions import Normal


@dataclass(frozen=True)
class TrainingData:
    """The rows of a run, which a restored study no longer has.

    Attributes:
        observed: Rows of the tasks that the model knows.
        rows: Which of them were learned from.
        data: Those, as the model takes them.
    """

    observed: Supports
    rows: Bool[np.ndarray, " n"]
    data: Data


@dataclass(frozen=True)
class FittedMTGPA:
    """A model with the tasks, scales and picture that it was trained for.

    It stands below `study.py`, which makes it, so that report and answers need not know how the
    model was trained.

    Attributes:
        settings: Of the run.
        model: At its present parameters.
        tasks: Names, as the model numbers them.
        kinds: The likelihood of each task.
        scale: Of each task, from its unit to the model's and back.
        scarce: The task that is asked about.
        dims: Names of the dimensions.
        edges: Of the picture's cells, by dimension; empty where there is no picture.
        whole: All rows of the table, or those of them that were kept with the model.
        device: Where the model is.
        stack: What the model is averaged with for the scarce task.
    """

    settings: AggregationSettings
    model: TaskGP
    tasks: list[str]
    kinds: list[str]
    scale: list[Scale]
    scarce: str
    dims: Sequence[str]
    edges: list[list[float]]
    whole: Supports
    device: torch.device
    stack: Stack | None = None

    def task(self, name: str) -> int:
        """The number of a task of the model.

        Raises:
            BadInput: The model has no such task.
        """
        if name not in self.tasks:
            raise BadInput(f"There is no task {name!r}; the tasks are {', '.join(self.tasks)}.")
        return self.tasks.index(name)

    def data_of(self, observed: Supports, rows: np.ndarray) -> Data:
        """Rows of a table as the model takes them: its own task numbers, values scaled."""
        return space.data_of(observed, rows, self.tasks, self.scale, self.device)

    def ask(
        self, supports: Tensor, task: int, exposure: Tensor | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and deviation of the average, deviation of a new observation; in the task's unit."""
        prediction: MTGPAPrediction = self.model.predict(supports, task, exposure)
        if mixture := self._mixture(supports, task, prediction):
            prediction = mixture.moments()
        offset, factor = self.scale[task].offset, self.scale[task].factor
        mean = offset + factor * prediction.mean
        std, new = (
            factor * prediction.variance.sqrt(),
            factor * (prediction.variance + prediction.noise).sqrt(),
        )
        return mean.cpu().numpy(), std.cpu().numpy(), new.cpu().numpy()

    def _mixture(self, supports: Tensor, task: int, told: MTGPAPrediction) -> Parts | None:
        """What is averaged at some supports, in the unit of the model; None: nothing is."""
        if self.stack is None or task != self.stack.task or not len(supports):
            return None
        return self.stack.parts(supports, told)

    def log_predictive(self, data: Data, task: int) -> np.ndarray:
        """Log densities (or probabilities) of observations of a task, in its unit; nats a row."""
        told: MTGPAPrediction = self.model.predict(data.supports, task)
        if mixture := self._mixture(data.supports, task, told):
            each = Normal(mixture.mean, mixture.std).log_prob(data.y)
            density = (mixture.weights.log() + each).logsumexp(0)
        else:
            density = self.model.log_predictive(data)
        return np.asarray(density.detach().cpu().numpy() - np.log(self.scale[task].factor))

    def ends(self, supports: Tensor, task: int, exposure: Tensor | None = None) -> intervals.Ends:
        """Ends of the intervals of a new observation, in the task's unit."""
        p = torch.as_tensor(intervals.PROBABILITIES).to(supports)
        told: MTGPAPrediction = self.model.predict(supports, task, exposure)
        if mixture := self._mixture(supports, task, told):
            columns = (mixture.weights, mixture.mean, mixture.std)
            own = intervals.mixture(*(c.T.cpu().numpy() for c in columns))
        else:
            own = self.model.quantiles(supports, task, p, exposure).cpu().numpy()
        return np.asarray(self.scale[task].offset + self.scale[task].factor * own)

    def predictions(self, supports: Supports) -> dict[str, np.ndarray]:
        """Moments and intervals of some rows by the names of the catalog (`Entry.predicted`)."""
        out = np.full((3, len(supports)), np.nan)
        ends = np.full((len(intervals.ENDS), len(supports)), np.nan)
        for t in range(len(self.tasks)):
            mine = supports.task == t
            if mine.any():
                exposure = torch.as_tensor(supports.exposure[mine]).to(self.device)
                boxes = space.tensors_of(supports.lo[mine], supports.hi[mine], self.device)
                out[:, mine] = np.stack(self.ask(boxes, t, exposure))
                ends[:, mine] = self.ends(boxes, t, exposure)
        mean, std, new = out
        return {
            **{"mean": mean, "std": std, "std_y": new, "std_model": std},
            "std_noise": np.sqrt(np.maximum(new**2 - std**2, 0)),
            **intervals.columns(ends),
        }

    def field(self, task: str) -> dict[str, np.ndarray]:
        """A task's posterior on the cells of the picture; nothing where there is no picture."""
        sides = [np.asarray(side, float) for side in self.edges]
        number = self.task(task)
        if not sides:
            return {name: np.empty(0) for name in ("mean", "std_f", "std_y")}
        supports = space.tensors_of(*space.cells(sides), self.device)
        return dict(zip(("mean", "std_f", "std_y"), self.ask(supports, number)))

    def snapshot(self) -> dict[str, np.ndarray]:
        """The arrays that the catalog promises while the model is trained."""
        return {
            **self.field(self.scarce),
            "B": self.model.prior.matrices().sum(0).detach().cpu().numpy(),
            "lengthscale": self.model.prior.lengthscales().detach().cpu().numpy(),
        }
