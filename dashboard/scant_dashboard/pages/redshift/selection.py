"""Rows, axes and metrics of linked selection on the redshift page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant.tables.levels import measured
from scant_dashboard.live.run_state import RunState


def rows(run: RunState) -> pd.DataFrame:
    """Return the displayed test rows: truth, prediction, deviation, measured bands."""
    assert run.report is not None
    a = run.report.arrays
    parts = np.stack([a[f"std_{part}"] for part in ("model", "noise", "input")])
    bands = [str(b) for b in run.metadata["bands"]]
    return pd.DataFrame(
        {
            "true z": a["z_true"],
            "predicted z": a["z_mean"],
            "deviation of z": np.sqrt((parts**2).sum(0)),
            "log density": a.get("log_density", np.full(len(a["z_true"]), np.nan)),
            **dict(zip(bands, a["features"].T)),
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return column pairs: prediction against truth, deviation, and first and last band."""
    bands = measured([str(name) for name in frame.columns[4:]])
    results = [("true z", "predicted z"), ("predicted z", "deviation of z")]
    return [*results, (bands[0], bands[-1])] if len(bands) > 1 else results


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Return RMSE and mean log-likelihood, which the report has of all test rows."""
    return {
        "RMSE": metrics.rmse(frame["true z"].to_numpy(), frame["predicted z"].to_numpy()),
        "mean log-likelihood": float(frame["log density"].mean()),  # runs of 0.1.0 have none
    }
