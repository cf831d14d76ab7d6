"""Redshift: GPz on photometry, with coarse-to-fine starts and a mixture of restarts.

The study extends the model of `scant.models.gpz.model` (each extension is a setting, off under the
preset "as published"): colors and limited outliers (`preprocessing`), stages that free the basis
functions' covariances step by step (`restart`, `growth`), and restarts on other splits of training
and validation rows, with averaged predictions (`ensemble`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from scant.deadline import Deadline
from scant.events import Report
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AUTO, CHOSEN, TRAINING_SHARE
from scant.studies.densities import MOST
from scant.studies.predicted_table import by_levels, interval_columns, with_columns
from scant.studies.protocol import Step, Tensors
from scant.studies.redshift.capacity import grows
from scant.studies.redshift.explore import answer
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.growth import Growth
from scant.studies.redshift.growth_budget import FREE, GrowthBudget
from scant.studies.redshift.prepared import Prepared
from scant.studies.redshift.report import write_report
from scant.studies.redshift.rescaling import finished
from scant.studies.redshift.restart import Restart, stages_to
from scant.studies.redshift.settings import SHAPES, RedshiftSettings
from scant.studies.redshift.shapes import new_model, shape_of
from scant.studies.trained import TrainedStudy

if TYPE_CHECKING:
    from scant.models.gpz.distributed import Processes


class Study(TrainedStudy):
    """GPz on one table (see `scant.studies.protocol.Study` for how it is driven)."""

    prepare = staticmethod(lambda settings, table, _device: Prepared(settings, table))
    settings: RedshiftSettings
    data: Prepared
    search: Growth | Restart  # trains the models
    held_scores: Scored  # of the held-out rows, after the fit

    def __init__(
        self,
        settings: RedshiftSettings,
        table: pd.DataFrame | None,
        device: torch.device,
        prepared: Prepared | None = None,
    ) -> None:
        super().__init__(settings, table, device, prepared)
        self.features, self.T = self.data.features, self.data.T.to(device)

    def _configure(self, settings: RedshiftSettings, device: torch.device) -> None:
        super()._configure(settings, device)
        self.grows = grows(settings)
        if self.grows:  # one restart of the loop trains all models and finds its own end
            self.models, self.restarts, self.patience = settings.restarts, 1, 0
        else:
            self.structures = stages_to(settings.covariance, settings.start)
            self.stages = len(self.structures)
        self._processes: Processes | None = None
        self._fitted: FittedGPz | None = None

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s, data = self.settings, self.data
        rows = Rows.of(data.learn, data.features, self.T, data.target, s, self.device)
        make = partial(new_model, s, len(self.T), self.device)
        if self.grows:
            folds = [Fold(rows, *data.division(k), data.target) for k in range(self.models)]
            n, seconds = len(folds[0].train.y), self.search_share * s.time_budget
            budget = GrowthBudget.of(s, n, len(self.T), self.models, seconds)
            self.search = Growth(folds, budget, make, s.seed, s.patience, self._place)
            return
        fold = Fold(rows, *data.division(restart), data.target)
        generator = restart_generator(s.seed, restart)
        model = make(s.n_basis, self.structures[stage])
        self.search = Restart(fold, model, self._place, generator, best)

    def _place(self, patterns: list[Pattern], n_basis: int) -> RowSums:
        """Put training rows into this process, or share them with others."""
        if self.settings.workers == 1:
            return LocalRows(patterns, n_basis)
        from scant.models.gpz.distributed import DistributedRows, Processes

        self._processes = self._processes or Processes(self.settings.workers)
        return DistributedRows(patterns, n_basis, self._processes)

    def step(self) -> Step:
        step = self.search.step()
        self._note(self.search.notes)
        if self.search.ended:
            self.max_steps = self.search.steps
            self.reason = f"Growth has ended: {self.search.ended}."
        return step

    def parameters(self) -> Tensors:
        return self.search.parameters()

    def state(self) -> Tensors:
        return self.search.state()

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self.search.load(parameters, state)

    def snapshot(self) -> dict[str, np.ndarray]:
        x, z = self.data.live
        x = x.to(self.device)
        if self._fitted is not None:
            model, to_x = self._fitted.ensemble.models[0], torch.eye(x.shape[1]).to(x)
            standardized = self._fitted.ensemble.predict(x)
        else:
            model, to_x, x = self.search.folds[0].model, self.T, x @ self.T.T
            standardized = model.predict(x).predictive()
        predictive = self.data.target.restore(standardized)
        return {
            "z_true": z,
            "z_mean": predictive.mean,
            "std_model": np.sqrt(predictive.model_variance),
            "std_noise": np.sqrt(predictive.noise_variance),
            "relevance": np.sort(model.relevance().cpu().numpy())[::-1].copy(),
            "feature_relevance": sensitivity(model, x, to_x),
        }

    # --- after training -------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        data, train = self.data, self._from_growth if self.grows else self._from_restarts
        folds, unseen = train(restarts)
        numerical = list[str]()
        with collect_numerical_warnings(numerical):
            self._fitted = FittedGPz.fit(data, folds, unseen, self.T, self.deadline)
            self.held_scores = self._fitted.score(data.held)
        if isinstance(self.search, Growth):
            tried = self.search.history()
        else:
            size = self.settings.n_basis, SHAPES.index(self.settings.covariance), FREE
            tried = [[*size, score, 0.0] for score, _ in restarts]
        of_run = self._fitted, data.problem, self.held_scores

        def write(deadline: Deadline) -> Report:
            with collect_numerical_warnings(numerical):
                report = write_report(*of_run, deadline)
            arrays = {**report.arrays, "tried": np.array(tried, dtype=float)}
            return replace(report, arrays=arrays, notes=(*report.notes, *numerical))

        return self._report(write)

    def _from_restarts(
        self, restarts: list[tuple[float, Tensors]]
    ) -> tuple[list[Fold], list[GPzPrediction]]:
        """Return all restarts' folds, or the best one's, and predictions of their unseen rows."""
        chosen = list(range(len(restarts)))
        if self.settings.combine == "best":
            chosen = [max(chosen, key=lambda r: restarts[r][0])]
        folds, unseen = list[Fold](), list[GPzPrediction]()
        for r in chosen:
            self.start_restart(r, self.stages - 1, restarts[r][1])
            [fold] = self.search.folds
            folds.append(fold)
            unseen.append(fold.predict()[0])
        return folds, unseen

    def _from_growth(
        self, restarts: list[tuple[float, Tensors]]
    ) -> tuple[list[Fold], list[GPzPrediction]]:
        """Return folds with their final models, whose size and shape go to the metadata."""
        if not hasattr(self, "search"):  # resumed after the last step
            self.start_restart(0, 0, None)
        growth = self.search
        assert isinstance(growth, Growth)
        _, scores, unseen = finished(growth, restarts[0][1])
        folds = growth.folds
        if self.settings.combine == "best":
            best = int(np.argmax(scores))
            folds, unseen = [folds[best]], [unseen[best]]
        model, first = folds[0].model, growth.budget.first
        choices = {
            "n_basis": (len(model.centres), first.n_basis, "the first size tried"),
            "covariance": (shape_of(model), first.shape, "the first shape tried"),
        }
        for name, (value, initial, if_first) in choices.items():
            if getattr(self.settings, name) == AUTO:
                reason = f"unseen rows were predicted better up to this, from {first} on"
                choice = [value, if_first if value == initial else reason]
                self.metadata.setdefault(CHOSEN, {})[name] = choice
        return folds, unseen

    @property
    def search_share(self) -> float:  # type: ignore[override]
        """Share of the time budget for the search; without a deadline gaps have no reserve."""
        if not math.isfinite(self.deadline.seconds):
            return TRAINING_SHARE
        return TRAINING_SHARE - self.data.gap_reserve / self.settings.time_budget

    def comparison(self, report: Report) -> Comparison | None:
        return Comparison(self.data.problem, self.held_scores.predictive)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        return self.posterior.to_tensors(self.metadata)

    @classmethod
    def restore(
        cls,
        settings: RedshiftSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study._configure(settings, device)
        study.metadata = meta["words"]
        study._fitted = FittedGPz.from_tensors(settings, tensors, meta, device)
        study.features = study._fitted.features
        return study

    @property
    def posterior(self) -> FittedGPz:
        """The fitted models, for reports and queries."""
        assert self._fitted is not None, "finalize comes first"
        return self._fitted

    @cached_property
    def _explored(self) -> FittedGPz:
        """Copy for queries: `predict` does not use models that are learned for queries."""
        return self.posterior.copy()

    @property
    def inputs(self) -> list[str]:
        return self.features.columns

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the columns of the catalog added.

        Intervals are quantiles of the mixture of the averaged models and, where values are missing,
        of their possible values, not of a Gaussian with its moments.

        Raises:
            BadInput: The table has no feature.
        """
        query = self.posterior.checked(table)
        predictive = self.posterior.predict(query)
        added = {
            "mean": predictive.mean,
            "std": predictive.std,
            "std_model": np.sqrt(predictive.model_variance),
            "std_noise": np.sqrt(predictive.noise_variance),
            "std_input": np.sqrt(predictive.input_variance),
        }
        intervals = interval_columns(predictive.quantile)
        outside = self.posterior.outside(query)
        return with_columns(table, {**added, **intervals, "outside": outside})

    def densities(self, table: pd.DataFrame, most: int = MOST) -> MixturePredictive:
        """p(z) of each row as at most `most` Gaussians, with mean and variance of its mixture.

        Raises:
            BadInput: The table has none of the features, or a cell is not a usable number.
        """
        return self.posterior.predict(self.posterior.checked(table)).reduced(most)

    def limits(self) -> tuple[str, ...]:
        """Prediction methods, then their limits (`scant.events.Report.limits`)."""
        return self.posterior.limits()

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer "without" (bands switched off) or "density" (one galaxy's p(z))."""
        return answer(self._explored, question, query)


def sensitivity(model: GPz, X: Float[Tensor, "n q"], to_x: Float[Tensor, "q d"]) -> np.ndarray:
    """Share of each measurement in the mean squared slope of the prediction."""
    X = X.detach().clone().requires_grad_()
    with torch.enable_grad():
        total = (model.design(X)[1] @ model.weight_mean).sum()
        (slope,) = torch.autograd.grad(total, X)
    share = (slope @ to_x).square().mean(dim=0)
    return (share / share.sum().clamp(min=1e-300)).cpu().numpy()
