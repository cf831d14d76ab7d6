"""Stacked ensemble of GPz models and other regressions: the predictor of a redshift study.

Left-out rows choose the weights (`scant.ensemble`). A few dozen rows cannot identify the best
member, so a GP averaged over its hyperparameters has a strong prior. Errors have heavier tails and
a sharper middle than members predict, and trees are too wide: left-out rows also rescale and
contract the members or their mixture, whichever predicts other left-out rows better. GPz alone
predicts rows with missing values, which it integrates over, unless they lack few of many columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import norm
from torch import Tensor

from scant.deadline import NEVER, Deadline
from scant.ensemble import Contracted, Ensemble, Rescaled, stacking
from scant.models.anchored_gp import SEARCH_ROWS
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.input_density import (
    chosen_components,
    fill,
    fit_mixture,
    single_gaussian,
    spread_start,
)
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.predictive import MixturePredictive
from scant.studies.auto import AUTO
from scant.studies.protocol import Tensors, part
from scant.studies.redshift.components import MIN_COLUMNS
from scant.studies.redshift.fold import Fold
from scant.studies.redshift.members import (
    EQUAL,
    MARGINAL,
    MARGINAL_GP_MAX_ROWS,
    MEMBERS,
    NEAREST,
    TRIVIAL,
    Model,
    fit_members,
)
from scant.studies.redshift.settings import BASIS_FUNCTIONS
from scant.studies.redshift.shapes import stored_model

# Components of the density of the inputs that fills missing values, unless `missing` is auto and
# left-out rows choose. On SDSS galaxies with two of five bands missing 8, 15, 25 and 40 gave RMSE
# .083, .091, .088, .088: more only follow noise.
DENSITY_COMPONENTS = 8
MAX_FILLED_SHARE = 0.1  # of a row's columns; with more missing, GPz alone predicts it
MAX_LEFT_OUT = 5000  # left-out rows of a fold that choose weights
MEMBERS_SHARE = 0.4  # of the time left, for the first fold's members; further folds are quick
RANGE_MARGIN = 0.1  # of the targets' range; means of GPz may leave the range by it
PRIOR = 0.3  # prior count of a member, in rows
MARGINAL_GP_PRIOR = 10.0  # of the GP averaged over its hyperparameters
PART_PRIOR = 1.0  # of a component of a GP of the nearest rows

# Shape of the mixture, and of each member beforehand. Rescaled members were better by .001 to .031
# nats on five tables of 5,000 to 8,000 galaxies, the rescaled mixture by .08 on a table with many
# zeros (Fair's survey) and by .007 on four of 62 to 303 rows.
CORRECTIONS = ((Rescaled, None), (Contracted, Rescaled))

GPZ = "GPz"
NAMES = (GPZ, *MEMBERS)


@dataclass(frozen=True, eq=False)
class GPzEnsemble:
    """GPz models of the same inputs x, and further members.

    The GPz models are an equal mixture. Their disagreement counts as model variance: with more
    data they would agree.

    Attributes:
        models: GPz models in coordinates x.
        average: Weights by `NAMES`, and the shape of the mixture; None: GPz alone.
        beside: Fitted further members that have a weight.
        parts: Weights of the components of a GP of the nearest rows.
        T: Matrix from the inputs x to the coordinates that the members were trained in.
        low: Lower bound on GPz's means.
        high: Upper bound.
    """

    models: Sequence[GPz]
    average: Ensemble[MixturePredictive] | None = None
    beside: Mapping[str, Model] = field(default_factory=dict)
    parts: tuple[float, ...] = EQUAL
    T: Float[Tensor, "q d"] = field(default_factory=lambda: torch.zeros(0, 0))
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    @torch.no_grad()
    def fit(
        cls,
        folds: Sequence[Fold],
        models: Sequence[GPz],
        left_out: Sequence[GPzPrediction],
        T: Float[Tensor, "q d"],
        deadline: Deadline = NEVER,
        quick: bool = False,
        contrasts: Float[np.ndarray, "k q"] | None = None,
        omitted: Collection[str] = (),
    ) -> GPzEnsemble:
        """Weigh GPz and other members by the left-out rows of each fold.

        Args:
            folds: Divisions of the same rows.
            models: GPz of each fold, in the coordinates of its rows.
            left_out: Predictions of each fold's left-out rows by its GPz.
            T: Matrix from the inputs x to these coordinates.
            deadline: Deadline of the fit; part of the time is for the first fold's members.
            quick: Whether to omit members that take long and to shorten the search.
            contrasts: Combinations of these coordinates (`Features.contrasts`).
            omitted: Shapes of further members to omit.
        """
        rows = folds[0].rows
        low, high = float(rows.y.min()), float(rows.y.max())
        margin = RANGE_MARGIN * (high - low)
        low, high = low - margin, high + margin
        members = [
            m for m in MEMBERS.values() if m.supports(len(rows.y), quick) and m.shape not in omitted
        ]
        theta: Mapping[str, Any] = {}
        search_deadline, scored = deadline.share(MEMBERS_SHARE), slice(MAX_LEFT_OUT)
        predictions = list[dict[str, MixturePredictive]]()
        targets, halves = list[np.ndarray](), list[np.ndarray]()
        work = deadline.units(zip(folds, models, left_out), "folds of the average", minimum=1)
        for fold, model, moments in work:
            fold_members = fit_members(
                fold, fold.train, [model], members, theta, quick, search_deadline, contrasts
            )
            members, search_deadline = [m for m in members if m.name in fold_members], NEVER
            if len(fold.train.y) > SEARCH_ROWS:  # hyperparameters hardly depend on any one row
                theta = {n: getattr(m, "theta", None) for n, m in fold_members.items()}
            gpz = replace(moments, mean=moments.mean.clamp(low, high)).predictive().rows(scored)
            x = fold.asked[scored].cpu().numpy()
            others = {m.name: m.predict(fold_members[m.name], x, gpz, low, high) for m in members}
            predictions.append({GPZ: gpz, **others})
            targets.append(fold.unseen.y[scored].cpu().numpy())
            halves.append(fold.validation[scored].cpu().numpy() % 2)
        y = np.concatenate(targets)
        joined = {n: MixturePredictive.concat([p[n] for p in predictions]) for n in predictions[0]}
        nearest = [m.name for m in members if m.shape == NEAREST]
        parts = _part_weights(joined[nearest[0]], y) if nearest else EQUAL
        for name in nearest:
            weights = np.broadcast_to(parts, joined[name].weights.shape)
            joined[name] = replace(joined[name], weights=weights, shares=None)
        prior = [PRIOR, *(MARGINAL_GP_PRIOR if m.shape == MARGINAL else PRIOR for m in members)]
        trivial = TRIVIAL if len(rows.y) > MARGINAL_GP_MAX_ROWS else None
        average = Ensemble.fit_best(
            CORRECTIONS, joined, y, np.concatenate(halves), trivial, prior
        ).reindex(NAMES)
        used = [MEMBERS[name] for name in average.used if name != GPZ]
        refitted = fit_members(folds[0], rows, models, used, theta, quick, NEVER, contrasts)
        return cls([in_coordinates(m, T) for m in models], average, refitted, parts, T, low, high)

    @torch.no_grad()
    def fit_density(self, x: Float[Tensor, "n d"], missing: str = "integrate") -> None:
        """Fit one density of the inputs for all GPz models, by EM to all rows (5.22-5.34).

        Args:
            x: Rows, NaN where missing.
            missing: The setting. "basis functions" gives each model a density of its own, unless
                it is trained on other coordinates than x (`GPz.projection`).
        """
        first = self.models[0]
        m = len(first.centres)
        gaussian = single_gaussian(x)
        k = 1 if missing == "one Gaussian" else min(m, DENSITY_COMPONENTS)
        if missing == AUTO:
            k = min(m, chosen_components(x))
        complete = x[~x.isnan().any(1)]
        if len(complete) < k:  # where the models have other coordinates, their centres are no rows
            complete = first.centres if first.projection is None else fill(x, gaussian)
        # Rows spread over the data are a sounder start than far centres.
        result = fit_mixture(x, spread_start(gaussian, complete, k), free=True)
        for model in self.models:
            model.mixture_log_weights = result.log_weights
            model.mixture_means = result.means
            model.mixture_precisions = result.precisions
            model.input_mean, model.input_precision = gaussian.means[0], gaussian.precisions[0]
            if missing == BASIS_FUNCTIONS and model.projection is None:
                model.mixture_log_weights = x.new_zeros(m)
                model.mixture_means = x.new_zeros(m, x.shape[1])
                model.mixture_precisions = x.new_zeros(m, x.shape[1], x.shape[1])
                model.fit_density(x, free=False)

    @torch.no_grad()
    def predict(
        self, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None = None
    ) -> MixturePredictive:
        """Predict standardized targets.

        Args:
            x: Inputs, NaN where missing.
            noise: Variances of the inputs, for GPz alone.
        """
        gpz_predictions = [self._predict_gpz(model, x, noise) for model in self.models]
        gpz = gpz_predictions[0]
        if len(gpz_predictions) > 1:
            gpz = MixturePredictive.mixed(
                gpz_predictions, np.full(len(gpz_predictions), 1 / len(gpz_predictions))
            )
        if self.average is None:
            return gpz
        completed = self._completed(x)
        complete = completed.isfinite().all(1)
        rows, rest = (at.nonzero().squeeze(1).cpu().numpy() for at in (complete, ~complete))
        if not len(rows):
            return gpz
        z = (completed[complete] @ self.T.T).cpu().numpy()
        gpz_rows = gpz.rows(rows)
        predictions = {GPZ: gpz_rows}
        for name, model in self.beside.items():
            member, bounds = MEMBERS[name], (self.low, self.high)
            predictions[name] = member.predict(model, z, gpz_rows, *bounds, self.parts)
        mixed = self.average.combine(predictions)
        return MixturePredictive.gathered([(rows, mixed), (rest, gpz.rows(rest))])

    def _predict_gpz(
        self, model: GPz, x: Float[Tensor, "n d"], noise: Float[Tensor, "n d"] | None
    ) -> MixturePredictive:
        components = model.predict_components(x, noise)
        mean = components.mean.clamp(self.low, self.high)
        return replace(components, mean=mean).predictive()

    def _completed(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Fill rows for the members other than GPz.

        A few missing columns of many hardly affect means. They are replaced by their expectation,
        as in training (`fold.completes`); GPz gives the variance due to them.
        """
        first = self.models[0]
        if first.projection is None or x.shape[1] <= MIN_COLUMNS:
            return x
        rows = x.isnan().sum(1) <= MAX_FILLED_SHARE * x.shape[1]
        completed = x.clone()
        if bool(rows.any()):
            completed[rows] = first.complete(x[rows])
        return completed

    def tensors(self) -> Tensors:
        """Tensors for `from_tensors`."""
        states = [model.state_dict() for model in self.models]
        tensors = {f"{k}.{name}": v for k, state in enumerate(states) for name, v in state.items()}
        if self.average is not None:
            tensors["stack.T"] = self.T
        for name, model in self.beside.items():
            k = list(MEMBERS).index(name)
            tensors |= {f"stack.{k}.{n}": value for n, value in model.tensors().items()}
        return tensors

    def meta(self) -> dict[str, Any] | None:
        """Metadata for `from_tensors`, ready for JSON; None for GPz alone."""
        if self.average is None:
            return None
        bounds = {"low": self.low, "high": self.high}
        return {**self.average.meta(), "parts": list(self.parts), **bounds}

    @classmethod
    def from_tensors(
        cls,
        tensors: Tensors,
        count: int,
        settings: Any,
        device: torch.device,
        meta: Mapping[str, Any] | None,
    ) -> GPzEnsemble:
        """Restore an ensemble of `count` GPz models."""
        models = [stored_model(part(tensors, f"{k}."), settings).to(device) for k in range(count)]
        if not meta:
            return cls(models)
        shape = Contracted if meta.get("method_shapes") else Rescaled
        average = Ensemble.from_meta(meta, NAMES, shape, Rescaled)
        further = {
            name: member.from_tensors(part(tensors, f"stack.{k}."))
            for k, (name, member) in enumerate(MEMBERS.items())
            if name in average.used
        }
        parts, T = tuple(meta.get("parts", EQUAL)), tensors["stack.T"]
        return cls(models, average, further, parts, T, meta["low"], meta["high"])


def _part_weights(nearest: MixturePredictive, y: Float[np.ndarray, " n"]) -> tuple[float, ...]:
    """Weights of the components of a GP of the nearest rows, by left-out rows."""
    density = norm.logpdf(y[:, None], nearest.means, np.sqrt(nearest.variances))
    return tuple(stacking.weights(density, prior=PART_PRIOR, min_weight=0.0).tolist())
