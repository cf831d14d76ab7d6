"""Conclusions of the publications that our results confirm or contradict, as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from scant.reproduce.claims import Claim, Comparison, MeanScore
from scant.reproduce.items import publications
from scant_dashboard.translate import as_number, later, tr

CONTRADICTED = later("Did not reproduce")
ON_OTHER_DATA = later("Did not reproduce on other data")
UNCLEAR = later("No clear difference here")
WORDS = later("Table"), later("Figure")
SHOWN = 3  # comparisons of one conclusion that are printed; a reader sees the pattern in three


def not_confirmed(claims: Iterable[Claim]) -> str:
    """List the conclusions that our results contradict, or neither confirm nor contradict.

    Args:
        claims: Conclusions of one or several publications.

    Returns:
        HTML, with our scores and their data; "" if there are none.
    """
    tested = [claim for claim in claims if claim.measured or claim.holds is False]
    against = [claim for claim in tested if claim.holds is False]
    groups = {
        CONTRADICTED: [claim for claim in against if not claim.on_other_data],
        ON_OTHER_DATA: [claim for claim in against if claim.on_other_data],
        UNCLEAR: [claim for claim in tested if claim.holds is None],
    }
    return "".join(
        f"<h3>{tr(title)}</h3><ul class='conclusions'>"
        f"{''.join(f'<li>{_claim(claim)}{_evidence(claim)}</li>' for claim in group)}</ul>"
        for title, group in groups.items()
        if group
    )


def confirmed(claims: Iterable[Claim]) -> str:
    """List the conclusions that our results confirm, collapsed; "" if there are none."""
    holding = [claim for claim in claims if claim.holds]
    if not holding:
        return ""
    items = "".join(f"<li>{_claim(claim)}</li>" for claim in holding)
    summary = tr("Conclusions that hold here: {n}", n=len(holding))
    return f"<details><summary>{summary}</summary><ul class='conclusions'>{items}</ul></details>"


def place(where: str) -> str:
    """Write a place such as "Figure 5.1; YSA19, Figure 1" in words of the language spoken."""
    for publication in publications():
        where = where.replace(publication.key, publication.name)
    for word in WORDS:
        where = where.replace(word, tr(word))
    return where


def _claim(claim: Claim) -> str:
    return f"{escape(tr(claim.text))} <span class='quiet'>{escape(place(claim.where))}</span>"


def _evidence(claim: Claim) -> str:
    """Say how many comparisons disagree or do not tell, with our scores of some, and the data."""
    shown = claim.with_verdict(claim.holds)
    values = {"n": len(shown), "all": len(claim.comparisons)}
    if len(claim.comparisons) == 1:
        count = ""
    elif claim.holds is None:
        count = tr("{n} of {all} comparisons show no clear difference", **values) + ": "
    else:
        count = tr("{n} of {all} comparisons disagree", **values) + ": "
    return f"<br><span class='quiet'>{count}{_scores(shown)}. {_data(shown)}</span>"


def _scores(shown: Sequence[Comparison]) -> str:
    lines = [_score(one) for one in shown[:SHOWN]]
    more = len(shown) - len(lines)
    if more:
        lines.append(tr("and {n} more", n=more))
    return "; ".join(lines)


def _score(one: Comparison) -> str:
    assert one.ours is not None
    first, second = (
        f"{escape(tr(name))} {_number(score)}"
        for name, score in zip((one.better, one.worse), one.ours)
    )
    return f"{escape(tr(one.experiment))}, {escape(tr(one.metric))}: {first}, {second}"


def _data(shown: Sequence[Comparison]) -> str:
    data = "; ".join(dict.fromkeys(one.data for one in shown))
    return escape(tr("Data: {data}.", data=data))


def _number(score: MeanScore) -> str:
    """Return a mean and its deviation with as many digits as tell."""
    spread = "" if math.isnan(score.spread) else f" ± {_digits(score.spread, 2)}"
    return as_number(f"{_digits(score.mean, 3)}{spread}")


def _digits(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):,.15g}"  # no exponent for thousands
