"""The redshift study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """Predictions with their bands, and what missing bands cost."""
    count, *errors = made.arrays["missing"]
    names = ("this run", "random forest")
    return {
        "Prediction against truth": made.against(
            "z_true", "z_mean", "std_model", "std_noise", "std_input"
        ),
        "Bands missing": made.lines(count, np.stack(errors), names, ("bands missing", "RMSE")),
    }
