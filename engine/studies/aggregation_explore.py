"""Answers to what a person asks of a fitted aggregation study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.catalog.aggregation import ENTRY
from engine.errors import BadInput
from engine.studies import aggregation_space as space
from engine.studies.aggregation_scarcity import curve, retrain

if TYPE_CHECKING:
    from engine.studies.aggregation import Study

GRID = 200


def answer(study: Study, question: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, a task or box that cannot be.
    """
    if question == "box":
        return box(study, asked)
    if question == "field":
        return study.field(str(asked.get("task", study.words["scarce"])))
    if question == "scarcity":
        return curve(study)
    if question == "retrain":
        return retrain(study, asked)
    raise BadInput(f"Nothing is known of {question!r}; ask {', '.join(ENTRY.explore)}.")


def box(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Posterior of a task's average over one box."""
    dims = study.words["dims"]
    bounds = [np.asarray(asked.get(name, ()), float) for name in ("lo", "hi")]
    if any(len(b) != len(dims) or not np.isfinite(b).all() for b in bounds):
        raise BadInput(f"A box needs a lower and an upper bound of {', '.join(dims)}.")
    lo, hi = np.minimum(*bounds)[None], np.maximum(*bounds)[None]
    task = study.task(str(asked.get("task", study.words["scarce"])))
    mean, std, new = (float(v[0]) for v in study.ask(space.tensors_of(lo, hi, study.device), task))
    std = max(std, 1e-12 * max(abs(mean), 1.0))
    grid = np.linspace(mean - 4 * std, mean + 4 * std, GRID)
    return {
        "grid": grid,
        "density": np.exp(-0.5 * ((grid - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi)),
        "moments": np.array([mean, std, new]),
    }
