"""A fitted redshift study as data, for its report and its queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp, ndtr
from torch import Tensor

from scant import metrics
from scant.density_scores import Scores, mixture_scores
from scant.models.gpz.input_density import Mixture
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.studies import intervals
from scant.studies.learned_region import LearnedRegion
from scant.studies.redshift.ensemble import Members
from scant.studies.redshift.gaps import Gaps
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.target import Located, Target
from scant.studies.redshift.undetected import Drawn


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


_Divided = tuple[Bool[np.ndarray, " r"], Members, Float[Tensor, "r d"], Float[Tensor, "r d"] | None]
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
        drawn = self._drawn(table, off)
        table = table if drawn is None else drawn.table
        out = torch.zeros(4, len(table), dtype=torch.float64, device=self.device)
        for rows, members, x, noise in self._parts(table, off):
            told = members.predict(x, noise)
            out[:, rows] = torch.stack([getattr(told, f.name) for f in fields(told)])
        told = GPzPrediction(*out)
        return self.target.restore(told if drawn is None else drawn.moments(told)).cpu()

    def judge(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Judged:
        """Rows whose target is known: by the whole mixture where there is a stack, or where the
        model is of logarithms (3.17), else by its moments, as published."""
        y = table[self.settings.target].to_numpy(float)
        if self.members.stack is None and not self.target.positive:
            told = self.ask(table, off)
            mean, variance = told.mean.numpy(), told.variance.numpy()
            density = metrics.log_density(y, mean, variance)
            one = np.ones((len(y), 1))
            scores = mixture_scores(one, mean[:, None], variance[:, None] ** 0.5, y, False)
            return Judged(y, told, density, metrics.pit(y, mean, variance), scores)
        told, parts = self.both(table, off)
        columns = vars(parts).values()
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

    def both(self, table: pd.DataFrame, off: Sequence[str] = ()) -> tuple[Located, Components]:
        """What `ask` and `components` say, in one pass over the rows."""
        drawn = self._drawn(table, off)
        table = table if drawn is None else drawn.table
        out = torch.zeros(4, len(table), dtype=torch.float64, device=self.device)
        kept = list[tuple[Bool[np.ndarray, " n"], Components]]()
        for rows, members, x, noise in self._parts(table, off):
            told, parts = members.told(x, noise)
            out[:, rows] = torch.stack([getattr(told, f.name) for f in fields(told)])
            kept.append((rows, parts))
        moments, components = GPzPrediction(*out), _joined(kept, len(table))
        if drawn is not None:
            moments, components = drawn.moments(moments), drawn.components(components)
        return self.target.restore(moments).cpu(), components

    def components(self, table: pd.DataFrame, off: Sequence[str] = ()) -> Components:
        """The mixture with the moments of `ask`, on the model's standardized scale."""
        return self.both(table, off)[1]

    def told(self, table: pd.DataFrame) -> tuple[Located, intervals.Ends, Int[np.ndarray, " n"]]:
        """What `ask`, `ends` and `outside` say, in one pass over the rows."""
        x, noise = self._inputs(table, ())
        drawn = self._drawn(table, ())
        if drawn is None:
            every = self._divided(table, x, noise, ())
        else:
            table = drawn.table
            every = self._parts(table, ())
        out = torch.zeros(4, len(table), dtype=torch.float64, device=self.device)
        ends = np.empty((len(intervals.ENDS), len(x)))
        kept = list[tuple[Bool[np.ndarray, " n"], Components]]()
        for rows, members, own, spread in every:
            told, parts = members.told(own, spread)
            out[:, rows] = torch.stack([getattr(told, f.name) for f in fields(told)])
            if drawn is None:
                ends[:, rows] = self._ends(parts)
            else:
                kept.append((rows, parts))
        moments = GPzPrediction(*out)
        if drawn is not None:
            moments = drawn.moments(moments)
            ends = self._ends(drawn.components(_joined(kept, len(table))))
        outside = self.region.outside(x.cpu().numpy()).astype(np.int64)
        return self.target.restore(moments).cpu(), ends, outside

    def ends(self, table: pd.DataFrame) -> intervals.Ends:
        """Ends of the intervals of the target, in its unit."""
        return self._ends(self.components(table))

    def _ends(self, parts: Components) -> intervals.Ends:
        weights, mean, *variances = (v.cpu().numpy() for v in vars(parts).values())
        own = intervals.mixture(weights, mean, np.sqrt(sum(variances)))
        own = own * self.target.scale + self.target.centre
        return np.exp(own) if self.target.positive else own

    def outside(self, table: pd.DataFrame) -> Int[np.ndarray, " n"]:
        """1 where the measurements are unlike those of the learned rows (`LearnedRegion`)."""
        inside = self.features.inputs(table).numpy()
        return np.asarray(self.region.outside(inside).astype(np.int64))

    def _drawn(self, table: pd.DataFrame, off: Sequence[str]) -> Drawn | None:
        """The rows with draws of the bands that were not detected, where there are any."""
        first = self.members.models[0]
        parts = first.mixture_log_weights, first.mixture_means, first.mixture_precisions
        density = Mixture(*(part.cpu() for part in parts))
        return Drawn.of(self.features, density, table, off)

    def _parts(self, table: pd.DataFrame, off: Sequence[str]) -> Iterator[_Divided]:
        """Rows, the models that answer for them, and what these take: inputs and their noise."""
        return self._divided(table, *self._inputs(table, off), off)

    def _divided(
        self,
        table: pd.DataFrame,
        x: Float[Tensor, "n d"],
        noise: Float[Tensor, "n d"] | None,
        off: Sequence[str],
    ) -> Iterator[_Divided]:
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


def _joined(parts: Sequence[tuple[Bool[np.ndarray, " n"], Components]], rows: int) -> Components:
    """Components of some rows each as those of all."""
    widest = max(told.weights.shape[1] for _, told in parts)
    out = parts[0][1].weights.new_zeros(5, rows, widest)
    for mine, told in parts:
        out[:, mine, : told.weights.shape[1]] = torch.stack(list(vars(told).values()))
    return Components(*out)
