"""Progress of a labeling session: labels given, labels needed, and the current score."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any

import numpy as np

Answer = dict[str, np.ndarray]  # the model's answer to a query
FOLDS = "by cross-validation on the labels that it learns from"


def progress_of(
    answer: Answer, labeled: Collection[int], budget: int, tested: int = 0
) -> dict[str, Any]:
    """Describe the progress for the widget.

    Args:
        answer: The model's answer to "ask"; {} before the first.
        labeled: Rows with a label that names a class.
        budget: Number of labels in the settings.
        tested: Number of held-out rows of the table.

    Returns:
        `given`, `budget`, and `lines`, a list of sentences.
    """
    given = len(labeled)
    lines = [f"{given:,} of {budget:,} labels of the budget."]
    if given >= budget:
        lines = [f"{given:,} labels: the budget of {budget:,} is used. You may go on."]
    needed = _number(answer, "remaining")
    if isfinite(needed) and given:
        more = f"About {round(needed):,} more are" if needed >= 1 else "No more are"
        lines.append(f"{more} expected to be needed.")
    lines += [score] if (score := score_of(answer, labeled, tested)) else []
    return {"given": given, "budget": budget, "lines": lines}


def score_of(answer: Answer, labeled: Collection[int], tested: int = 0) -> str:
    """Describe F1, its interval and its rows in a sentence; "" if unknown."""
    f1 = _number(answer, "f1")
    if not isfinite(f1):
        return ""
    interval = np.ravel(np.asarray(answer.get("f1_interval", ()), float))
    has_interval = len(interval) == 2 and bool(np.isfinite(interval).all())
    score = f"F1 {f1:.2f}" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if has_interval else "")
    if _number(answer, "held_out") != 1:
        return f"{score} {FOLDS}: these were chosen, so that of other patches may differ."
    n_drawn = len({int(r) for r in np.ravel(answer.get("held_out_rows", ()))} & set(labeled))
    if n_drawn and not tested:
        return f"{score} on {_patches(n_drawn)} drawn at random, whose labels are not learned from."
    return f"{score} on patches that are held out" + (
        f", {n_drawn} of them drawn at random."
        if n_drawn
        else ", whose labels are not learned from."
    )


def _patches(count: int) -> str:
    return f"{count:,} patch{'es' * (count != 1)}"


def _number(answer: Answer, name: str) -> float:
    value = np.ravel(np.asarray(answer.get(name, np.nan), float))
    return float(value[0]) if len(value) else float("nan")
