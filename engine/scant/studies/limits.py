"""The first limit of a run (`scant.events.Report.limits`): the methods that predict."""

from __future__ import annotations

from collections.abc import Mapping

LEFT_OUT = "training rows that were left out"


def sentence(weights: Mapping[str, float], by: str = "") -> str:
    """Sentence on the methods that predict, with their weights.

    Args:
        weights: Weight of each method, by its name.
        by: Origin of the weights; "" if there is one method only.
    """
    used = sorted(((w, name) for name, w in weights.items() if w), reverse=True)
    if len(used) == 1:
        return f"Predictions come from {used[0][1]} alone{f', chosen by {by}' if by else ''}."
    parts = ", ".join(f"{name} {w:.2f}" for w, name in used)
    return (
        f"Predictions are an average ({parts}), its weights by {by}; it is not in the publication."
    )


def answered(weights: Mapping[str, float] | None, own: str) -> str:
    """Sentence on the methods that predict: a study's model, or its average with others.

    Args:
        weights: Weights by left-out rows, that of the model first; None if there is no average.
        own: Name of the model.
    """
    if weights is None:
        return sentence({own: 1.0})
    return sentence(dict(zip((own, *list(weights)[1:]), weights.values())), LEFT_OUT)
