"""A fitted aggregation study as data, for its report and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from scant.errors import BadInput
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.tasks import TaskGP
from scant.predictive import MixturePredictive
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.beside import known_of
from scant.studies.aggregation.partners import Average
from scant.studies.aggregation.population import People
from scant.studies.aggregation.preprocessing import Scale
from scant.studies.aggregation.settings import COUNTED, AggregationSettings
from scant.studies.aggregation.table import Supports


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
        average: What the model is averaged with for the scarce task.
        people: Whose number weighs the points inside of polygons; None: their areas do.
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
    average: Average | None = None
    people: People | None = None

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
        return space.data_of(
            self.settings, observed, rows, self.tasks, self.kinds, self.scale, self.device
        )

    def unit(self, task: int, exposure: Tensor | None = None) -> Tensor | float:
        """What values of the model are multiplied by: by its scale, and counts to become rates."""
        factor = self.scale[task].factor
        if not self.settings.rate_per or self.kinds[task] not in COUNTED:
            return factor
        per: Tensor | float = factor * self.settings.rate_per
        return per if exposure is None else per / exposure

    def known(self, supports: Supports, rows: np.ndarray, task: int) -> Tensor | None:
        """Variances of known noise of rows of a task, in the unit of the model."""
        factor = self.scale[task].factor
        return known_of(self.settings, supports, rows, factor, self.device)

    def ask(
        self,
        supports: Tensor,
        task: int,
        exposure: Tensor | None = None,
        known: Tensor | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and deviation of the average, deviation of a new observation; in the task's unit."""
        averaged = self.averaged(supports, task, exposure, known)
        if averaged is None:
            told = self.model.predict(supports, task, exposure, known)
            mean, variance, noise = (v.cpu().numpy() for v in told)
        else:
            mean, variance, noise = (
                averaged.mean,
                averaged.model_variance,
                averaged.noise_variance,
            )
        offset, unit = self.scale[task].offset, self.unit(task, exposure)
        factor = unit.cpu().numpy() if isinstance(unit, Tensor) else unit
        return offset + factor * mean, factor * variance**0.5, factor * (variance + noise) ** 0.5

    def averaged(
        self,
        supports: Tensor,
        task: int,
        exposure: Tensor | None = None,
        known: Tensor | None = None,
    ) -> MixturePredictive | None:
        """The model's average with others, in the unit of the model; None: it stands alone."""
        if self.average is None or task != self.average.task or not len(supports):
            return None
        if supports.shape[1] > 2 * len(self.dims):  # polygons, asked of a model of points
            return None
        told = self.model.mixture(supports, task, exposure, known).predictive()
        return self.average.combine(supports, told)

    def field(self, task: str) -> dict[str, np.ndarray]:
        """A task's posterior on the cells of the picture; nothing where there is no picture."""
        sides = [np.asarray(side, float) for side in self.edges]
        number = self.task(task)
        if not sides:
            return {name: np.empty(0) for name in ("mean", "std_f", "std_y")}
        supports = self.boxes(*space.cells(sides))
        return dict(zip(("mean", "std_f", "std_y"), self.ask(supports, number)))

    def boxes(self, lo: np.ndarray, hi: np.ndarray) -> Tensor:
        """Boxes as the model takes them, where covariates have their means."""
        made = space.tensors_of(lo, hi, self.device)
        return torch.cat([made, made.new_zeros(len(made), self.model.prior.covariates)], dim=1)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The arrays that the catalog promises while the model is trained."""
        return {
            **self.field(self.scarce),
            "B": self.model.prior.matrices().sum(0).detach().cpu().numpy(),
            "lengthscale": self.model.prior.lengthscales().detach().cpu().numpy(),
        }
