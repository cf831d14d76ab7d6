"""The lists of a session: labels given, unsure patches, disputes."""

from __future__ import annotations

from itertools import combinations
from math import isfinite
from typing import Any

from scant.store.label_agreement import kappa
from scant.store.records import ADJUDICATOR, Label
from scant_dashboard.pages.clamp.session_labels import SessionLabels
from scant_dashboard.translate import ntr, tr

LISTED = 48  # maximum patches per list


def lists(labels: SessionLabels) -> dict[str, Any]:
    """Return the widget's list parameters, latest first; open disputes precede decided ones."""
    open_first = dict.fromkeys([*labels.open_disputes, *labels.disputes])
    return {
        "history": [_entry(v) for v in list(labels.sure.values())[::-1][:LISTED]],
        "unsure": [_entry(v) for v in list(labels.unsure.values())[::-1][:LISTED]],
        "disputes": [_dispute(labels, row) for row in list(open_first)[:LISTED]],
        "agreement": agreement(labels),
    }


def _entry(label: Label) -> dict[str, Any]:
    return {"row": label.item, "label": label.label, "who": label.labeler, "role": label.role}


def _dispute(labels: SessionLabels, row: int) -> dict[str, Any]:
    stands = labels.standing[row]
    given = [{"label": v.label, "who": v.labeler} for v in labels.disputes[row]]
    decided = stands.label if stands.role == ADJUDICATOR else ""
    return {"row": row, "given": given, "decided": decided}


def agreement(labels: SessionLabels) -> str:
    """Describe the agreement of the two labelers with the most patches in common.

    Returns "" if there is only one labeler.
    """
    people = labels.by_labeler
    if len(people) < 2:
        return ""
    pairs = [(kappa(people[a], people[b]), a, b) for a, b in combinations(people, 2)]
    (both, agreed, kappa_value), a, b = max(pairs, key=lambda pair: pair[0][0])
    if not both:
        return tr("{a} and {b} have not labeled the same rows yet.", a=a, b=b)
    values = {"a": a, "b": b, "share": agreed}
    if not isfinite(kappa_value):
        return ntr("{a} and {b} both labeled {n} row and agree on {share:.0%}.",
                   "{a} and {b} both labeled {n} rows and agree on {share:.0%}.", both,
                   **values)  # fmt: skip
    return ntr(
        "{a} and {b} both labeled {n} row and agree on {share:.0%}; beyond chance, Cohen's kappa "
        "is {kappa:.2f}.",
        "{a} and {b} both labeled {n} rows and agree on {share:.0%}; beyond chance, Cohen's "
        "kappa is {kappa:.2f}.",
        both, kappa=kappa_value, **values,
    )  # fmt: skip
