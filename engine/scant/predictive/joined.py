"""Predictive distributions of blocks of rows in different forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from scant.predictive.base import Index, Rows, ValuePredictive


@dataclass(frozen=True)
class JoinedPredictive(ValuePredictive):
    """Blocks of rows, such as Gaussians of one fold and log-normals of the next.

    Other forms have one `log`, `shift` or dispersion for all rows, so they cannot hold both.

    Args:
        blocks: Predictions of consecutive rows.
    """

    blocks: tuple[ValuePredictive, ...]

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def rows(self, index: Index) -> JoinedPredictive:
        at, ends = np.arange(len(self))[index], self._ends
        block = np.searchsorted(ends, at, side="right")
        runs = np.split(np.arange(len(at)), np.flatnonzero(np.diff(block)) + 1)
        selected = [
            (self.blocks[block[run[0]]], block[run[0]], at[run]) for run in runs if len(run)
        ]
        starts = ends - list(map(len, self.blocks))
        return JoinedPredictive(
            tuple(part.rows(inside - starts[k]) for part, k, inside in selected)
        )

    @classmethod
    def concat(cls, parts: Sequence[JoinedPredictive]) -> JoinedPredictive:
        """Join the blocks."""
        return cls(tuple(block for part in parts for block in part.blocks))

    @property
    def mean(self) -> Rows:
        return np.concatenate([block.mean for block in self.blocks])

    @property
    def variance(self) -> Rows:
        return np.concatenate([block.variance for block in self.blocks])

    def log_prob(self, y: Rows) -> Rows:
        return np.concatenate(
            [b.log_prob(values) for b, values in zip(self.blocks, self._split(y))]
        )

    def cdf(self, y: Rows) -> Rows:
        return np.concatenate([b.cdf(values) for b, values in zip(self.blocks, self._split(y))])

    def quantile(self, p: Float[ndarray, " q"]) -> Float[ndarray, "q n"]:
        return np.concatenate([block.quantile(p) for block in self.blocks], axis=1)

    def sample(self, generator: np.random.Generator, count: int) -> Float[ndarray, "s n"]:
        return np.concatenate([block.sample(generator, count) for block in self.blocks], axis=1)

    def crps(self, y: Rows) -> Rows:
        return np.concatenate([b.crps(values) for b, values in zip(self.blocks, self._split(y))])

    @property
    def _ends(self) -> Int[ndarray, " b"]:
        return np.cumsum(list(map(len, self.blocks)))

    def _split(self, y: Rows) -> Sequence[Float[ndarray, " _"]]:
        return np.split(y, self._ends[:-1])
