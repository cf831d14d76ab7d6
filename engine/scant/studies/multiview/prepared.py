"""The rows of a table as the models of multiview learn them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.studies.learned_region import LearnedRegion
from scant.studies.multiview import splits as rows
from scant.studies.multiview.models import Learner
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import LAYERED, MultiviewSettings
from scant.studies.multiview.table import MultiviewData

MeanVariance = tuple[
    Float[np.ndarray, " t"], Float[np.ndarray, " t"]
]  # mean and variance, as learned


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Of the run, settled (`splits.settled`).
        metadata: What labels the arrays on a page (`splits.metadata_of`).
        observed: The rows of known target.
        train: Training rows.
        test: Rows that are held out.
        places: Of the rows in the table.
        transforms: Inputs of the run's model, a transform of each view.
        device: On which models are trained.
    """

    settings: MultiviewSettings
    metadata: dict[str, Any]
    observed: MultiviewData
    train: Int[np.ndarray, " l"]
    test: Int[np.ndarray, " t"]
    places: Int[np.ndarray, " n"]
    transforms: ViewTransforms
    device: torch.device

    @cached_property
    def y(self) -> Float[np.ndarray, " n"]:
        """Targets on the scale on which they are learned."""
        return rows.model_inputs(self.settings, self.observed)

    def joined(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n d"]:
        """The inputs of all views side by side."""
        return np.hstack([view.cpu().numpy() for view in self.transforms.of(x, self.device)])

    @cached_property
    def region(self) -> LearnedRegion:
        """Inputs that were learned from."""
        return LearnedRegion(self.joined(self.observed.x[self.train]))

    def learner_of(
        self,
        name: str,
        train: Int[np.ndarray, " n"],
        transforms: ViewTransforms,
        generator: torch.Generator,
        steps: int = 0,
    ) -> Learner:
        """A model at its starting values, of some of the rows.

        Args:
            name: One of `scant.studies.multiview.entry.MODELS`.
            train: The rows to learn from; censored ones only where the model takes them.
            transforms: Of the views.
            generator: A CPU generator.
            steps: In which it is to be trained; 0: the settings' own number.
        """
        late = np.zeros(len(train), dtype=bool)
        if self.observed.task == "survival":
            late = ~self.observed.event[train]
            if name not in LAYERED or self.settings.bound != "stochastic":
                train, late = train[~late], late[~late]
        return Learner(
            self.settings,
            name,
            transforms.of(self.observed.x[train], self.device),
            torch.as_tensor(self.y[train]).to(self.device),
            self.observed.task == "classification",
            torch.as_tensor(late).to(self.device),
            generator,
            steps or self.settings.max_steps,
        )

    def ask(
        self, learner: Learner, transforms: ViewTransforms, x: Float[np.ndarray, "n f"]
    ) -> MeanVariance:
        """Mean and variance of the target on the scale on which it is learned.

        Args:
            learner: A trained one.
            transforms: Those of its training.
            x: All features of some rows.
        """
        if not len(x):
            return np.empty(0), np.empty(0)
        mean, variance = (v.cpu().numpy() for v in learner.ask(transforms.of(x, self.device)))
        return mean, np.maximum(variance, 1e-300)

    def predictive(self, told: MeanVariance, threshold: float = 0.5) -> Predictive:
        """Distributions of the target in the table's unit; of survival, of the log time.

        Args:
            told: What a model says of rows (see `ask`).
            threshold: On the probability of class 1, from which a row is of it.
        """
        mean, variance = told
        if self.observed.task == "classification":
            decision = (mean >= threshold).astype(int)
            return CategoricalPredictive(np.stack([1 - mean, mean], 1), decision)
        log = rows.logs(self.settings, self.observed.task)
        return MixturePredictive.gaussian(mean, variance, log=log, shift=float(log))
