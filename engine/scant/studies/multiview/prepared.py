"""A table prepared for the models of multiview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.problem import Problem
from scant.studies.learned_region import LearnedRegion
from scant.studies.multiview import splits as rows
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.metadata import metadata_of, notes
from scant.studies.multiview.models import Learner
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.settings import LAYERED, MultiviewSettings
from scant.studies.multiview.table import of
from scant.studies.protocol import roles
from scant.studies.split import TEST, marks, with_groups

Told = CategoricalPredictive | MixturePredictive  # on the scale of the model
MeanVariance = tuple[Float[np.ndarray, " t"], Float[np.ndarray, " t"]]


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Settings of the run, with choices in place of `auto` (`splits.settled`).
        metadata: Metadata of the run (`metadata.metadata_of`).
        observed: The rows with a target.
        train: Training rows.
        test: Held-out rows.
        places: Positions of the rows in the table.
        transforms: Transforms of the views for the run's model.
        device: Device of the models.
        notes: Notes on the table.
        roles: Role of each row of the table (`protocol.roles`).
    """

    settings: MultiviewSettings
    metadata: dict[str, Any]
    observed: MultiviewData
    train: Int[np.ndarray, " l"]
    test: Int[np.ndarray, " t"]
    places: Int[np.ndarray, " n"]
    transforms: ViewTransforms
    device: torch.device
    notes: Sequence[str] = ()
    roles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @cached_property
    def y(self) -> Float[np.ndarray, " n"]:
        """Targets on the scale of the model."""
        return rows.model_inputs(self.settings, self.observed)

    def joined(self, x: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n d"]:
        """Inputs of all views, concatenated."""
        return np.hstack([view.cpu().numpy() for view in self.transforms.of(x, self.device)])

    def problem(
        self,
        train: Int[np.ndarray, " n"],
        query: Int[np.ndarray, " t"],
        transforms: ViewTransforms,
    ) -> Problem:
        """Problem with transformed views side by side, and targets on the scale of the model."""
        views, test_views = (
            [v.cpu().numpy() for v in transforms.of(self.observed.x[r], self.device)]
            for r in (train, query)
        )
        classes = self.observed.task == "classification"
        y = self.y.astype(int) if classes else self.y
        return Problem(
            x=np.hstack(views),
            y=y[train],
            x_test=np.hstack(test_views),
            y_test=y[query],
            scores=(),
            classes=2 if classes else 0,
            late=~self.observed.event[train] if self.observed.task == "survival" else None,
            views=np.repeat(np.arange(len(views)), [v.shape[1] for v in views]),
        )

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the training rows."""
        return LearnedRegion(self.joined(self.observed.x[self.train]))

    def learner_of(
        self,
        name: str,
        train: Int[np.ndarray, " n"],
        transforms: ViewTransforms,
        generator: torch.Generator,
        steps: int = 0,
    ) -> Learner:
        """Create an untrained model of some rows.

        Args:
            name: One of `scant.studies.multiview.settings.MODELS`.
            train: Training rows; censored ones are dropped if the model cannot use them.
            transforms: Transforms of the views.
            generator: A CPU generator.
            steps: Number of training steps; 0: that of the settings.
        """
        censored_rows = np.zeros(len(train), dtype=bool)
        if self.observed.task == "survival":
            censored_rows = ~self.observed.event[train]
            if name not in LAYERED or self.settings.bound != "stochastic":
                train, censored_rows = train[~censored_rows], censored_rows[~censored_rows]
        return Learner(
            self.settings,
            name,
            transforms.of(self.observed.x[train], self.device),
            torch.as_tensor(self.y[train]).to(self.device),
            self.observed.task == "classification",
            torch.as_tensor(censored_rows).to(self.device),
            generator,
            steps or self.settings.max_steps,
        )

    def told(self, mean: Float[np.ndarray, " t"], variance: Float[np.ndarray, " t"]) -> Told:
        """Predictive distributions on the scale of the model.

        Args:
            mean: Mean, or probability of class 1.
            variance: Variance of a new value.
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
        """Predictive distributions of a trained model, on its scale.

        Args:
            learner: The trained model.
            transforms: Transforms of its views.
            x: All features of some rows.
            sources: True to separate the uncertainty that more data would remove.
        """
        if not len(x):
            return self.told(np.empty(0), np.empty(0))
        views = transforms.of(x, self.device)
        mean, variance = (v.cpu().numpy() for v in learner.ask(views))
        prediction = self.told(mean, np.maximum(variance, 1e-300))
        if not sources:
            return prediction
        if isinstance(prediction, MixturePredictive):
            share = np.asarray(learner.removable(views).cpu().numpy())
            return prediction.with_sources(
                share * prediction.variance, (1 - share) * prediction.variance
            )
        doubt = learner.doubt(views)
        return (
            prediction if doubt is None else replace(prediction, information=doubt[1].cpu().numpy())
        )

    def predictive(self, prediction: Told, threshold: float = 0.5) -> Predictive:
        """Predictive distributions in the table's unit; for survival, of the log time.

        Args:
            prediction: Predictive distributions of `ask`.
            threshold: Minimum probability of class 1 for the prediction of class 1.
        """
        if isinstance(prediction, CategoricalPredictive):
            decision = (prediction.probabilities[:, 1] >= threshold).astype(int)
            return replace(prediction, decision=decision)
        log = rows.logs(self.settings, self.observed.task)
        return replace(prediction, log=log, shift=float(log))

    def in_table_units(self, prediction: Told) -> Float[np.ndarray, "4 n"]:
        """Prediction, standard deviation, and ends of the 95% interval, in the table's unit.

        The prediction is the mean of a value, also if its logarithm is modeled, and the median of a
        time, whose standard deviation is that of its logarithm. Classes have no interval.
        """
        mean, variance = moments(prediction)
        if isinstance(prediction, CategoricalPredictive):
            undefined = np.full(len(mean), np.nan)
            return np.stack([mean, np.sqrt(variance), undefined, undefined])
        if self.observed.task == "survival":
            return np.stack(
                [np.exp(prediction.median()), prediction.std, *np.exp(prediction.interval(0.95))]
            )
        value = self.predictive(prediction)
        assert isinstance(value, MixturePredictive)
        return np.stack([value.mean, value.std, *value.interval(0.95)])


def moments(prediction: Told) -> MeanVariance:
    """Mean and variance of the target on the scale of the model; classes count as 0 and 1."""
    if isinstance(prediction, CategoricalPredictive):
        p = prediction.probabilities[:, 1]
        return p, p * (1 - p)
    return prediction.mean, prediction.variance


def prepare(settings: MultiviewSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Split a table and transform its views.

    Raises:
        BadInput: The table does not fit the settings.
    """
    table = with_groups(table, settings.split_by)
    whole = of(table, settings.task, settings.positive_class)
    places = rows.known(whole)
    observed, marked = whole.take(places), marks(table)[places]
    settings = rows.settled(settings, observed)
    train, test = rows.split(settings, observed, marked=marked)
    metadata = metadata_of(settings, observed, train, test)
    if (marked == TEST).any():
        metadata["marked"] = True
    return Prepared(
        settings=settings,
        metadata=metadata,
        observed=observed,
        train=train,
        test=test,
        places=places,
        transforms=ViewTransforms.at(
            observed, rows.views_of(settings, observed), train, settings.n_components
        ),
        device=device,
        notes=notes(settings, observed, train),
        roles=roles(len(whole), train=places[train], test=places[test]),
    )
