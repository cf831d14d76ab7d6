"""Patterns of missing measurements: which there are, and which have rows enough for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.studies.redshift import undetected
from scant.studies.redshift.capacity import GAP_ROWS, MOST_GAPS
from scant.studies.redshift.preprocessing import Features

MIN_PART = 10  # rows that train a model of a gap, and rows that score it
MAX_CELLS = 500_000  # of rows that stay with a model: 4 MB, as the model itself has some

Measured = tuple[bool, ...]  # True for each coordinate that was measured


class LearnedRows(NamedTuple):
    """Rows from which models of further gaps can be learned.

    Attributes:
        table: The target, measurements, their errors and limits.
        unseen: True for rows that are only scored.
    """

    table: pd.DataFrame
    unseen: Bool[np.ndarray, " n"]

    def some(self, seed: int) -> LearnedRows:
        """Return their columns of numbers, of as many rows as `MAX_CELLS` allow."""
        table = self.table.select_dtypes("number")
        most = max(MAX_CELLS // max(table.shape[1], 1), 1)
        if len(table) <= most:
            return self._replace(table=table)
        rows = np.sort(np.random.default_rng(seed).permutation(len(table))[:most])
        return LearnedRows(table.iloc[rows].reset_index(drop=True), self.unseen[rows])


def incomplete_patterns(features: Features, x: Float[Tensor, "n d"]) -> list[Measured]:
    """Return the patterns of incomplete rows, the most frequent first."""
    there = (~x.isnan()).cpu().numpy()
    kinds, count = np.unique(there, axis=0, return_counts=True)
    patterns = [tuple(map(bool, kinds[k])) for k in np.argsort(-count, kind="stable")]
    b = len(features.bands)
    return [p for p in patterns if any(p[:b]) and not all(p)][:MOST_GAPS]


class GapPatterns(NamedTuple):
    """Patterns of missing values that get models of their own while time lasts.

    Attributes:
        measured: The coordinates that were measured, the most frequent patterns first.
        share: Share of the table's rows with one of these.
        rows: Number of rows to learn from, complete or not.
    """

    measured: Sequence[Measured] = ()
    share: float = 0.0
    rows: int = 0

    @classmethod
    def of(
        cls,
        features: Features,
        x: Float[Tensor, "n d"],
        unseen: Bool[np.ndarray, " n"],
        held: Float[Tensor, "m d"],
    ) -> GapPatterns:
        """Find the patterns for which there are rows enough.

        Args:
            features: Of complete rows.
            x: Rows to learn from.
            unseen: True for rows that are only scored.
            held: Test rows, used for their missing values alone.
        """
        every = torch.cat([x, held])
        kinds, kind, counts = np.unique(
            (~every.isnan()).cpu().numpy(), axis=0, return_inverse=True, return_counts=True
        )
        learned = kind.reshape(-1)[: len(x)]
        scored, trained = (
            np.bincount(learned[rows], minlength=len(kinds)) for rows in (unseen, ~unseen)
        )

        def enough(left: Measured) -> bool:
            usable = kinds[:, list(left)].all(1)
            parts = scored[usable].sum(), trained[usable].sum()
            return bool(sum(parts) >= GAP_ROWS and min(parts) >= MIN_PART)

        kept = [left for left in incomplete_patterns(features, every) if enough(left)]
        rows = sum(int(counts[(kinds == left).all(1)].sum()) for left in kept)
        return cls(kept, rows / len(every), len(x))


def lacking(
    features: Features, table: pd.DataFrame, off: Sequence[str] = ()
) -> Float[Tensor, "n d"]:
    """Return inputs of rows, NaN where missing or in `off`.

    A magnitude beyond a limit is not missing, since it is drawn.
    """
    x = features.inputs(table, off)
    limits = undetected.limits(features, table)[:, features.owners]
    x[torch.from_numpy(np.isfinite(limits))] = 0.0
    return x
