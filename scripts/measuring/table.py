"""Rows of the table that is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    """A figure, with what it should be."""

    what: str
    target: str
    measured: str


def spread(values: Sequence[float], unit: str = "ms", scale: float = 1000) -> str:
    """Median and 95th percentile, in `unit`."""
    if not len(values):
        return "none"
    p50, p95 = (scale * np.quantile(values, q) for q in (0.5, 0.95))
    return f"p50 {p50:.0f} {unit}, p95 {p95:.0f} {unit}"


def show(rows: Sequence[Row]) -> None:
    """Print rows of the table."""
    for row in rows:
        print(f"| {row.what} | {row.target} | {row.measured} |", flush=True)
