"""Queries of a fitted aggregation study."""

from __future__ import annotations

from typing import Any

import numpy as np

from scant.errors import BadInput
from scant.studies.aggregation.entry import ENTRY
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.maps import polygon
from scant.studies.aggregation.scarcity import curve, retrain

GRID = 200


def answer(fitted: FittedMTGPA, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of the catalog entry of `question`.

    Raises:
        BadInput: The question or task is unknown, or the box is invalid.
    """
    if question == "box":
        return box(fitted, query)
    if question == "field":
        return fitted.field(str(query.get("task", fitted.scarce)))
    if question == "polygon":
        return polygon(fitted, query)
    if question == "scarcity":
        return curve(fitted)
    if question == "retrain":
        return retrain(fitted, query)
    raise BadInput(f"There is no question {question!r}; there are {', '.join(ENTRY.explore)}.")


def box(fitted: FittedMTGPA, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Posterior of a task's average over one box."""
    dims = fitted.dims
    bounds = [np.asarray(query.get(name, ()), float) for name in ("lo", "hi")]
    if any(len(b) != len(dims) or not np.isfinite(b).all() for b in bounds):
        raise BadInput(f"A box needs a lower and an upper bound of {', '.join(dims)}.")
    lo, hi = np.minimum(*bounds)[None], np.maximum(*bounds)[None]
    task = fitted.task(str(query.get("task", fitted.scarce)))
    mean, std, new = (float(v[0]) for v in fitted.moments(fitted.boxes(lo, hi), task))
    std = max(std, 1e-12 * max(abs(mean), 1.0))
    grid = np.linspace(mean - 4 * std, mean + 4 * std, GRID)
    return {
        "grid": grid,
        "density": np.exp(-0.5 * ((grid - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi)),
        "moments": np.array([mean, std, new]),
    }
