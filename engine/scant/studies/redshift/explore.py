"""Queries of a fitted redshift study, without retraining."""

from __future__ import annotations

from typing import Any

import numpy as np

from scant.errors import BadInput
from scant.evaluate.scores import scores_of
from scant.predictive import MixturePredictive
from scant.studies.redshift.fitted import FittedGPz
from scant.studies.redshift.problem import problem_of

GRID = 240
SCORED = (
    "RMSE", "mean log-likelihood", "F_0.15", "F_0.05", "bias", "sigma_MAD", "outliers beyond 0.15",
    "outliers beyond 3 sigma", "CRPS", "CDE loss", "PIT-KS",
)  # fmt: skip
DRAWN = 6  # components plotted one by one; the sum includes the others


def answer(fitted: FittedGPz, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of the catalog for `question`.

    Raises:
        BadInput: The question, a band or the row is unknown.
    """
    off, bands = list(query.get("off", ())), fitted.features.optional
    unknown = [band for band in off if band not in bands]
    if unknown:
        raise BadInput(f"There is no input {unknown[0]!r}; the inputs are {', '.join(bands)}.")
    if off and len(off) == len(bands):
        raise BadInput("At least one input must stay on; switch one back on.")
    fitted.meet(fitted.complete, off)  # one model, in a few seconds
    if question == "without":
        return without(fitted, off)
    if question == "density":
        return density(fitted, int(query.get("row", 0)), off)
    raise BadInput(f"There is no question {question!r}; there are 'without' and 'density'.")


def without(fitted: FittedGPz, off: list[str]) -> dict[str, np.ndarray]:
    """Predict test rows as if the bands in `off` had not been measured (5.22-5.40)."""
    scored = fitted.score(fitted.shown, off)
    predictive = scored.predictive
    assert isinstance(predictive, MixturePredictive)
    table = fitted.shown
    problem = problem_of(fitted.features, table, table, fitted.settings.target)
    return {
        "z_mean": scored.value,
        "std_model": np.sqrt(predictive.model_variance),
        "std_noise": np.sqrt(predictive.noise_variance),
        "std_input": np.sqrt(predictive.input_variance),
        "pit": scored.pit,
        "metrics": np.array(scores_of(problem, scored, SCORED)),
    }


def density(fitted: FittedGPz, row: int, off: list[str]) -> dict[str, np.ndarray]:
    """p(z) of one test row as a mixture, with its heaviest components."""
    if not 0 <= row < len(fitted.shown):
        raise BadInput(f"There is no test row {row}; there are {len(fitted.shown)}.")
    table = fitted.shown.iloc[[row]]
    predictive = fitted.predict(table, off)
    z = fitted.shown[fitted.settings.target].to_numpy()
    low, high = np.nanmin(z), np.nanmax(z)
    margin = 0.05 * (high - low)
    grid = np.linspace(low - margin, high + margin, GRID)
    if predictive.log:
        grid = np.linspace(max(low, high * 1e-4), high + margin, GRID)
    densities = predictive.component_densities(grid)[0]
    heaviest = np.argsort(-predictive.weights[0], kind="stable")[:DRAWN]
    heaviest = heaviest[predictive.weights[0, heaviest] > 0]
    return {"grid": grid, "density": densities.sum(0), "components": densities[heaviest]}
