"""The patches to label next: the model's choice, or another kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scant_dashboard.engine_text import translated
from scant_dashboard.pages.clamp.progress import Answer
from scant_dashboard.pages.clamp.session_labels import SessionLabels
from scant_dashboard.translate import later, tr

MAX_QUEUE = 100  # patches per answer of the model
MODEL, OTHERS = later("what the model needs"), later("what others labeled")
PRELABELS, UNSURE = later("pre-labels to check"), later("unsure rows")
KINDS = (MODEL, OTHERS, PRELABELS, UNSURE)
DONE = later("All rows are labeled or skipped.")
NONE_OF_OTHERS = later("No other visitor has labeled a row that you have not.")
NO_PRELABELS = later("There is no pre-label left to check; load a file of labels below.")
NONE_UNSURE = later("Nobody is unsure of a row.")


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
        The patches, and a sentence in English if there are none; "" while the model is choosing.
    """
    stand = labels.standing
    made: list[dict[str, Any]]
    if of == OTHERS:
        idle = NONE_OF_OTHERS
        why = tr("labeled by another visitor; which class do you see?")
        made = [{"row": r, "why": why} for r in stand if r not in labels.own]
    elif of == PRELABELS:
        idle = NO_PRELABELS
        made = [
            {
                "row": r,
                "why": tr(
                    "pre-label {label}, by {name}; is that right?", label=v.label, name=v.labeler
                ),
            }
            | ({"suggest": classes.index(v.label)} if v.label in classes else {})
            for r, v in labels.prelabels.items()
        ]
    elif of == UNSURE:
        idle = NONE_UNSURE
        made = [{"row": r,
                 "why": tr("{name} is unsure; which class do you see?", name=v.labeler)}
                for r, v in labels.unsure.items()]  # fmt: skip
    else:
        rows = [int(r) for r in answer["queue"]]
        idle = "" if rows else DONE
        reasons = [translated(str(w)) for w in answer["reason"]]
        made = [{"row": r, "why": w} for r, w in zip(rows, reasons) if r not in stand]
    return [one for one in made if one["row"] not in skipped], idle
