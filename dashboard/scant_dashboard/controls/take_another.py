"""The card "Take another tool when …": where a rival is ahead on these very rows, and where not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from scant.verdict import OURS, RIVAL, Contest, Part, Verdict, shown

NUMBERS = ("no", "one", "two", "three", "four")


HEAD = "Take another tool when …"


def lines(made: Verdict) -> list[str]:
    """The card as sentences, the first one its heading; empty where no part was told."""
    if not made.parts:
        return []
    lost = told(made.parts, RIVAL) or [_nowhere(made.parts)]
    return [HEAD, *lost, *told(made.parts, OURS)]


def take_another(made: Verdict) -> str:
    """The card as HTML; "" where no part was told."""
    if not made.parts:
        return ""
    lost, won = (told(made.parts, who) for who in (RIVAL, OURS))
    body = _list(lost) if lost else f"<p>{_nowhere(made.parts)}</p>"
    if won:
        body += f"<details><summary>Where this run is ahead</summary>{_list(won)}</details>"
    return (
        f"<div class='message {'warning' if lost else 'info'}' role='note' "
        f"data-part='take-another'><p><strong>{HEAD}</strong></p>{body}"
        f"<p class='quiet'>{_how(made.parts)}</p></div>"
    )


def told(parts: Iterable[Part], winner: str) -> list[str]:
    """A line for each part of which this winner has scores: where, and by which scores."""
    found, parts = [], list(parts)
    ends = [end for p in parts if p.kind == "truth" for end in (p.start, p.stop)]
    for where, each in groupby(parts, key=lambda p: (_where(p, ends), p.rows)):
        met: dict[str, list[str]] = {}
        for p in each:
            if p.winner == winner and p.contest is not None:
                met.setdefault(p.contest.rival, []).append(_score(p.contest, winner))
        if met:
            ahead = "{} is ahead in {}" if winner == RIVAL else "this run is ahead of {} in {}"
            said = "; ".join(ahead.format(name, ", ".join(scores)) for name, scores in met.items())
            found.append(f"{where[0]} ({where[1]:,} rows): {said}.")
    return found


def _nowhere(parts: Sequence[Part]) -> str:
    also = "" if any(p.winner == OURS for p in parts) else " Nor was this run."
    return f"No rival was ahead anywhere, by {_compared(parts)}.{also}"


def _compared(parts: Sequence[Part]) -> str:
    places = len({(p.kind, p.start, p.stop) for p in parts})
    return f"{len(parts)} scores on {places} part{'s' * (places > 1)} of the held-out rows"


def _how(parts: Sequence[Part]) -> str:
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


def _where(p: Part, ends: Sequence[float]) -> str:
    if p.kind == "missing":
        n = int(p.start)
        return f"with {NUMBERS[n] if n < len(NUMBERS) else n} band{'s' * (n != 1)} missing"
    if p.kind == "truth":
        first, last = p.start == min(ends), p.stop == max(ends)
        if first != last:
            return f"with {p.of} " + (f"< {shown(p.stop)}" if first else f"≥ {shown(p.start)}")
        return f"with {p.of} from {shown(p.start)} to {shown(p.stop)}"
    return "on all held-out rows"


def _score(contest: Contest, winner: str) -> str:
    """The score with that of the winner first, and the difference with its two errors."""
    assert contest.low is not None, "only a difference with an interval has a winner"
    pair = [shown(contest.ours), shown(contest.theirs)]
    first, second = pair if winner == OURS else reversed(pair)
    error = (contest.gain - contest.low) / 2
    return f"{contest.score} ({first} against {second}, by {abs(contest.gain):.2g} ± {error:.1g})"


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"
