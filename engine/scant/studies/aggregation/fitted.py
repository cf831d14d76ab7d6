"""A fitted aggregation model as data, for reports and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from scant.studies.aggregation.metadata import cells
from scant.studies.aggregation.partners import Average
from scant.studies.aggregation.population import People
from scant.studies.aggregation.preprocessing import Scale
from scant.studies.aggregation.settings import COUNTED, AggregationSettings
from scant.studies.aggregation.supports import Supports


@dataclass(frozen=True)
class TrainingData:
    """Rows of a run; they are not stored with the model.

    Attributes:
        observed: Rows of the model's tasks.
        rows: Mask of the training rows.
        data: Training rows in the model's form.
    """

    observed: Supports
    rows: Bool[np.ndarray, " n"]
    data: Data


@dataclass(frozen=True)
class FittedMTGPA:
    """A trained model with its tasks, scales and cells.

    Reports and queries use this class, so that they do not depend on the training.

    Attributes:
        settings: Settings of the run.
        metadata: Metadata of the run.
        model: Model at its current parameters.
        whole: All rows of the table, or those stored with the model.
        device: Device of the model.
        average: Calibration of the scarce task; None without calibration.
        people: Population that weights points inside polygons; None: by area.
    """

    settings: AggregationSettings
    metadata: dict[str, Any]
    model: TaskGP
    whole: Supports
    device: torch.device
    average: Average | None = None
    people: People | None = None

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks in the order of their numbers."""
        return list(self.metadata["tasks"])

    @property
    def kinds(self) -> list[str]:
        """Likelihood of each task."""
        return list(self.metadata["likelihoods"])

    @property
    def classes(self) -> dict[str, list[float]]:
        """Class values of each categorical task, in the order of the model."""
        return dict(self.metadata.get("classes", {}))

    @property
    def scale(self) -> list[Scale]:
        """Scale of each task, from the model's unit to the table's."""
        return [Scale(*pair) for pair in self.metadata["scale"]]

    @property
    def scarce(self) -> str:
        """Name of the scarce task."""
        return str(self.metadata["scarce"])

    @property
    def dims(self) -> list[str]:
        """Names of the dimensions."""
        return list(self.metadata["dims"])

    def task(self, name: str) -> int:
        """Number of a task in the model.

        Raises:
            BadInput: The model has no such task.
        """
        if name not in self.tasks:
            raise BadInput(f"There is no task {name!r}; the tasks are {', '.join(self.tasks)}.")
        return self.tasks.index(name)

    def data_of(self, observed: Supports, rows: np.ndarray) -> Data:
        """Rows of a table in the model's form: its task numbers, scaled values."""
        return space.data_of(
            self.settings,
            observed,
            rows,
            self.tasks,
            self.kinds,
            self.scale,
            self.device,
            self.classes,
        )

    def unit(self, task: int, exposure: Tensor | None = None) -> Tensor | float:
        """Factor from the model's values to the table's; it converts counts back to rates."""
        factor = self.scale[task].factor
        if not self.settings.rate_per or self.kinds[task] not in COUNTED:
            return factor
        per: Tensor | float = factor * self.settings.rate_per
        return per if exposure is None else per / exposure

    def known(self, supports: Supports, rows: np.ndarray, task: int) -> Tensor | None:
        """Known noise variances of rows of a task, in the model's unit."""
        factor = self.scale[task].factor
        return known_of(self.settings, supports, rows, factor, self.device)

    def moments(
        self,
        supports: Tensor,
        task: int,
        exposure: Tensor | None = None,
        known_noise: Tensor | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and deviation of the average, deviation of a new observation; in the task's unit."""
        mixture = self.averaged(supports, task, exposure, known_noise)
        if mixture is None:
            prediction = self.model.predict(supports, task, exposure, known_noise)
            mean, variance, noise = (v.cpu().numpy() for v in prediction)
        else:
            mean, variance, noise = mixture.mean, mixture.model_variance, mixture.noise_variance
        offset, unit = self.scale[task].offset, self.unit(task, exposure)
        factor = unit.cpu().numpy() if isinstance(unit, Tensor) else unit
        return offset + factor * mean, factor * variance**0.5, factor * (variance + noise) ** 0.5

    def averaged(
        self,
        supports: Tensor,
        task: int,
        exposure: Tensor | None = None,
        known_noise: Tensor | None = None,
    ) -> MixturePredictive | None:
        """Calibrated prediction of the scarce task in the model's unit; None without
        calibration."""
        if self.average is None or task != self.average.task or not len(supports):
            return None
        if supports.shape[1] > 2 * len(self.dims):  # polygons, predicted by a model of points
            return None
        uncalibrated = self.model.mixture(supports, task, exposure, known_noise).predictive()
        return self.average.combine(supports, uncalibrated)

    def field(self, task: str) -> dict[str, np.ndarray]:
        """Posterior of a task on the figure's cells; empty arrays without cells."""
        lo, hi = cells(self.metadata["edges"])
        moments = self.moments(self.boxes(lo, hi), self.task(task)) if len(lo) else [lo[:, 0]] * 3
        return dict(zip(("mean", "std_f", "std_y"), moments))

    def boxes(self, lo: np.ndarray, hi: np.ndarray) -> Tensor:
        """Boxes in the model's form, with covariates at their means."""
        boxes = space.tensors_of(lo, hi, self.device)
        return torch.cat([boxes, boxes.new_zeros(len(boxes), self.model.prior.covariates)], dim=1)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Arrays of the catalog entry during training."""
        return {
            **self.field(self.scarce),
            "B": self.model.prior.matrices().sum(0).detach().cpu().numpy(),
            "lengthscale": self.model.prior.lengthscales().detach().cpu().numpy(),
        }
