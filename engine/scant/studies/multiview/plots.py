"""The multiview study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(elements: Elements) -> dict[str, Any]:
    """Plot contributions of the views, held-out rows, and scores of the methods."""
    a, metadata = elements.arrays, elements.metadata
    result: dict[str, Any] = {}
    if elements.has("influence"):
        result["What each neuron contributes"] = elements.bars(
            metadata["neurons"], a["influence"], "influence"
        )
    if elements.has("test_truth") and metadata["task"] == "classification":
        truth = a["test_truth"] > 0.5
        result["Probabilities by class"] = elements.densities(
            "test_predicted", truth, metadata["classes"]
        )
    elif elements.has("test_truth") and metadata["task"] == "regression":
        result["Predicted against true"] = elements.against(
            "test_truth", "test_predicted", "test_std"
        )
    elif elements.has("patient_time"):
        result["Survival times, predicted against true"] = elements.against(
            "patient_time", "patient_pred"
        )
        result["Survival, observed and predicted"] = elements.lines(
            a["km_time"],
            np.stack([a["km_true"][0], a["km_predicted"][0], a["km_expected"]]),
            ("Kaplan-Meier", "predicted times", "mean survival function"),
            ("time", "share surviving"),
        )
    result["Scores of the methods"] = elements.bars(
        metadata["methods"], np.nanmean(a["scores"], axis=1), str(metadata["score"])
    )
    if elements.has("pr"):
        result["Precision and recall"] = elements.lines(
            a["pr"][:, 2], a["pr"][:, 1], metadata["methods"], ("recall", "precision")
        )
    return result
