"""Rows, axes and metrics of linked selection on the genes page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant_dashboard.live.run_state import RunState


def rows(run: RunState) -> pd.DataFrame:
    """Return the held-out values with their predictions, in the table's units."""
    assert run.report is not None
    a = run.report.arrays
    none = np.full((2, len(a["test_y"])), np.nan)  # runs of 0.1.0 do not tell the units
    center, width = a.get("test_unit", none)
    return pd.DataFrame(
        {
            "held-out y": a["test_y"],
            "predicted y": a["test_mean"],
            "deviation of y": a["test_std_y"],
            "output (number)": a["test_output"] + 1.0,
            "replica (number)": a["test_replica"] + 1.0,
            "center": center,
            "width": width,
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
    """Return NMSE (of at least two rows) and NLPD, in units of each output as in the report."""
    center, width = frame["center"].to_numpy(), frame["width"].to_numpy()
    y = (frame["held-out y"].to_numpy() - center) / width
    mean = (frame["predicted y"].to_numpy() - center) / width
    variance = (frame["deviation of y"].to_numpy() / width) ** 2
    return {
        "NMSE": metrics.nmse(y, mean) if frame["held-out y"].nunique() > 1 else float("nan"),
        "NLPD": metrics.nlpd(y, mean, variance),
    }
