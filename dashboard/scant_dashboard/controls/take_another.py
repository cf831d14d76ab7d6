"""The card "Take another tool when …": subsets of the rows on which a rival is ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from scant.verdict import OURS, RIVAL, Contest, Part, Verdict, shown
from scant_dashboard.translate import as_number, later, ntr, tr

HEAD = later("Take another tool when …")


def lines(made: Verdict) -> list[str]:
    """Return the card as sentences, the heading first; empty if no subset was compared."""
    if not made.parts:
        return []
    losses = comparisons(made.parts, RIVAL) or [_none_ahead(made.parts)]
    return [tr(HEAD), *losses, *comparisons(made.parts, OURS)]


def take_another(made: Verdict) -> str:
    """Return the card as HTML; "" if no subset was compared."""
    if not made.parts:
        return ""
    losses, wins = (comparisons(made.parts, who) for who in (RIVAL, OURS))
    body = _list(losses) if losses else f"<p>{escape(_none_ahead(made.parts))}</p>"
    if wins:
        body += (
            f"<details><summary>{tr('Where this run is ahead')}</summary>{_list(wins)}</details>"
        )
    return (
        f"<div class='message {'warning' if losses else 'info'}' role='note' "
        f"data-part='take-another'><p><strong>{tr(HEAD)}</strong></p>{body}"
        f"<p class='quiet'>{_method(made.parts)}</p></div>"
    )


def comparisons(parts: Iterable[Part], winner: str) -> list[str]:
    """Return a line for each subset with scores won by `winner`, with these scores."""
    sentences, parts = [], list(parts)
    bounds = [end for p in parts if p.kind == "truth" for end in (p.start, p.stop)]
    for where, each in groupby(parts, key=lambda p: (_where(p, bounds), p.rows)):
        by_rival: dict[str, list[str]] = {}
        for p in each:
            if p.winner == winner and p.contest is not None:
                by_rival.setdefault(p.contest.rival, []).append(_score(p.contest, winner))
        if by_rival:
            sentences.append(
                ntr(
                    "{where} ({n:,} row): {ahead}.",
                    "{where} ({n:,} rows): {ahead}.",
                    where[1],
                    where=where[0],
                    ahead="; ".join(_ahead(*of, winner) for of in by_rival.items()),
                )
            )
    return sentences


def _ahead(rival: str, scores: Sequence[str], winner: str) -> str:
    listed = ", ".join(scores)
    if winner == RIVAL:
        return tr("{rival} is ahead in {scores}", rival=rival, scores=listed)
    return tr("this run is ahead of {rival} in {scores}", rival=rival, scores=listed)


def _none_ahead(parts: Sequence[Part]) -> str:
    if any(p.winner == OURS for p in parts):
        return ntr(
            "No rival was ahead in any of {scores} scores on {n} part of the held-out rows.",
            "No rival was ahead in any of {scores} scores on {n} parts of the held-out rows.",
            _n_subsets(parts),
            scores=len(parts),
        )
    return ntr(
        "Neither this run nor a rival was ahead in any of {scores} scores on {n} part of the "
        "held-out rows.",
        "Neither this run nor a rival was ahead in any of {scores} scores on {n} parts of the "
        "held-out rows.",
        _n_subsets(parts),
        scores=len(parts),
    )


def _n_subsets(parts: Sequence[Part]) -> int:
    return len({(p.kind, p.start, p.stop) for p in parts})


def _method(parts: Sequence[Part]) -> str:
    sentence = ntr(
        "Of {scores} scores on {n} part of the held-out rows, the card lists those in which this "
        "run and the best rival differ by more than two standard errors.",
        "Of {scores} scores on {n} parts of the held-out rows, the card lists those in which this "
        "run and the best rival differ by more than two standard errors.",
        _n_subsets(parts),
        scores=len(parts),
    )
    if any(p.kind == "missing" for p in parts):
        sentence += " " + tr(
            "Inputs were removed at random from held-out rows; the rivals were trained on rows "
            "with missing inputs, too."
        )
    return sentence


def _where(p: Part, bounds: Sequence[float]) -> str:
    if p.kind == "missing":
        n = int(p.start)
        return ntr("with {n} input missing", "with {n} inputs missing", n)
    if p.kind == "truth":
        first, last = p.start == min(bounds), p.stop == max(bounds)
        start, stop = as_number(shown(p.start)), as_number(shown(p.stop))
        if first != last:
            return tr(
                "with {condition}", condition=f"{p.of} " + (f"< {stop}" if first else f"≥ {start}")
            )
        return tr("with {name} from {start} to {stop}", name=p.of, start=start, stop=stop)
    return tr("on all held-out rows")


def _score(contest: Contest, winner: str) -> str:
    """Format a score with the winner's first, and the difference with two standard errors."""
    assert contest.low is not None, "only a difference with an interval has a winner"
    pair = [as_number(shown(value)) for value in (contest.ours, contest.theirs)]
    first, second = pair if winner == OURS else reversed(pair)
    error = (contest.gain - contest.low) / 2
    return tr(
        "{score} ({first} against {second}, by {gain:.2g} ± {error:.1g})",
        score=contest.score,
        first=first,
        second=second,
        gain=abs(contest.gain),
        error=error,
    )


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"
