"""Who wins on the held-out rows, this run or the best of the other methods, and what to do then.

Plain data: a report carries it from the engine to pages, terminal and model card.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

OURS, RIVAL, NOBODY = "this run", "rival", "nobody"
# Of a report's scores, those that tell who predicts better and whose uncertainty is better, the
# more telling first; False: less is better.
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
NORMAL_90 = 1.645  # deviations of a normal distribution on either side that hold 90%
FEW = 30  # held-out rows, of which one split says little
CLOSE = 0.02  # of a score: no difference where there is no interval
# Compared in a report, but no other tool: a labeling session's own repeats, and what knows every
# label that the session would have to ask for.
NO_RIVALS = frozenset({"GP, active", "linear classifier, all labels"})


@runtime_checkable
class Scored(Protocol):
    """A figure of a report (`scant.events.Metric`)."""

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
    """One score of this run and of its best rival on the same held-out rows.

    Attributes:
        score: Its name, as in the report.
        ours: This run's.
        rival: Who is best of the others.
        theirs: Its score.
        low: Lower end of the 90% interval of what this run is better by, in the score's unit, by
            bootstrap over the held-out rows or from the scores' deviations; None where neither is
            known.
        high: Its upper end.
    """

    score: str
    ours: float
    rival: str
    theirs: float
    low: float | None = None
    high: float | None = None

    @property
    def gain(self) -> float:
        """What this run is better by."""
        return (self.ours - self.theirs) * (1 if LARGER.get(self.score, True) else -1)

    @property
    def winner(self) -> str:
        """`OURS`, `RIVAL`, or `NOBODY` where the interval holds zero; without one, within 2%."""
        if self.low is None or self.high is None:
            low = high = self.gain if abs(self.gain) > CLOSE * abs(self.theirs) else 0.0
        else:
            low, high = self.low, self.high
        return OURS if low > 0 else RIVAL if high < 0 else NOBODY

    def sentence(self) -> str:
        """Both values, the difference's interval, and what follows."""
        text = f"{self.score}: this run {shown(self.ours)}, {self.rival} {shown(self.theirs)}"
        if self.low is not None and self.high is not None:
            ends, better = (self.low, self.high), f"{OURS} better by"
            if self.winner == NOBODY:
                better = "no difference beyond chance:"
            elif self.winner == RIVAL:
                ends, better = (-self.high, -self.low), f"{self.rival} better by"
            return f"{text} ({better} {shown(ends[0])} to {shown(ends[1])}, 90% interval)."
        return f"{text} ({'within 2%, ' * (self.winner == NOBODY)}no interval)."


@dataclass(frozen=True)
class Part:
    """One score on a part of the held-out rows.

    Attributes:
        kind: "all": every row; "truth": those with a truth in a bin; "missing": some rows from
            which so many inputs were removed at random.
        of: What the truth is called, where its bins are told.
        start: Lower edge of the bin, or how many inputs are missing.
        stop: Upper edge of the bin.
        rows: Scored.
        contest: This run and the best rival there; the interval reaches two standard errors of the
            paired difference to either side. None: a part without a score.
    """

    kind: str
    of: str = ""
    start: float = 0.0
    stop: float = 0.0
    rows: int = 0
    contest: Contest | None = None

    def told(self, contest: Contest) -> Part:
        """The part with a score."""
        return replace(self, contest=contest)

    @property
    def winner(self) -> str:
        """Who is ahead (`Contest.winner`)."""
        return NOBODY if self.contest is None else self.contest.winner


@dataclass(frozen=True)
class Verdict:
    """What the comparison comes to.

    Attributes:
        point: On errors or classes; None where nothing else was scored.
        density: On the predicted densities or probabilities.
        seconds: Of training and predicting, by method; that of this run under `OURS`.
        trained: Rows learned from; 0 where not known.
        tested: Rows scored.
        folds: Fits, each of which held out others of these rows.
        nothing: Why nothing was learned; empty where something was.
        code: Lines of Python that use the rival of `other` in place of this run.
        parts: Scores part by part of the held-out rows (`scant.rivals.by_part`), where a study
            tells them.
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
        """Those that there are."""
        return tuple(c for c in (self.point, self.density) if c is not None)

    @property
    def take_another(self) -> bool:
        """Whether the data say that another method is the better choice.

        It predicts better beyond chance, and this run's density is not better in exchange; or it
        is as good at predicting and better in its density.
        """
        winners = [c.winner for c in self.contests]
        return RIVAL in winners and OURS not in winners

    @property
    def other(self) -> Contest:
        """The contest that names the other tool: the first that this run loses, else the first."""
        return next((c for c in self.contests if c.winner == RIVAL), self.contests[0])

    @property
    def headline(self) -> str:
        """One sentence of advice; empty where there was nothing to compare."""
        if self.nothing:
            return f"Learned nothing: {self.nothing}"
        if not self.contests:
            return ""
        if self.take_another:
            if self.other.low is None:
                return f"{self.other.rival} scores better; whether beyond chance is not known."
            return f"Take another tool: {self.other.rival} is better on these data."
        winners = {c.winner for c in self.contests}
        if winners == {OURS}:
            return "This run is better than every other method tried."
        if OURS in winners and RIVAL in winners:
            ours = next(c for c in self.contests if c.winner == OURS)
            other = next(c for c in self.contests if c.winner == RIVAL)
            return (
                f"It depends: this run is better in {ours.score}, {other.rival} in {other.score}."
            )
        if OURS in winners:
            ours = next(c for c in self.contests if c.winner == OURS)
            return f"This run is better in {ours.score}; otherwise there is no difference."
        return "No method is better than this run beyond chance, nor this run than the best."

    def sentences(self) -> list[str]:
        """Headline, scores and cost."""
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
    """The best other method's figure of that score, published ones left out."""
    others = [
        m
        for m in metrics
        if m.name == name and m.source in ("baseline", "rival") and m.method not in NO_RIVALS
    ]
    others = [m for m in others if math.isfinite(m.value)]
    sign = 1 if LARGER.get(name, True) else -1
    return max(others, key=lambda m: (sign * m.value, m.source == "rival"), default=None)


def contest(metrics: Sequence[Scored], scores: Iterable[str]) -> Contest | None:
    """The first of some scores that this run shares with another method.

    It has an interval where this run's score has a deviation; that of a rival without one is taken
    to be the same, and the two to be independent.
    """
    for name in scores:
        own = next((m for m in metrics if m.source == "run" and m.name == name), None)
        other = best(metrics, name)
        if own is not None and other is not None and math.isfinite(own.value):
            made = Contest(name, own.value, other.method, other.value)
            if own.spread is None or not math.isfinite(own.spread):
                return made
            theirs = own.spread if other.spread is None else other.spread
            half = NORMAL_90 * math.hypot(own.spread, theirs)
            return replace(made, low=made.gain - half, high=made.gain + half)
    return None


def of_metrics(metrics: Sequence[Scored]) -> Verdict:
    """What a report's figures alone say, as in recordings made before there were verdicts."""
    return Verdict(contest(metrics, POINT), contest(metrics, DENSITY))


def read(values: Mapping[str, Any] | None) -> Verdict | None:
    """The inverse of `dataclasses.asdict`."""
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
    """A figure to three digits."""
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"
