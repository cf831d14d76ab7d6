"""Separate models for rows that lack some measurements.

The expectation over missing values (Almosallam 2017, 5.22-5.40) is as good as the density of the
inputs, and a mixture hardly describes ten correlated magnitudes and errors. If enough rows have the
other columns, p(z | other columns) can be learned from these rows directly, without a density.
Patterns of missing values (gaps) of a table get such models while time lasts. Learned rows are
stored with the model, so that models of further patterns can be learned when a table to predict has
them; any other gap is integrated over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.deadline import Deadline
from scant.models.gpz.row_sums import LocalRows
from scant.studies.protocol import Tensors, part
from scant.studies.redshift import components
from scant.studies.redshift.capacity import GAPS_LEFT, MOST_GAPS, gap_time, gaps_when_asked
from scant.studies.redshift.ensemble import GPzEnsemble
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.gap_patterns import GapPatterns, LearnedRows, Measured
from scant.studies.redshift.growth import Growth
from scant.studies.redshift.growth_budget import GrowthBudget
from scant.studies.redshift.members import NEAREST
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.rescaling import finished
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.shapes import new_model
from scant.studies.redshift.target import Target

MAX_BASIS_SMALL = 100  # basis functions, where rows are few
LISTED = 6  # gaps with a model that limits list
DENSITIES = {  # by the setting `missing`
    "integrate": "a Gaussian mixture fitted to all training rows by EM; the publication uses the "
    "centers and covariances of the basis functions",
    "one Gaussian": "one Gaussian fitted to all training rows; the publication uses the centers "
    "and covariances of the basis functions",
    "basis functions": "the density of centers and covariances of the basis functions, as "
    "published",
}
PATIENCE = 8  # steps without a better score that end a stage


@dataclass(frozen=True)
class MissingPatternModel:
    """A model of the columns that are measured in a pattern."""

    features: Features
    ensemble: GPzEnsemble


class MissingPatternModels:
    """Models of rows with missing values, by pattern.

    Args:
        features: Features of complete rows.
        models: Models by the coordinates that were measured.
    """

    def __init__(self, features: Features, models: dict[Measured, MissingPatternModel]) -> None:
        self.features, self.models = features, models

    def parts(
        self, x: Float[Tensor, "n d"]
    ) -> Iterator[tuple[MissingPatternModel | None, Int[np.ndarray, " r"]]]:
        """Yield models with the rows to predict; None: model of complete rows."""
        observed = (~x.isnan()).cpu().numpy()
        rest = np.ones(len(x), dtype=bool)
        for measured, pattern_model in self.models.items():
            rows = (observed == measured).all(1)
            if rows.any():
                rest &= ~rows
                yield pattern_model, np.flatnonzero(rows)
        if rest.any():
            yield None, np.flatnonzero(rest)

    def copy(self) -> MissingPatternModels:
        """Return a copy; models added to it are not added here."""
        return MissingPatternModels(self.features, dict(self.models))

    def learn(
        self,
        query: Float[Tensor, "n d"],
        target: Target,
        settings: RedshiftSettings,
        learned: LearnedRows,
        device: torch.device,
    ) -> None:
        """Add models of the patterns of rows to predict, the most frequent first.

        How many there are and which have a GP of the nearest rows depends on the gaps that were
        met so far, not on the clock.

        Args:
            query: Rows to predict (`lacking`).
            target: Scale of the target.
            settings: Settings of the run.
            learned: Rows of the fit.
            device: Device of the models.
        """
        features = self.features
        query = query[query.isnan().any(1)]
        if not len(query):
            return
        patterns = GapPatterns.of(features, features.inputs(learned.table), learned.unseen, query)
        present = set(map(tuple, np.unique((~query.isnan()).numpy(), axis=0).tolist()))
        new = [p for p in patterns.measured if p in present and p not in self.models]
        n_gaps = len(self.models) + len(new)
        time = gaps_when_asked(settings, n_gaps, len(learned.table))
        n_left = max(time.n_models - len(self.models), 0)
        for k, p in enumerate(new[:n_left], len(self.models)):
            self.models[p] = _fit_pattern(
                p, features, target, settings, learned, time.growth, k < time.with_nearest, device
            )

    def limits(self, settings: RedshiftSettings, learned: LearnedRows | None) -> list[str]:
        """Sentences on the prediction of rows with missing values.

        Args:
            settings: Settings of the run.
            learned: Rows to learn models of further gaps from; None: no further models.
        """
        sentences, others = [], ""
        if self.models:
            every = ["without " + ", ".join(self._lacking(measured)) for measured in self.models]
            more = f" and {len(every) - LISTED} more" if len(every) > LISTED else ""
            sentences.append(
                f"Rows {'; '.join(every[:LISTED])}{more} are predicted by models of the remaining "
                "columns."
            )
            others = "other "
        max_models = 0
        if learned is not None:
            max_models = gaps_when_asked(settings, MOST_GAPS, len(learned.table)).n_models
        if max_models > len(self.models):
            sentences.append(
                f"If a table to predict lacks {others}columns, models of the remaining columns are "
                "trained when the table is given: for the most frequent gaps first, as many as "
                "fit into the time budget."
            )
            others = "other "
        density = DENSITIES.get(settings.missing, DENSITIES["integrate"])
        return [*sentences, f"GPz integrates over {others}missing values, under {density}."]

    def _lacking(self, measured: Measured) -> list[str]:
        """Names of the columns that are missing; a band stands for its error too."""
        off = {name for name, observed in zip(self.features.bands, measured) if not observed}
        errors = zip(self.features.errors, measured[len(self.features.bands) :])
        errors_alone = [
            f"{name}_err" for name, observed in errors if not observed and name not in off
        ]
        return [*(name for name in self.features.bands if name in off), *errors_alone]

    def tensors(self) -> Tensors:
        """Return tensors for `from_tensors`."""
        return {
            f"gap.{k}.{name}": value
            for k, pattern_model in enumerate(self.models.values())
            for name, value in pattern_model.ensemble.tensors().items()
        }

    def meta(self) -> list[dict[str, Any]]:
        """Return metadata for `from_tensors`, ready for JSON."""
        return [
            {
                "kept": list(measured),
                "features": pattern_model.features.fingerprint(),
                "members": len(pattern_model.ensemble.models),
                "stack": pattern_model.ensemble.meta(),
            }
            for measured, pattern_model in self.models.items()
        ]

    @classmethod
    def from_tensors(
        cls,
        features: Features,
        tensors: Tensors,
        meta: Sequence[Mapping[str, Any]],
        settings: RedshiftSettings,
        device: torch.device,
    ) -> MissingPatternModels:
        """Restore models from `tensors` and `meta`."""
        models = {}
        for k, stored in enumerate(meta):
            pattern_tensors = part(tensors, f"gap.{k}.")
            ensemble = GPzEnsemble.from_tensors(
                pattern_tensors, stored["members"], settings, device, stored["stack"]
            )
            models[tuple(stored["kept"])] = MissingPatternModel(
                Features.of(stored["features"]), ensemble
            )
        return cls(features, models)


def fit_gaps(
    features: Features,
    target: Target,
    settings: RedshiftSettings,
    patterns: GapPatterns,
    learned: LearnedRows,
    device: torch.device,
    seconds: float,
    deadline: Deadline,
) -> MissingPatternModels:
    """Fit a model for each pattern, as far as time allows.

    Their number follows from the expected time, so that a fit is the same on any machine of the
    same speed.

    Args:
        features: Features of complete rows.
        target: Scale of the target.
        settings: Settings of the run.
        patterns: Patterns, in the order in which they get models.
        learned: Rows to learn from, complete or not.
        device: Device of the models.
        seconds: Maximum expected time of all models.
        deadline: Deadline of the fit.
    """
    time = gap_time(seconds, len(patterns.measured), len(learned.table))
    work = deadline.share(GAPS_LEFT).within(settings.gap_seconds)
    models = dict[Measured, MissingPatternModel]()
    for k, measured in enumerate(work.units(patterns.measured[: time.n_models], "models of gaps")):
        models[measured] = _fit_pattern(
            measured,
            features,
            target,
            settings,
            learned,
            time.growth,
            k < time.with_nearest,
            device,
        )
    return MissingPatternModels(features, models)


def _fit_pattern(
    measured: Measured,
    features: Features,
    target: Target,
    settings: RedshiftSettings,
    learned: LearnedRows,
    growth: float,
    nearest: bool,
    device: torch.device,
) -> MissingPatternModel:
    """Fit a model to the rows that have the measured coordinates.

    Args:
        measured: The pattern.
        features: Features of complete rows.
        target: Scale of the target.
        settings: Settings of the run.
        learned: Rows to learn from.
        growth: Seconds that the model may grow.
        nearest: Whether a GP of the nearest rows is among its members.
        device: Device of the model.
    """
    table, unseen = learned
    rows = (~features.inputs(table).isnan()).numpy()[:, list(measured)].all(1)
    columns = _columns(features, table.iloc[np.flatnonzero(rows)], measured, settings)
    return _fit_columns(columns, features, target, settings, unseen[rows], growth, nearest, device)


def _columns(
    features: Features, table: pd.DataFrame, measured: Measured, settings: RedshiftSettings
) -> pd.DataFrame:
    """Return the target and the columns that were measured."""
    b = len(features.bands)
    bands = [name for name, observed in zip(features.bands, measured[:b]) if observed]
    errors = [name for name, observed in zip(features.errors, measured[b:]) if observed]
    return table[[settings.target, *bands, *(f"{name}_err" for name in errors)]]


def _fit_columns(
    table: pd.DataFrame,
    whole: Features,
    target: Target,
    settings: RedshiftSettings,
    unseen: Bool[np.ndarray, " n"],
    growth: float,
    nearest: bool,
    device: torch.device,
) -> MissingPatternModel:
    """Fit one model to these columns, even if complete rows have several."""
    bands = [name for name in whole.bands if name in table]
    features = Features.fit(table, bands, settings, robust=whole.robust)
    if whole.reduced:
        x = features.inputs(table)
        features = replace(features, T=components.projection(x, min(len(whole.T), x.shape[1])))
    T = torch.as_tensor(features.T).to(device)
    rows = Rows.of(table, features, T, target, settings, device)
    train, held = (torch.from_numpy(np.flatnonzero(part)) for part in (~unseen, unseen))
    fold = Fold(rows, train, held, target)

    make = partial(new_model, settings, len(T), device)
    budget = GrowthBudget.of(settings, len(train), len(T), 1, growth)
    if budget.small and not budget.n_basis:  # a GP for each gap would take megabytes
        budget = replace(budget, n_basis=min(MAX_BASIS_SMALL, len(train)))
    growing = Growth([fold], budget, make, settings.seed, PATIENCE, LocalRows)
    while not growing.ended:
        growing.step()
    best = {f"0.{name}": value for name, value in growing.best[0].items()}
    models, _, left_out = finished(growing, best)
    omitted = () if nearest else (NEAREST,)
    contrasts = features.contrasts(features.T)
    ensemble = GPzEnsemble.fit(
        [fold], models, left_out, T, quick=True, contrasts=contrasts, omitted=omitted
    )
    return MissingPatternModel(features, ensemble)
