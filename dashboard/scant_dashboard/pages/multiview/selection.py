"""What can be selected on the multiview page: held-out rows, in the eyes of the hidden neurons."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant import metrics
from scant_dashboard.live.run_state import RunState

SHOWN = 2  # neurons, those of largest influence


def rows(run: RunState) -> pd.DataFrame:
    """The rows that the page shows: truth, prediction, deviation, the most influential neurons."""
    assert run.report is not None
    a = run.report.arrays
    most = np.argsort(-a["influence"], kind="stable")[:SHOWN]
    return pd.DataFrame(
        {
            "truth": a["truth"],
            "predicted": a["predicted"],
            "deviation": a["predicted_std"],
            **{f"neuron {run.metadata['neurons'][i]}": a["hidden"][:, i] for i in most},
        }
    )


def axes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Prediction against truth, and against what the first neurons see."""
    neurons = [str(name) for name in frame.columns[3:]]
    results = [("truth", "predicted")]
    if len(neurons) == SHOWN:
        results += [(neurons[0], neurons[1]), (neurons[0], "predicted")]
    return results


def measures(frame: pd.DataFrame) -> dict[str, float]:
    """Average precision and accuracy of classes, NMSE and RMSE of values and times."""
    y, predicted = frame["truth"].to_numpy(), frame["predicted"].to_numpy()
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
