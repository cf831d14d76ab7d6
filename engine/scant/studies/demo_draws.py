"""Scores of each demonstration over draws of its data, as `scripts/demo_spread.py` measured them.

A recording is one draw, and its verdict says nothing of others; `sentence` does.
"""

from __future__ import annotations

import csv
import io
from functools import cache
from statistics import median

from scant.package_data import package_file
from scant.verdict import LARGER, NO_RIVALS

FILE = "demonstrations.csv"
COLUMNS = ("study", "data_seed", "method", "source", "score", "value")
OURS = "this run"
# Method and score that pages tell the spread of.
TOLD: dict[str, tuple[tuple[str, str], ...]] = {
    "mitosis": ((OURS, "F1"), (OURS, "mean log probability (nats)")),
    "multiview": ((OURS, "F1"), (OURS, "mean log probability (nats)")),
    "clamp": ((OURS, "F1"), ("GP, active", "mean gain of F1 over random")),
    "aggregation": ((OURS, "RMSE"), (OURS, "SNLP")),
    "redshift": ((OURS, "RMSE"), (OURS, "mean log-likelihood")),
    "omniglot": ((OURS, "F1"), (OURS, "mean log probability (nats)")),
    "genes": ((OURS, "NMSE"), (OURS, "NLPD")),
}

Scores = dict[tuple[str, str], dict[int, float]]  # by method and score, then by data seed


@cache
def scores(study: str) -> Scores:
    """Return the scores of this run's model and of the methods beside it; empty if not measured."""
    file = package_file("results", FILE)
    if not file.is_file():
        return {}
    result: Scores = {}
    for row in csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))):
        if row["study"] == study:
            of_score = result.setdefault((row["method"], row["score"]), {})
            of_score[int(row["data_seed"])] = float(row["value"])
    return result


def sentence(study: str) -> str:
    """Return range and median of the study's main scores, and how often no other method won."""
    all_scores = scores(study)
    parts = [_of_score(all_scores, *key) for key in TOLD[study] if key in all_scores]
    if not parts:
        return ""
    n = len(all_scores[TOLD[study][0]])
    return f"The demonstration is one draw of its data. On {n} draws, {'; '.join(parts)}."


def _of_score(all_scores: Scores, method: str, score: str) -> str:
    values = all_scores[method, score]
    low, middle, high = (f"{f(values.values()):.3g}" for f in (min, median, max))
    text = f"{score} was {low} to {high}, median {middle}"
    others = [
        of_score
        for (other, name), of_score in all_scores.items()
        if name == score and other != method and other not in NO_RIVALS
    ]
    if not others:
        return text
    sign = 1 if LARGER.get(score, True) else -1
    best = {seed: max(sign * o[seed] for o in others if seed in o) for seed in values}
    ahead = sum(sign * value > best[seed] for seed, value in values.items())
    which = "all" if ahead == len(values) else f"{ahead} of them"
    return f"{text}, better than that of every other method on {which}"
