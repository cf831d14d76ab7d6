"""The multiview study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """What each view contributes, the held-out rows, and the score of every method."""
    a, metadata = made.arrays, made.metadata
    drawn: dict[str, Any] = {}
    if made.has("influence"):
        drawn["What each neuron contributes"] = made.bars(
            metadata["neurons"], a["influence"], "influence"
        )
    if made.has("test_truth") and metadata["task"] == "classification":
        truth = a["test_truth"] > 0.5
        drawn["Probabilities by class"] = made.densities(
            "test_predicted", truth, metadata["classes"]
        )
    elif made.has("test_truth") and metadata["task"] == "regression":
        drawn["Predicted against true"] = made.against("test_truth", "test_predicted", "test_std")
    elif made.has("patient_time"):
        drawn["Survival times, predicted against true"] = made.against(
            "patient_time", "patient_pred"
        )
        drawn["Survival, observed and predicted"] = made.lines(
            a["km_time"],
            np.stack([a["km_true"][0], a["km_predicted"][0], a["km_expected"]]),
            ("Kaplan-Meier", "predicted times", "mean survival function"),
            ("time", "share surviving"),
        )
    drawn["Scores of the methods"] = made.bars(
        metadata["methods"], np.nanmean(a["scores"], axis=1), str(metadata["score"])
    )
    if made.has("pr"):
        drawn["Precision and recall"] = made.lines(
            a["pr"][:, 2], a["pr"][:, 1], metadata["methods"], ("recall", "precision")
        )
    return drawn
