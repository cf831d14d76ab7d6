"""A fitted redshift study as data, for its report and its queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scant import metrics
from scant.density_scores import Scores, mixture_scores
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.studies import intervals
from scant.studies.learned_region import LearnedRegion
from scant.studies.redshift.ensemble import Members
from scant.studies.redshift.gaps import Gaps
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.target import Located, Target
from scipy.special import logsumexp, ndtr
from torch import Tensor


class Judged(NamedTuple):
    """Predictions beside the truth.

    Attributes:
        y: The truth.
        told: Moments.
        density: Its log density, nats.
        pit: Its probability integral transform.
        scores: CRPS and CDE loss.
    """

    y: Float[np.ndarray, " n"]
    told: Located
    density: Float[np.ndarray, " n"]
    pit: Float[np.ndarray, " n"]
    scores: Scores


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
        members: The models, in coordinates x.
        gaps: Models of rows that lack something.
        held: Test rows; of a restored study those that were kept with the model.
        region: Where rows were learned from, in coordinates x.
        device: Where the models are.
    """

    settings: RedshiftSettings
    features: Features
    target: Target
    members: Members
    gaps: Gaps
    held: pd.DataFrame
    region: LearnedRegion
    device: torch.device

    @property
    def shown(self) -> pd.DataFrame:
        """The test rows that the report's arrays and the answers are of."""
        return self.held.iloc[:SHOWN]

    def ask(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Located:
        """Moments in the target's unit, on the CPU; bands in `off` count as not measured."""
        out = torch.zeros(4, len(table), dtype=torch.float64, device=self.device)
        for rows, members, x, noise in self._parts(table, off):
            told = members.predict(x, noise)
            out[:, rows] = torch.stack([getattr(told, f.name) for f in fields(told)])
        return self.target.restore(GPzPrediction(*out)).cpu()

    def judge(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Judged:
        """Rows whose target is known: by the whole mixture where there is a stack, or where the
        model is of logarithms (3.17), else by its moments, as published."""
        y, told = table[self.settings.target].to_numpy(float), self.ask(table, off)
        mean, variance = told.mean.numpy(), told.variance.numpy()
        if self.members.stack is None and not self.target.positive:
            density = metrics.log_density(y, mean, variance)
            one = np.ones((len(y), 1))
            scores = mixture_scores(one, mean[:, None], variance[:, None] ** 0.5, y, False)
            return Judged(y, told, density, metrics.pit(y, mean, variance), scores)
        columns = vars(self.components(table, off)).values()
        weights, means, *variances = (v.cpu().numpy() for v in columns)
        used = weights > 0
        std = np.sqrt(np.where(used, sum(variances), 1.0))
        z = (self.target.standardize(torch.tensor(y)).numpy()[:, None] - means) / std
        each = -0.5 * (z**2 + np.log(2 * np.pi)) - np.log(std * self.target.scale)
        density = logsumexp(each, axis=1, b=weights)
        if self.target.positive:
            density = density - np.log(y)
        scale, centre = self.target.scale, self.target.centre
        placed = means * scale + centre
        scores = mixture_scores(weights, placed, std * scale, y, self.target.positive)
        return Judged(y, told, density, (weights * ndtr(z)).sum(1), scores)

    def components(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Components:
        """The mixture with the moments of `ask`, on the model's standardized scale."""
        asked = list(self._parts(table, off))
        parts = [(rows, members.components(x, noise)) for rows, members, x, noise in asked]
        widest = max(told.weights.shape[1] for _, told in parts)
        out = torch.zeros(5, len(table), widest, dtype=torch.float64, device=self.device)
        for rows, told in parts:
            out[:, rows, : told.weights.shape[1]] = torch.stack(list(vars(told).values()))
        return Components(*out)

    def ends(self, table: pd.DataFrame) -> intervals.Ends:
        """Ends of the intervals of the target, in its unit."""
        columns = vars(self.components(table)).values()
        weights, mean, *variances = (v.cpu().numpy() for v in columns)
        own = intervals.mixture(weights, mean, np.sqrt(sum(variances)))
        own = own * self.target.scale + self.target.centre
        return np.exp(own) if self.target.positive else own

    def outside(self, table: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """1 where the measurements are unlike those of the learned rows (`LearnedRegion`)."""
        inside = self.features.inputs(table).numpy()
        return np.asarray(self.region.outside(inside).astype(np.int64))

    def _parts(
        self, table: pd.DataFrame, off: Sequence[str]
    ) -> Iterator[
        tuple[Bool[np.ndarray, " r"], Members, Float[Tensor, "r d"], Float[Tensor, "r d"] | None]
    ]:
        """Rows, the models that answer for them, and what these take: inputs and their noise."""
        x, noise = self._inputs(table, off)
        for gap, rows in self.gaps.parts(x):
            if gap is None:
                yield rows, self.members, x[rows], None if noise is None else noise[rows]
            else:
                yield rows, gap.members, gap.features.inputs(table[rows], off).to(x), None

    def _inputs(
        self, table: pd.DataFrame, off: Sequence[str]
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"] | None]:
        noise = self.features.noise(table)
        x = self.features.inputs(table, off).to(self.device)
        return x, None if noise is None else noise.to(self.device)
