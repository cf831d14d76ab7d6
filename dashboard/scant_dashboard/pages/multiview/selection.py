"""Rows, axes and metrics of linked selection on the multiview page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant_dashboard.live.run_state import RunState
from scant_dashboard.translate import tr

N_UNITS = 2  # hidden units, the most influential ones


def rows(run: RunState) -> pd.DataFrame:
    """Return the displayed rows: truth, prediction, deviation, most influential hidden units."""
    assert run.report is not None
    a = run.report.arrays
    largest = np.argsort(-a["influence"], kind="stable")[:N_UNITS]
    return pd.DataFrame(
        {
            tr("truth"): a["truth"],
            tr("predicted"): a["predicted"],
            tr("deviation"): a["predicted_std"],
            **{
                tr("neuron {name}", name=run.metadata["neurons"][i]): a["hidden"][:, i]
                for i in largest
            },
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return column pairs: prediction against truth, and hidden units."""
    neurons = [str(name) for name in frame.columns[3:]]
    truth, predicted = map(str, frame.columns[:2])
    results = [(truth, predicted)]
    if len(neurons) == N_UNITS:
        results += [(neurons[0], neurons[1]), (neurons[0], predicted)]
    return results


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Return average precision and accuracy of classes, or NMSE and RMSE of values."""
    y, predicted = frame.iloc[:, 0].to_numpy(), frame.iloc[:, 1].to_numpy()
    several = len(np.unique(y)) > 1
    if set(np.unique(y)) <= {0.0, 1.0}:
        from sklearn.metrics import accuracy_score, average_precision_score

        return {
            "average precision": float(average_precision_score(y, predicted))
            if several
            else float("nan"),
            "accuracy": float(accuracy_score(y > 0.5, predicted > 0.5)),
        }
    return {
        "NMSE": metrics.nmse(y, predicted) if several else float("nan"),
        "RMSE": metrics.rmse(y, predicted),
    }
