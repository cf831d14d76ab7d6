"""Progress of a labeling session: labels given, labels needed, and the current score."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Any

import numpy as np

from scant_dashboard.translate import ntr, tr

Answer = dict[str, np.ndarray]  # the model's answer to a query


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
    lines = [tr("Labels given: {n:,} of a budget of {budget:,}.", n=given, budget=budget)]
    if given >= budget:
        lines = [
            tr("Labels given: {n:,}. The budget of {budget:,} is used up; you may go on.",
               n=given, budget=budget)
        ]  # fmt: skip
    needed = _number(answer, "remaining")
    if isfinite(needed) and given:
        message = tr("No further labels are expected to be needed.")
        if needed >= 1:
            message = ntr("About {n:,} further label is expected to be needed.",
                          "About {n:,} further labels are expected to be needed.",
                          round(needed))  # fmt: skip
        lines.append(message)
    lines += [score] if (score := score_of(answer, labeled, tested)) else []
    return {"given": given, "budget": budget, "lines": lines}


def score_of(answer: Answer, labeled: Collection[int], tested: int = 0) -> str:
    """Describe F1, its interval and its rows in a sentence; "" if unknown."""
    f1 = _number(answer, "f1")
    if not isfinite(f1):
        return ""
    interval = np.ravel(np.asarray(answer.get("f1_interval", ()), float))
    has_interval = len(interval) == 2 and bool(np.isfinite(interval).all())
    score = tr("F1 {value:.2f}", value=f1)
    if has_interval:
        score = tr("F1 {value:.2f} ({low:.2f} to {high:.2f})", value=f1, low=interval[0],
                   high=interval[1])  # fmt: skip
    if _number(answer, "held_out") != 1:
        return tr("{score} by cross-validation on the labels that the model learns from. These "
                  "rows were not drawn at random, so F1 on others may differ.",
                  score=score)  # fmt: skip
    n_drawn = len({int(r) for r in np.ravel(answer.get("held_out_rows", ()))} & set(labeled))
    if n_drawn and not tested:
        return ntr(
            "{score} on {n:,} row drawn at random, whose label is not learned from.",
            "{score} on {n:,} rows drawn at random, whose labels are not learned from.",
            n_drawn, score=score,
        )  # fmt: skip
    if n_drawn:
        return tr("{score} on rows that are held out, {n} of them drawn at random.",
                  score=score, n=n_drawn)  # fmt: skip
    return tr("{score} on rows that are held out, whose labels are not learned from.",
              score=score)  # fmt: skip


def _number(answer: Answer, name: str) -> float:
    value = np.ravel(np.asarray(answer.get(name, np.nan), float))
    return float(value[0]) if len(value) else float("nan")
