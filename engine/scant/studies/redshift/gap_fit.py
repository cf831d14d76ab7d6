"""The fit of one model to the rows that have the measurements of a pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import torch

from scant.models.gpz.row_sums import LocalRows
from scant.studies.redshift import components
from scant.studies.redshift.capacity import GapTime
from scant.studies.redshift.ensemble import GPzEnsemble
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.gap_patterns import LearnedRows, Measured
from scant.studies.redshift.growth import Growth
from scant.studies.redshift.growth_budget import GrowthBudget
from scant.studies.redshift.members import NEAREST
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.rescaling import finished
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.shapes import new_model
from scant.studies.redshift.target import Target

MAX_BASIS_SMALL = 100  # basis functions, where rows are few
PATIENCE = 8  # steps without a better score that end a stage


@dataclass(frozen=True)
class MissingPatternModel:
    """A model of the columns that are measured in a pattern."""

    features: Features
    ensemble: GPzEnsemble


@dataclass(frozen=True)
class PatternFitter:
    """Fits models of missing patterns.

    Attributes:
        features: Features of complete rows.
        target: Scale of the target.
        settings: Settings of the run.
        learned: Rows to learn from, complete or not.
        device: Device of the models.
    """

    features: Features
    target: Target
    settings: RedshiftSettings
    learned: LearnedRows
    device: torch.device

    def fit(self, measured: Measured, time: GapTime, k: int) -> MissingPatternModel:
        """Fit one model to the rows in which these coordinates are measured.

        Args:
            measured: The coordinates.
            time: Time of all models of gaps.
            k: Number of models before this one.
        """
        settings, whole = self.settings, self.features
        complete = (~whole.inputs(self.learned.table).isnan()).numpy()[:, list(measured)].all(1)
        table = self._columns(measured).iloc[np.flatnonzero(complete)]
        unseen = self.learned.unseen[complete]
        bands = [name for name in whole.bands if name in table]
        features = Features.fit(table, bands, settings, robust=whole.robust)
        if whole.reduced:
            x = features.inputs(table)
            features = replace(features, T=components.projection(x, min(len(whole.T), x.shape[1])))
        T = torch.as_tensor(features.T).to(self.device)
        rows = Rows.of(table, features, T, self.target, settings, self.device)
        train, held = (torch.from_numpy(np.flatnonzero(part)) for part in (~unseen, unseen))
        fold = Fold(rows, train, held, self.target)

        budget = GrowthBudget.of(settings, len(train), len(T), 1, time.growth)
        if budget.small and not budget.n_basis:  # a GP for each gap would take megabytes
            budget = replace(budget, n_basis=min(MAX_BASIS_SMALL, len(train)))
        make = partial(new_model, settings, len(T), self.device)
        growing = Growth([fold], budget, make, settings.seed, PATIENCE, LocalRows)
        while not growing.ended:
            growing.step()
        best = {f"0.{name}": value for name, value in growing.best[0].items()}
        models, _, left_out = finished(growing, best)
        omitted = () if k < time.with_nearest else (NEAREST,)
        contrasts = features.contrasts(features.T)
        ensemble = GPzEnsemble.fit(
            [fold], models, left_out, T, quick=True, contrasts=contrasts, omitted=omitted
        )
        return MissingPatternModel(features, ensemble)

    def _columns(self, measured: Measured) -> pd.DataFrame:
        """Return the target and the columns that were measured."""
        features, b = self.features, len(self.features.bands)
        bands = [name for name, observed in zip(features.bands, measured[:b]) if observed]
        errors = [name for name, observed in zip(features.errors, measured[b:]) if observed]
        names = [self.settings.target, *bands, *(f"{name}_err" for name in errors)]
        return self.learned.table[names]
