"""Conclusions of the publications that our results confirm or contradict, as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from scant.reproduce.claims import Claim, Comparison, Score
from scant_dashboard.translate import as_number, later, tr

TITLE = later("Did not reproduce")
WORDS = later("Table"), later("Figure")
SHOWN = 3  # comparisons of one conclusion that are printed; a reader sees the pattern in three


def did_not_reproduce(claims: Iterable[Claim], level: int = 3) -> str:
    """List the conclusions that our results contradict; "" if there are none.

    Args:
        claims: Conclusions of one or several publications.
        level: Level of the heading.
    """
    against = [claim for claim in claims if claim.holds is False]
    if not against:
        return ""
    items = "".join(f"<li>{_claim(claim)}{_evidence(claim)}</li>" for claim in against)
    return f"<h{level}>{tr(TITLE)}</h{level}><ul class='conclusions'>{items}</ul>"


def those_that_hold(claims: Iterable[Claim]) -> str:
    """List the conclusions that our results confirm, collapsed; "" if there are none."""
    confirmed = [claim for claim in claims if claim.holds]
    if not confirmed:
        return ""
    items = "".join(f"<li>{_claim(claim)}</li>" for claim in confirmed)
    summary = tr("Conclusions that hold here: {n}", n=len(confirmed))
    return f"<details><summary>{summary}</summary><ul class='conclusions'>{items}</ul></details>"


def place(where: str) -> str:
    """Write a place such as "6.3.4, Table 6.7" in the language spoken."""
    for word in WORDS:
        where = where.replace(word, tr(word))
    return where


def _claim(claim: Claim) -> str:
    return f"{escape(tr(claim.text))} <span class='quiet'>{escape(place(claim.where))}</span>"


def _evidence(claim: Claim) -> str:
    lines = [_scores(one) for one in claim.against[:SHOWN]]
    more = len(claim.against) - len(lines)
    if more:
        lines.append(tr("and in {n} more comparisons", n=more))
    count = tr(
        "{n} of {all} comparisons disagree", n=len(claim.against), all=len(claim.comparisons)
    )
    return f"<br><span class='quiet'>{count}: {'; '.join(lines)}.</span>"


def _scores(one: Comparison) -> str:
    assert one.ours is not None
    first, second = (
        f"{escape(tr(name))} {_number(score)}"
        for name, score in zip((one.better, one.worse), one.ours)
    )
    return f"{escape(tr(one.experiment))}, {escape(tr(one.metric))}: {first}, {second}"


def _number(score: Score) -> str:
    spread = "" if math.isnan(score.spread) else f" ± {score.spread:.2g}"
    return as_number(f"{score.mean:.3g}{spread}")
