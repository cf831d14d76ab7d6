"""A fitted redshift study as data, for its report and its queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.models.gpz.input_density import Mixture
from scant.predictive import MixturePredictive
from scant.predictive.scored import Scored
from scant.studies.learned_region import LearnedRegion
from scant.studies.redshift.ensemble import GPzEnsemble
from scant.studies.redshift.gaps import Gaps, LearnedRows, lacking
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.target import Target
from scant.studies.redshift.undetected import Drawn

_Part = tuple[Int[np.ndarray, " r"], GPzEnsemble, Float[Tensor, "r d"], Float[Tensor, "r d"] | None]
SHOWN = 1000  # test rows that travel to the page and stay with the model, for quick answers


@dataclass(frozen=True)
class FittedGPz:
    """Models with the features and the target that they were trained on.

    It stands below `study.py`, which makes it, so that report and answers need not know how the
    models were trained.

    Attributes:
        settings: Of the run.
        features: From a table's columns to the coordinates x.
        target: From the target's unit to the model's, and back.
        ensemble: The models, in coordinates x.
        gaps: Models of rows that lack something.
        held: Test rows; of a restored study those that were kept with the model.
        region: Where rows were learned from, in coordinates x.
        learned: Rows from which models of further gaps are learned; None: none are.
        device: Where the models are.
    """

    settings: RedshiftSettings
    features: Features
    target: Target
    ensemble: GPzEnsemble
    gaps: Gaps
    held: pd.DataFrame
    region: LearnedRegion
    learned: LearnedRows | None
    device: torch.device

    @property
    def shown(self) -> pd.DataFrame:
        """The test rows that the report's arrays and the answers are of."""
        return self.held.iloc[:SHOWN]

    @property
    def complete(self) -> pd.DataFrame:
        """The test rows that lack nothing."""
        return self.held[lacking(self.features, self.held).isfinite().all(1).numpy()]

    def meet(self, table: pd.DataFrame, off: Sequence[str] = ()) -> None:
        """Learn models of what rows to predict lack, where there are none yet."""
        if self.learned is not None:
            query = lacking(self.features, table, off)
            self.gaps.learn(query, self.target, self.settings, self.learned, self.device)

    def predict(self, table: pd.DataFrame, off: Sequence[str] = ()) -> MixturePredictive:
        """Predict rows; bands in `off` count as not measured.

        The mixture is that of the averaged models and, where values are missing, of what the
        missing ones may be.
        """
        drawn = self._drawn(table, off)
        parts = self._parts(table if drawn is None else drawn.table, off)
        predictive = MixturePredictive.gathered(
            [(rows, ensemble.predict(x, noise)) for rows, ensemble, x, noise in parts]
        )
        return self.target.restore(predictive if drawn is None else drawn.mixed(predictive))

    def score(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Scored:
        """Predict rows whose target is known.

        GPz alone is scored by the Gaussian of its moments, as published.
        """
        predictive = self.predict(table, off)
        if self.ensemble.average is None and not self.target.positive:
            predictive = predictive.collapsed()
        return Scored(table[self.settings.target].to_numpy(float), predictive)

    def outside(self, table: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """1 where the measurements are unlike those of the learned rows (`LearnedRegion`)."""
        inside = self.features.inputs(table).numpy()
        return np.asarray(self.region.outside(inside).astype(np.int64))

    def _drawn(self, table: pd.DataFrame, off: Sequence[str]) -> Drawn | None:
        """The rows with draws of the bands that were not detected, where there are any."""
        first = self.ensemble.models[0]
        parts = first.mixture_log_weights, first.mixture_means, first.mixture_precisions
        density = Mixture(*(part.cpu() for part in parts))
        return Drawn.of(self.features, density, table, off)

    def _parts(self, table: pd.DataFrame, off: Sequence[str]) -> Iterator[_Part]:
        """Rows, the models that answer for them, and what these take: inputs and their noise."""
        noise = self.features.noise(table)
        x = self.features.inputs(table, off).to(self.device)
        noise = None if noise is None else noise.to(self.device)
        for gap, rows in self.gaps.parts(x):
            if gap is None:
                yield rows, self.ensemble, x[rows], None if noise is None else noise[rows]
            else:
                own = gap.features.inputs(table.iloc[rows], off).to(x)
                yield rows, gap.ensemble, own, None
