"""The rows of a table as the models learn them, and a model that has learned from them.

What reports, answers, scarcity curves and the methods compared are made from; `Study` makes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scant.studies.intervals import PROBABILITIES, Ends, gaussian
from scant.studies.learned_region import LearnedRegion
from scant.studies.multiview import splits as rows
from scant.studies.multiview import survival
from scant.studies.multiview.entry import LAYERED, MultiviewSettings
from scant.studies.multiview.models import Learner
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.table import MultiviewData
from scipy.special import stdtrit

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


@dataclass(frozen=True)
class FittedMultiview:
    """A model of prepared rows."""

    data: Prepared
    learner: Learner

    def ask(self, x: Float[np.ndarray, "n f"]) -> MeanVariance:
        """Mean and variance of the target on the scale on which it is learned."""
        return self.data.ask(self.learner, self.data.transforms, x)

    def doubt(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """How unsure the model is of rows, and how much of it more data would remove.

        Nothing of a model that does not tell (`Learner.doubt`).
        """
        result = (
            self.learner.doubt(self.data.transforms.of(x, self.data.device)) if len(x) else None
        )
        if result is None:
            return np.empty(0), np.empty(0)
        whole, part = (values.cpu().numpy() for values in result)
        return whole, part

    def ends(self, x: Float[np.ndarray, "n f"], mean: np.ndarray, std: np.ndarray) -> Ends:
        """Ends of the intervals of a new value, on the scale on which it is learned."""
        df = self.learner.tails(self.data.transforms.of(x[:1], self.data.device))
        if np.isinf(df):
            return gaussian(mean, std)
        scale = std * np.sqrt((df - 2) / df)
        return np.asarray(mean + stdtrit(df, PROBABILITIES)[:, None] * scale)

    def removable(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, " n"]:
        """Share of the variance of a new value that more data would remove."""
        views = self.data.transforms.of(x, self.data.device)
        return np.asarray(self.learner.removable(views).cpu().numpy())

    def outside(self, x: Float[np.ndarray, "n f"]) -> Int[np.ndarray, " n"]:
        """1 where the features are unlike those of the learned rows (`LearnedRegion`)."""
        return np.asarray(self.data.region.outside(self.data.joined(x)).astype(np.int64))

    def in_table_units(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "4 n"]:
        """Prediction, deviation and interval in the table's unit (see `splits.in_table_units`)."""
        return rows.in_table_units(self.data.settings, self.data.observed.task, *self.ask(x))

    def hidden(
        self, x: Float[np.ndarray, "n f"]
    ) -> tuple[Float[np.ndarray, "n v"], Float[np.ndarray, "n v"]]:
        """Means and deviations of the hidden neurons at some rows."""
        result = self.learner.hidden(self.data.transforms.of(x, self.data.device))
        mean, std = (values.detach().cpu().numpy() for values in result)
        return mean, std

    def lives(self) -> dict[str, np.ndarray]:
        """The held-out patients and their survival curves; empty where no survival is learned."""
        observed, test = self.data.observed, self.data.test
        if observed.task != "survival":
            return {**survival.no_curves(), **survival.nobody()}
        prediction = survival.patients(observed, test, *self.ask(observed.x[test]))
        return {**survival.curves(prediction), **prediction.arrays()}
