"""The card "Take another tool when …": subsets of the rows on which a rival is ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from scant.verdict import OURS, RIVAL, Contest, Part, Verdict, shown

NUMBERS = ("no", "one", "two", "three", "four")


HEAD = "Take another tool when …"


def lines(made: Verdict) -> list[str]:
    """Return the card as sentences, the heading first; empty if no subset was compared."""
    if not made.parts:
        return []
    losses = comparisons(made.parts, RIVAL) or [_none_ahead(made.parts)]
    return [HEAD, *losses, *comparisons(made.parts, OURS)]


def take_another(made: Verdict) -> str:
    """Return the card as HTML; "" if no subset was compared."""
    if not made.parts:
        return ""
    losses, wins = (comparisons(made.parts, who) for who in (RIVAL, OURS))
    body = _list(losses) if losses else f"<p>{_none_ahead(made.parts)}</p>"
    if wins:
        body += f"<details><summary>Where this run is ahead</summary>{_list(wins)}</details>"
    return (
        f"<div class='message {'warning' if losses else 'info'}' role='note' "
        f"data-part='take-another'><p><strong>{HEAD}</strong></p>{body}"
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
            ahead = "{} is ahead in {}" if winner == RIVAL else "this run is ahead of {} in {}"
            text = "; ".join(
                ahead.format(name, ", ".join(scores)) for name, scores in by_rival.items()
            )
            sentences.append(f"{where[0]} ({where[1]:,} rows): {text}.")
    return sentences


def _none_ahead(parts: Sequence[Part]) -> str:
    also = "" if any(p.winner == OURS for p in parts) else " Nor was this run."
    return f"No rival was ahead anywhere, by {_compared(parts)}.{also}"


def _compared(parts: Sequence[Part]) -> str:
    n_subsets = len({(p.kind, p.start, p.stop) for p in parts})
    return f"{len(parts)} scores on {n_subsets} part{'s' * (n_subsets > 1)} of the held-out rows"


def _method(parts: Sequence[Part]) -> str:
    text = (
        f"Of {_compared(parts)}, those are told in which this run and the best rival differ by "
        "more than two standard errors."
    )
    if any(p.kind == "missing" for p in parts):
        text += (
            " Bands were removed at random from held-out rows; the rivals of these rows have "
            "learned from rows that lack bands, too."
        )
    return text


def _where(p: Part, bounds: Sequence[float]) -> str:
    if p.kind == "missing":
        n = int(p.start)
        return f"with {NUMBERS[n] if n < len(NUMBERS) else n} band{'s' * (n != 1)} missing"
    if p.kind == "truth":
        first, last = p.start == min(bounds), p.stop == max(bounds)
        if first != last:
            return f"with {p.of} " + (f"< {shown(p.stop)}" if first else f"≥ {shown(p.start)}")
        return f"with {p.of} from {shown(p.start)} to {shown(p.stop)}"
    return "on all held-out rows"


def _score(contest: Contest, winner: str) -> str:
    """Format a score with the winner's first, and the difference with two standard errors."""
    assert contest.low is not None, "only a difference with an interval has a winner"
    pair = [shown(contest.ours), shown(contest.theirs)]
    first, second = pair if winner == OURS else reversed(pair)
    error = (contest.gain - contest.low) / 2
    return f"{contest.score} ({first} against {second}, by {abs(contest.gain):.2g} ± {error:.1g})"


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"
