"""Queries of a fitted redshift study, without retraining."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from scant import metrics
from scant.errors import BadInput
from scant.studies.redshift.fitted import FittedGPz

GRID = 240
DRAWN = 6  # components drawn one by one; the others are in the sum


def answer(fitted: FittedGPz, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, a band or row that is not there.
    """
    off, bands = list(query.get("off", ())), fitted.features.optional
    unknown = [band for band in off if band not in bands]
    if unknown:
        raise BadInput(f"There is no band {unknown[0]!r}; the bands are {', '.join(bands)}.")
    if off and len(off) == len(bands):
        raise BadInput("At least one band must stay on; switch one back on.")
    if question == "without":
        return without(fitted, off)
    if question == "density":
        return density(fitted, int(query.get("row", 0)), off)
    raise BadInput(f"There is no question {question!r}; there are 'without' and 'density'.")


def without(fitted: FittedGPz, off: list[str]) -> dict[str, np.ndarray]:
    """Every test row as if the bands in `off` had not been measured (5.22-5.40)."""
    y, prediction, log_density, *_ = fitted.judge(fitted.shown, off)
    mean = prediction.mean.numpy()
    return {
        "z_mean": mean,
        "std_model": prediction.model_variance.sqrt().numpy(),
        "std_noise": prediction.noise_variance.sqrt().numpy(),
        "std_input": prediction.input_variance.sqrt().numpy(),
        "metrics": np.array(
            [
                metrics.rmse(y, mean),
                float(log_density.mean()),
                metrics.fraction_within(y, mean, 0.15),
                metrics.fraction_within(y, mean, 0.05),
            ]
        ),
    }


def density(fitted: FittedGPz, row: int, off: list[str]) -> dict[str, np.ndarray]:
    """p(z) of one test row as a mixture, with its heaviest parts."""
    if not 0 <= row < len(fitted.shown):
        raise BadInput(f"There is no test row {row}; there are {len(fitted.shown)}.")
    table = fitted.shown.iloc[[row]]
    parts = fitted.components(table, off)
    z = fitted.shown[fitted.settings.target].to_numpy()
    low, high = np.nanmin(z), np.nanmax(z)
    margin = 0.05 * (high - low)
    grid = np.linspace(low - margin, high + margin, GRID)
    if fitted.target.positive:
        grid = np.linspace(max(low, high * 1e-4), high + margin, GRID)
    own = fitted.target.standardize(torch.as_tensor(grid)).numpy()
    stretch = 1 / fitted.target.scale / (grid if fitted.target.positive else 1.0)
    weight, mean = parts.weights[0].cpu().numpy(), parts.mean[0].cpu().numpy()
    spread = (parts.model_variance + parts.noise_variance + parts.input_variance)[0].cpu().numpy()
    used = weight > 0
    weight, mean, spread = weight[used], mean[used], spread[used]
    each = weight[:, None] * np.exp(-0.5 * (own - mean[:, None]) ** 2 / spread[:, None])
    each *= stretch / np.sqrt(2 * np.pi * spread[:, None])
    heaviest = np.argsort(-weight)[:DRAWN]
    return {"grid": grid, "density": each.sum(0), "components": each[heaviest]}
