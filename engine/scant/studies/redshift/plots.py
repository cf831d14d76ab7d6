"""The redshift study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scant.learners.knocked_out import NAMES

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """Predictions with their intervals, and errors with inputs missing."""
    count, *scores = made.arrays["missing"]
    errors = scores[:4]  # two in older reports; NaN for a baseline that is not installed
    names = ("this run", *NAMES)[: len(errors)]
    finite = [k for k, error in enumerate(errors) if np.isfinite(error).any()]
    errors, names = [errors[k] for k in finite], tuple(names[k] for k in finite)
    return {
        "Prediction against truth": made.against(
            "z_true", "z_mean", "std_model", "std_noise", "std_input"
        ),
        "Inputs missing": made.lines(count, np.stack(errors), names, ("inputs missing", "RMSE")),
    }
