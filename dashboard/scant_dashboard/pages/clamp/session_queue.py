"""The patches to label next: the model's choice, or another kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scant_dashboard.pages.clamp.progress import Answer
from scant_dashboard.pages.clamp.session_labels import SessionLabels

MAX_QUEUE = 100  # patches per answer of the model
MODEL, OTHERS = "what the model needs", "what others labeled"
PRELABELS, UNSURE = "pre-labels to check", "unsure patches"
KINDS = (MODEL, OTHERS, PRELABELS, UNSURE)
DONE = "All patches are labeled or skipped."
NONE_OF_OTHERS = "No other visitor has labeled a patch that you have not."
NO_PRELABELS = "There is no pre-label left to check; load a file of labels below."
NONE_UNSURE = "Nobody is unsure of a patch."


def next_patches(
    of: str, answer: Answer, labels: SessionLabels, skipped: Sequence[int], classes: Sequence[str]
) -> tuple[list[dict[str, Any]], str]:
    """Return the patches to label next, best first, in the widget's format.

    Args:
        of: One of `KINDS`.
        answer: The model's answer to "ask".
        labels: Labels of the session.
        skipped: Skipped rows.
        classes: Names of the classes.

    Returns:
        The patches, and a sentence if there are none; "" while the model is still choosing.
    """
    stand = labels.standing
    made: list[dict[str, Any]]
    if of == OTHERS:
        why, idle = "labeled by another visitor; which class do you see?", NONE_OF_OTHERS
        made = [{"row": r, "why": why} for r in stand if r not in labels.own]
    elif of == PRELABELS:
        idle = NO_PRELABELS
        made = [
            {"row": r, "why": f"pre-label {v.label}, by {v.labeler}; is that right?"}
            | ({"suggest": classes.index(v.label)} if v.label in classes else {})
            for r, v in labels.prelabels.items()
        ]
    elif of == UNSURE:
        idle = NONE_UNSURE
        made = [{"row": r, "why": f"{v.labeler} is unsure; which class do you see?"}
                for r, v in labels.unsure.items()]  # fmt: skip
    else:
        rows = [int(r) for r in answer["queue"]]
        idle = "" if rows else DONE
        reasons = [str(w) for w in answer["reason"]]
        made = [{"row": r, "why": w} for r, w in zip(rows, reasons) if r not in stand]
    return [one for one in made if one["row"] not in skipped], idle
