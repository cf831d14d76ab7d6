"""The rows of a table as the models of multiview learn them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.problem import Problem
from scant.studies.learned_region import LearnedRegion
from scant.studies.multiview import splits as rows
from scant.studies.multiview.models import Learner
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import LAYERED, MultiviewSettings
from scant.studies.multiview.table import MultiviewData

Told = CategoricalPredictive | MixturePredictive  # of the target on the scale of learning
MeanVariance = tuple[Float[np.ndarray, " t"], Float[np.ndarray, " t"]]


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

    def problem(
        self,
        train: Int[np.ndarray, " n"],
        query: Int[np.ndarray, " t"],
        transforms: ViewTransforms,
    ) -> Problem:
        """Rows as the models learn them: transformed views side by side, targets on their scale."""
        views, new = (
            [v.cpu().numpy() for v in transforms.of(self.observed.x[r], self.device)]
            for r in (train, query)
        )
        classes = self.observed.task == "classification"
        y = self.y.astype(int) if classes else self.y
        return Problem(
            x=np.hstack(views),
            y=y[train],
            x_test=np.hstack(new),
            y_test=y[query],
            scores=(),
            classes=2 if classes else 0,
            late=~self.observed.event[train] if self.observed.task == "survival" else None,
            views=np.repeat(np.arange(len(views)), [v.shape[1] for v in views]),
        )

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

    def told(self, mean: Float[np.ndarray, " t"], variance: Float[np.ndarray, " t"]) -> Told:
        """Distributions of the target on the scale of learning.

        Args:
            mean: Of classes, the probability of class 1.
            variance: Of a new value.
        """
        if self.observed.task == "classification":
            return CategoricalPredictive(np.stack([1 - mean, mean], 1))
        return MixturePredictive.gaussian(mean, variance)

    def ask(
        self,
        learner: Learner,
        transforms: ViewTransforms,
        x: Float[np.ndarray, "n f"],
        sources: bool = False,
    ) -> Told:
        """What a model says of the target of rows.

        Args:
            learner: A trained one.
            transforms: Those of its training.
            x: All features of some rows.
            sources: Whether it says too what of its uncertainty more data would remove.
        """
        if not len(x):
            return self.told(np.empty(0), np.empty(0))
        views = transforms.of(x, self.device)
        mean, variance = (v.cpu().numpy() for v in learner.ask(views))
        told = self.told(mean, np.maximum(variance, 1e-300))
        if not sources:
            return told
        if isinstance(told, MixturePredictive):
            share = np.asarray(learner.removable(views).cpu().numpy())
            return told.with_sources(share * told.variance, (1 - share) * told.variance)
        doubt = learner.doubt(views)
        return told if doubt is None else replace(told, information=doubt[1].cpu().numpy())

    def predictive(self, told: Told, threshold: float = 0.5) -> Predictive:
        """Distributions of the target in the table's unit; of survival, of the log time.

        Args:
            told: What a model says of rows (see `ask`).
            threshold: On the probability of class 1, from which a row is of it.
        """
        if isinstance(told, CategoricalPredictive):
            decision = (told.probabilities[:, 1] >= threshold).astype(int)
            return replace(told, decision=decision)
        log = rows.logs(self.settings, self.observed.task)
        return replace(told, log=log, shift=float(log))

    def in_table_units(self, told: Told) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation, and the ends of the 95% interval, in the table's unit.

        The prediction is the mean of a value, also where its logarithm is modeled, and the median
        of a time, whose deviation is that of its logarithm. Classes have no interval.
        """
        mean, variance = moments(told)
        if isinstance(told, CategoricalPredictive):
            nothing = np.full(len(mean), np.nan)
            return np.stack([mean, np.sqrt(variance), nothing, nothing])
        if self.observed.task == "survival":
            return np.stack([np.exp(told.median()), told.std, *np.exp(told.interval(0.95))])
        value = self.predictive(told)
        assert isinstance(value, MixturePredictive)
        return np.stack([value.mean, value.std, *value.interval(0.95)])


def moments(told: Told) -> MeanVariance:
    """Mean and variance of the target on the scale of learning; of classes, of 0 and 1."""
    if isinstance(told, CategoricalPredictive):
        p = told.probabilities[:, 1]
        return p, p * (1 - p)
    return told.mean, told.variance
