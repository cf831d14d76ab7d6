"""Verdict of a report: comparison of a run with the best other method on held-out rows.

Plain data that pages, terminal and model card display.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

OURS, RIVAL, NOBODY = "this run", "rival", "nobody"
# Scores of predictions and of uncertainty in order of preference; False if smaller is better.
POINT = {
    "RMSE": False, "NMSE": False, "SMSE": False, "restricted NMSE (log time)": False,
    "NMSE by patient (log time)": False,
    "F1": True, "recall": True, "average precision": True,
}  # fmt: skip
DENSITY = {
    "mean log-likelihood": True, "NLPD": False, "SNLP": False, "censored NLPD (log time)": False,
    "NLPD (log time)": False,
    "mean log probability (nats)": True, "ECE": False,
}  # fmt: skip
LARGER = POINT | DENSITY | {"CRPS": False}
NORMAL_90 = 1.645  # half-width of the central 90% interval in standard deviations
FEW = 30  # held-out rows, below which the result depends on the split
CLOSE = 0.02  # relative difference that is negligible without an interval
# Methods in a report that are not alternatives: repeats of a labeling session, and a classifier
# with all labels.
NO_RIVALS = frozenset({"GP, active", "linear classifier, all labels"})


@runtime_checkable
class Scored(Protocol):
    """Protocol of a metric in a report (`scant.events.Metric`)."""

    @property
    def method(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def source(self) -> str: ...
    @property
    def spread(self) -> float | None: ...


AnyScored = TypeVar("AnyScored", bound=Scored)


@dataclass(frozen=True)
class Contest:
    """Score of this run and of the best other method on the same held-out rows.

    Attributes:
        score: Name of the score in the report.
        ours: Score of this run.
        rival: Name of the best other method.
        theirs: Score of the best other method.
        low: Lower bound of the 90% interval of the advantage of this run, in the unit of the score,
            by bootstrap over the held-out rows or from standard deviations; None if unknown.
        high: Upper bound of the interval.
    """

    score: str
    ours: float
    rival: str
    theirs: float
    low: float | None = None
    high: float | None = None

    @property
    def gain(self) -> float:
        """Advantage of this run, positive if it is better."""
        return (self.ours - self.theirs) * (1 if LARGER.get(self.score, True) else -1)

    @property
    def winner(self) -> str:
        """`OURS`, `RIVAL`, or `NOBODY` if the interval contains zero or, without one, within 2%."""
        if self.low is None or self.high is None:
            low = high = self.gain if abs(self.gain) > CLOSE * abs(self.theirs) else 0.0
        else:
            low, high = self.low, self.high
        return OURS if low > 0 else RIVAL if high < 0 else NOBODY

    def sentence(self) -> str:
        """Return a sentence with both scores and the interval of the difference."""
        rival = f"{self.rival} {shown(self.theirs)}"
        if self.low is None or self.high is None:
            return (
                f"{self.score}: this run {shown(self.ours)}, {rival} "
                f"({'within 2%, ' * (self.winner == NOBODY)}no interval)."
            )
        low, high = self.low, self.high
        if self.winner == RIVAL:
            low, high = -high, -low
        better = OURS if self.winner == OURS else self.rival
        difference = f"{better} better by {shown(low)} to {shown(high)}, 90% interval"
        if self.winner == NOBODY:
            difference = f"may be chance: {shown(low)} to {shown(high)}, 90% interval"
        return f"{self.score}: this run {shown(self.ours)}, {rival} ({difference})."


@dataclass(frozen=True)
class Part:
    """Score on a part of the held-out rows.

    Attributes:
        kind: "all" for all rows, "truth" for a bin of true values, "missing" for rows with inputs
            removed at random.
        of: Name of the binned values.
        start: Lower edge of the bin, or number of missing inputs.
        stop: Upper edge of the bin.
        rows: Number of rows.
        contest: Comparison with the best other method, with an interval of two standard errors of
            the paired difference; None without a score.
    """

    kind: str
    of: str = ""
    start: float = 0.0
    stop: float = 0.0
    rows: int = 0
    contest: Contest | None = None

    def told(self, contest: Contest) -> Part:
        """Return a copy with a comparison."""
        return replace(self, contest=contest)

    @property
    def winner(self) -> str:
        """Winner of the comparison (`Contest.winner`)."""
        return NOBODY if self.contest is None else self.contest.winner


@dataclass(frozen=True)
class Verdict:
    """Result of the comparison.

    Attributes:
        point: Comparison of errors or classes; None without another method.
        density: Comparison of predictive densities or probabilities.
        seconds: Time of training and prediction by method; `OURS` for this run.
        trained: Number of training rows; 0 if unknown.
        tested: Number of held-out rows.
        folds: Number of cross-validation folds.
        nothing: Reason why nothing was learned; "" otherwise.
        code: Python code for the method in `other`.
        parts: Comparisons on parts of the held-out rows (`scant.evaluate.parts`), if available.
    """

    point: Contest | None = None
    density: Contest | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    trained: int = 0
    tested: int = 0
    folds: int = 1
    nothing: str = ""
    code: str = ""
    parts: tuple[Part, ...] = ()

    @property
    def contests(self) -> tuple[Contest, ...]:
        """Available comparisons."""
        return tuple(c for c in (self.point, self.density) if c is not None)

    @property
    def take_another(self) -> bool:
        """True if another method is the better choice.

        Another method is significantly better in one comparison, and this run in none.
        """
        winners = [c.winner for c in self.contests]
        return RIVAL in winners and OURS not in winners

    @property
    def other(self) -> Contest:
        """Comparison with the recommended method: the first that this run loses, else the first."""
        return next((c for c in self.contests if c.winner == RIVAL), self.contests[0])

    @property
    def headline(self) -> str:
        """Sentence with advice; "" without a comparison."""
        if self.nothing:
            return f"Learned nothing: {self.nothing}"
        if not self.contests:
            return ""
        if self.take_another:
            if self.other.low is None:
                return f"{self.other.rival} scores better; this may be chance."
            return f"Take another tool: {self.other.rival} is better on these data."
        winners = {c.winner for c in self.contests}
        rows = (
            f"On these {self.tested:,} held-out rows" if self.tested else "On these held-out rows"
        )
        if winners == {OURS}:
            return f"{rows}, this run is better than every other method tried."
        if OURS in winners and RIVAL in winners:
            ours = next(c for c in self.contests if c.winner == OURS)
            other = next(c for c in self.contests if c.winner == RIVAL)
            return (
                f"It depends: this run is better in {ours.score}, {other.rival} in {other.score}."
            )
        if OURS in winners:
            ours = next(c for c in self.contests if c.winner == OURS)
            return f"{rows}, this run is better in {ours.score}; otherwise there is no difference."
        return (
            f"{rows}, this run and the best other method are equally good: their difference may "
            "be chance."
        )

    def sentences(self) -> list[str]:
        """Return sentences on advice, scores and cost."""
        lines = [text for text in (self.headline,) if text]
        lines += [contest.sentence() for contest in self.contests]
        if self.contests and self.folds > 1:
            lines.append(
                f"By cross-validation: {self.tested} rows, held out in {self.folds} fits of this "
                "run and of general tools; the table shows the first split."
            )
        elif self.contests and 0 < self.tested < FEW:
            lines.append(f"Only {self.tested} rows were held out: another split may say otherwise.")
        rivals = dict.fromkeys(c.rival for c in self.contests if c.rival in self.seconds)
        if OURS in self.seconds and self.contests:
            times = "".join(f", {r} {_seconds(self.seconds[r])}" for r in rivals)
            times = times or "; that of the others was not measured"
            lines.append(f"Cost: this run {_seconds(self.seconds[OURS])}{times}.")
        return lines


def best(metrics: Iterable[AnyScored], name: str) -> AnyScored | None:
    """Return the best metric of another method for a score, without published ones."""
    others = [
        m
        for m in metrics
        if m.name == name and m.source in ("baseline", "rival") and m.method not in NO_RIVALS
    ]
    others = [m for m in others if math.isfinite(m.value)]
    sign = 1 if LARGER.get(name, True) else -1
    return max(others, key=lambda m: (sign * m.value, m.source == "rival"), default=None)


def contest(metrics: Sequence[Scored], scores: Iterable[str]) -> Contest | None:
    """Compare by the first score that this run and another method have in common.

    The interval assumes independent scores and is available if the score of this run has a standard
    deviation, which is also used for the other method if it has none.
    """
    for name in scores:
        own = next((m for m in metrics if m.source == "run" and m.name == name), None)
        other = best(metrics, name)
        if own is not None and other is not None and math.isfinite(own.value):
            result = Contest(name, own.value, other.method, other.value)
            if own.spread is None or not math.isfinite(own.spread):
                return result
            theirs = own.spread if other.spread is None else other.spread
            half = NORMAL_90 * math.hypot(own.spread, theirs)
            return replace(result, low=result.gain - half, high=result.gain + half)
    return None


def of_metrics(metrics: Sequence[Scored]) -> Verdict:
    """Return a verdict from metrics only, as for recordings of earlier versions."""
    return Verdict(contest(metrics, POINT), contest(metrics, DENSITY))


def read(values: Mapping[str, Any] | None) -> Verdict | None:
    """Create a verdict from the result of `dataclasses.asdict`."""
    if values is None:
        return None
    pairs = {name: values[name] for name in ("point", "density")}
    parts = tuple(
        Part(**{**part, "contest": part["contest"] and Contest(**part["contest"])})
        for part in values.get("parts", ())
    )
    contests = {k: v and Contest(**v) for k, v in pairs.items()}
    return Verdict(**{**values, **contests, "parts": parts})


def shown(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"
