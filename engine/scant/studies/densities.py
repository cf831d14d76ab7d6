"""Predictive densities as a few Gaussians a row: p(z) for files, and for tools of the field."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pandas as pd

from scant.predictive import MixturePredictive
from scant.studies.base import ArraySpec

MOST = 5  # Gaussians of a row


@runtime_checkable
class HasDensities(Protocol):
    """A fitted study that gives predictive densities."""

    def densities(self, table: pd.DataFrame, most: int = MOST) -> MixturePredictive:
        """Of each row of a table, at most so many Gaussians. Raises as `predict`."""


def column_specs(unit: str, most: int = MOST) -> tuple[ArraySpec, ...]:
    """The columns of `MixturePredictive.columns`, for data dictionaries."""
    kinds = (("weight", "1", "weight"), ("mean", unit, "mean"), ("std", unit, "deviation"))
    return tuple(
        ArraySpec(f"{name}_{k}", "n", u, f"{text} of Gaussian {k} of the predictive density")
        for k in range(1, most + 1)
        for name, u, text in kinds
    )
