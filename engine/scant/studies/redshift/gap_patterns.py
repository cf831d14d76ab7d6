"""Patterns of missing measurements, and the patterns with enough rows for a model."""

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
MAX_CELLS = 500_000  # cells of rows stored with a model: 4 MB; the model itself takes several

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
        """Return the numeric columns of as many rows as `MAX_CELLS` allows."""
        table = self.table.select_dtypes("number")
        max_rows = max(MAX_CELLS // max(table.shape[1], 1), 1)
        if len(table) <= max_rows:
            return self._replace(table=table)
        rows = np.sort(np.random.default_rng(seed).permutation(len(table))[:max_rows])
        return LearnedRows(table.iloc[rows].reset_index(drop=True), self.unseen[rows])


def incomplete_patterns(features: Features, x: Float[Tensor, "n d"]) -> list[Measured]:
    """Return the patterns of incomplete rows, the most frequent first."""
    observed = (~x.isnan()).cpu().numpy()
    unique, count = np.unique(observed, axis=0, return_counts=True)
    patterns = [tuple(map(bool, unique[k])) for k in np.argsort(-count, kind="stable")]
    b = len(features.bands)
    return [p for p in patterns if any(p[:b]) and not all(p)][:MOST_GAPS]


class GapPatterns(NamedTuple):
    """Patterns of missing values that get separate models while time lasts.

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
        """Find the patterns with enough rows.

        Args:
            features: Features of complete rows.
            x: Rows to learn from.
            unseen: True for rows that are only scored.
            held: Test rows, used for their missing values alone.
        """
        all_rows = torch.cat([x, held])
        unique, pattern_of_row, counts = np.unique(
            (~all_rows.isnan()).cpu().numpy(), axis=0, return_inverse=True, return_counts=True
        )
        learned = pattern_of_row.reshape(-1)[: len(x)]
        scored, trained = (
            np.bincount(learned[rows], minlength=len(unique)) for rows in (unseen, ~unseen)
        )

        def enough(measured: Measured) -> bool:
            usable = unique[:, list(measured)].all(1)
            parts = scored[usable].sum(), trained[usable].sum()
            return bool(sum(parts) >= GAP_ROWS and min(parts) >= MIN_PART)

        patterns = [
            measured for measured in incomplete_patterns(features, all_rows) if enough(measured)
        ]
        rows = sum(int(counts[(unique == measured).all(1)].sum()) for measured in patterns)
        return cls(patterns, rows / len(all_rows), len(x))


def lacking(
    features: Features, table: pd.DataFrame, off: Sequence[str] = ()
) -> Float[Tensor, "n d"]:
    """Return inputs of rows, NaN where missing or in `off`.

    A magnitude beyond a limit is not missing, since it is sampled.
    """
    x = features.inputs(table, off)
    limits = undetected.limits(features, table)[:, features.owners]
    x[torch.from_numpy(np.isfinite(limits))] = 0.0
    return x
