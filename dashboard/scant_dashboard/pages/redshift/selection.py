"""Rows, axes and metrics of linked selection on the redshift page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant.tables.levels import measured
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import target_name
from scant_dashboard.translate import tr


def rows(run: RunState) -> pd.DataFrame:
    """Return the displayed test rows: truth, prediction, deviation, measured bands."""
    assert run.report is not None
    a = run.report.arrays
    parts = np.stack([a[f"std_{part}"] for part in ("model", "noise", "input")])
    bands = [str(b) for b in run.metadata["bands"]]
    target = target_name(run.metadata) or "z"
    return pd.DataFrame(
        {
            tr("true {target}", target=target): a["z_true"],
            tr("predicted {target}", target=target): a["z_mean"],
            tr("deviation of {target}", target=target): np.sqrt((parts**2).sum(0)),
            tr("log density"): a.get("log_density", np.full(len(a["z_true"]), np.nan)),
            **dict(zip(bands, a["features"].T)),
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return column pairs: prediction against truth, deviation, and first and last band."""
    bands = measured([str(name) for name in frame.columns[4:]])
    truth, predicted, deviation = map(str, frame.columns[:3])
    results = [(truth, predicted), (predicted, deviation)]
    return [*results, (bands[0], bands[-1])] if len(bands) > 1 else results


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Return RMSE and mean log-likelihood, which the report has of all test rows."""
    return {
        "RMSE": metrics.rmse(frame.iloc[:, 0].to_numpy(), frame.iloc[:, 1].to_numpy()),
        "mean log-likelihood": float(frame.iloc[:, 3].mean()),  # runs of 0.1.0 have none
    }
