"""How far a labeling session is: labels given, labels still needed, and what its score is of."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any

import numpy as np

Answer = dict[str, np.ndarray]  # of the model, to a question
FOLDS = "by cross-validation on the labels that it learns from"


def progress_of(
    answer: Answer, labeled: Collection[int], budget: int, tested: int = 0
) -> dict[str, Any]:
    """What the widget shows of it.

    Args:
        answer: To the question "ask"; {} before the first.
        labeled: The rows with a label that tells a class.
        budget: Labels that the settings allow for.
        tested: Rows of the table that are held out.

    Returns:
        `given`, `budget`, and `lines`: sentences.
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
    """F1, its interval, and which rows it is of, in a sentence; "" where it is not known."""
    f1 = _number(answer, "f1")
    if not isfinite(f1):
        return ""
    interval = np.ravel(np.asarray(answer.get("f1_interval", ()), float))
    known = len(interval) == 2 and bool(np.isfinite(interval).all())
    said = f"F1 {f1:.2f}" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if known else "")
    if _number(answer, "held_out") != 1:
        return f"{said} {FOLDS}: these were chosen, so that of other patches may differ."
    drawn = len({int(r) for r in np.ravel(answer.get("held_out_rows", ()))} & set(labeled))
    if drawn and not tested:
        return f"{said} on {_many(drawn)} drawn at random, whose labels are not learned from."
    return f"{said} on patches that are held out" + (
        f", {drawn} of them drawn at random." if drawn else ", whose labels are not learned from."
    )


def _many(count: int) -> str:
    return f"{count:,} patch{'es' * (count != 1)}"


def _number(answer: Answer, name: str) -> float:
    value = np.ravel(np.asarray(answer.get(name, np.nan), float))
    return float(value[0]) if len(value) else float("nan")
