"""Rows, axes and metrics of linked selection on the genes page."""

from __future__ import annotations

import pandas as pd

from scant import metrics
from scant_dashboard.live.run_state import RunState


def rows(run: RunState) -> pd.DataFrame:
    """Return the held-out values with their predictions, in the table's units."""
    assert run.report is not None
    a = run.report.arrays
    return pd.DataFrame(
        {
            "held-out y": a["test_y"],
            "predicted y": a["test_mean"],
            "deviation of y": a["test_std_y"],
            "output (number)": a["test_output"] + 1.0,
            "replica (number)": a["test_replica"] + 1.0,
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return column pairs: prediction against truth, deviation, and output and replica."""
    return [
        ("held-out y", "predicted y"),
        ("predicted y", "deviation of y"),
        ("output (number)", "replica (number)"),
    ]


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Return NMSE (of at least two rows) and NLPD, in the table's units."""
    y, mean = frame["held-out y"].to_numpy(), frame["predicted y"].to_numpy()
    variance = frame["deviation of y"].to_numpy() ** 2
    return {
        "NMSE": metrics.nmse(y, mean) if frame["held-out y"].nunique() > 1 else float("nan"),
        "NLPD": metrics.nlpd(y, mean, variance),
    }
