"""Rows, axes and metrics of linked selection on the genes page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import target_name
from scant_dashboard.translate import tr


def rows(run: RunState) -> pd.DataFrame:
    """Return the held-out values with their predictions, in the table's units."""
    assert run.report is not None
    a = run.report.arrays
    target = target_name(run.metadata) or "y"
    none = np.full((2, len(a["test_y"])), np.nan)  # runs of 0.1.0 do not tell the units
    center, width = a.get("test_unit", none)
    return pd.DataFrame(
        {
            tr("held-out {target}", target=target): a["test_y"],
            tr("predicted {target}", target=target): a["test_mean"],
            tr("deviation of {target}", target=target): a["test_std_y"],
            tr("output (number)"): a["test_output"] + 1.0,
            tr("replica (number)"): a["test_replica"] + 1.0,
            "center": center,
            "width": width,
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return column pairs: prediction against truth, deviation, and output and replica."""
    truth, predicted, deviation, output, replica = map(str, frame.columns[:5])
    return [(truth, predicted), (predicted, deviation), (output, replica)]


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Return NMSE (of at least two rows) and NLPD, in units of each output as in the report."""
    center, width = frame["center"].to_numpy(), frame["width"].to_numpy()
    truth, predicted, deviation = frame.to_numpy(float)[:, :3].T
    y, mean = (truth - center) / width, (predicted - center) / width
    variance = (deviation / width) ** 2
    return {
        "NMSE": metrics.nmse(y, mean) if len(np.unique(truth)) > 1 else float("nan"),
        "NLPD": metrics.nlpd(y, mean, variance),
    }
