"""A report with its rivals: fitted, scored on the same held-out rows, and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from scant import verdict
from scant.deadline import Deadline
from scant.evaluate.fitting import fit_all
from scant.evaluate.parts import everywhere
from scant.evaluate.scores import SCORES
from scant.events import Metric, Report
from scant.learners.cost import MOST_ROWS, SECONDS, forest_seconds
from scant.learners.general import general_tools
from scant.learners.learner import Learner
from scant.predictive.scored import Scored
from scant.problem import Comparison, Problem
from scant.verdict import Contest, Verdict

DRAWS = 200  # of the bootstrap; fewer of many rows
ALWAYS = 2  # rivals that are fitted in any case: being ahead of a linear model alone says little
LEAST_ROWS = 5  # held out, of which a score says something
ON_PUBLISHED = ("The published figures", "Table ")  # beginnings of notes on them
NOTHING = 0.01  # share of variance explained, or nats a row, that count as nothing


def compared(
    report: Report,
    comparison: Comparison | None,
    seconds: float,
    *,
    own: bool,
    rivals: bool,
    seed: int = 0,
    deadline: Deadline | None = None,
    halted: Callable[[], bool] = lambda: False,
) -> Report:
    """The report with a verdict; of an own table with rivals and without published figures.

    Args:
        report: What a study came to.
        comparison: Its problem and answer; None: nothing is held out.
        seconds: That the run has trained.
        own: Whether the table is the user's: published figures are of other data then.
        rivals: Whether rivals are fitted.
        seed: Of the bootstrap.
        deadline: When all rivals are to have ended; None: when they took as long as the run, or
            `SECONDS` if that is more. The first is fitted in any case; the first `ALWAYS` if a
            forest takes less than `SECONDS`.
        halted: Whether somebody has asked for the end: then no further rival is begun.
    """
    if own:
        report = replace(
            report,
            metrics=tuple(m for m in report.metrics if m.source != "published"),
            notes=tuple(n for n in report.notes if not n.startswith(ON_PUBLISHED)),
        )
    found: dict[str, Scored] = {}
    problem = None if comparison is None else comparison.problem
    parts = report.verdict.parts if report.verdict is not None else ()
    result = Verdict(seconds={verdict.OURS: seconds}, parts=parts)
    usable = problem is not None and len(problem.y_test) >= LEAST_ROWS
    if usable and comparison is not None and problem is not None:
        result = replace(
            result,
            trained=len(problem.parts()[0][1]) if problem.shown else len(problem.y),
            tested=len(problem.y_test),
            folds=len(problem.parts()) if problem.shown else 1,
            nothing=nothing_learned(problem, comparison.scored),
        )
        if rivals:
            deadline = deadline or Deadline(max(seconds, SECONDS))
            report, found, times = _with_rivals(report, comparison, deadline, halted)
            result = replace(result, seconds={**result.seconds, **times})
            if problem.by and found:  # which have the names of those that the report knows
                kept = [part for part in parts if part.kind == "missing"]
                told = everywhere(comparison.scored, found, problem.by)
                result = replace(result, parts=(*told, *kept))
    if comparison is not None and problem is not None and problem.shown and found:
        others = {name: problem.scored(p) for name, p in comparison.others.items()}
        found = {**others, **found}
    order = problem.scores if problem is not None else ()
    contests: list[Contest | None] = []
    for scores in (verdict.POINT, verdict.DENSITY):
        names = [n for n in order if n in scores] or list(scores)
        contest = verdict.contest(_judged(report, comparison, found), names)
        if usable and contest is not None and comparison is not None and contest.score in SCORES:
            contest, spread = _interval(comparison, found.get(contest.rival), contest, seed)
            if not comparison.problem.shown:
                report = replace(report, metrics=_spread(report.metrics, contest.score, spread))
        contests.append(contest)
    result = replace(result, point=contests[0], density=contests[1])
    if result.contests:
        code = "" if problem is None else _code(problem, result.other.rival)
        result = replace(result, code=code)
    notes = (f"Learned nothing: {result.nothing}",) if result.nothing else ()
    return replace(report, notes=(*report.notes, *notes), verdict=result)


def nothing_learned(c: Problem, own: Scored) -> str:
    """Why a run has learned nothing, and what to try; empty where it has learned something.

    It is held against what needs no input: mean and variance of the rows learned from, or the
    shares of their classes.
    """
    trivial = c.scored(c.trivial())
    denser = False  # beyond chance: another guess of the variance alone gains a little
    if own.dense:
        gain = own.log_density - trivial.log_density
        denser = gain.mean() > max(NOTHING, 2 * gain.std() / len(gain) ** 0.5)
    if c.classes:
        right, base = (float(np.mean(p.value == c.y_test)) for p in (own, trivial))
        every = np.arange(len(c.y_test))
        ranked = 0.0
        if c.rare is not None and own.dense:
            share = float(np.mean(c.y_test == c.rare))
            ranked = (SCORES["average precision"](c, own, every) - share) / max(1 - share, 1e-12)
        if denser or right > base + NOTHING or ranked > 0.05:
            return ""
        return (
            f"always predicting the most frequent class is right for {base:.0%} of the held-out "
            f"rows, this run for {right:.0%}. Try more labeled rows, other columns, or more steps."
        )
    error, base = (float(np.mean((c.y_test - p.value) ** 2)) for p in (own, trivial))
    if denser or error < (1 - NOTHING) * base:
        return ""
    if np.std(own.value) <= 1e-3 * np.std(c.y):
        return (
            "its predictions are the same for every row, so the inputs had no effect. Try more "
            "steps, other starting values (another seed), or other columns."
        )
    return (
        f"the mean of the training rows predicts the held-out rows as well (RMSE {base**0.5:.3g} "
        f"against {error**0.5:.3g}). Try more rows, other columns, or more steps."
    )


def _with_rivals(
    report: Report, comparison: Comparison, deadline: Deadline, halted: Callable[[], bool]
) -> tuple[Report, dict[str, Scored], dict[str, float]]:
    """The report with the rivals' scores, their predictions, and the seconds of each."""
    c = comparison.problem
    notes = [c.note] if c.note else []
    present = {m.method for m in report.metrics if m.source == "baseline"}
    candidates = [tool for tool in _tools(c) if tool.name not in present or c.replaces]
    forest = sum(forest_seconds(len(rows), c.x.shape[1], c.classes) for _, rows, _ in c.parts())
    minimum = ALWAYS if forest < SECONDS else 1
    results = list(fit_all(c, candidates, deadline=deadline, minimum=minimum, halted=halted))
    found = {r.name: r.scored for r in results if r.scored is not None}
    times = {r.name: r.seconds for r in results if r.scored is not None}
    notes += [f"{r.name} was not compared: {r.reason}" for r in results if r.reason]
    if len(c.y) > MOST_ROWS:
        notes.append(f"Other methods learned from {MOST_ROWS:,} of {len(c.y):,} rows.")
    more = _metrics(c, found, c.table_rows)
    given_way = "baseline" if c.replaces and found else ""
    kept = [m for m in report.metrics if m.source != given_way]
    told = {m.name for m in kept if m.source == "run"}
    ours = _metrics(c, {verdict.OURS: comparison.scored}, c.table_rows)
    ours = [m for m in ours if m.name not in told]
    report = replace(report, metrics=(*ours, *kept, *more), notes=(*report.notes, *notes))
    return report, found, times


def _judged(
    report: Report, comparison: Comparison | None, found: dict[str, Scored]
) -> Sequence[Metric]:
    """The scores that decide: the report's, or those of all folds, where rivals are fitted to."""
    if comparison is None or not comparison.problem.shown or not found:
        return report.metrics
    every = {verdict.OURS: comparison.scored, **found}
    return _metrics(comparison.problem, every, np.arange(len(comparison.scored)))


def _metrics(c: Problem, answers: Mapping[str, Scored], at: Int[ndarray, " s"]) -> list[Metric]:
    """The scores of these answers at some of the held-out rows."""
    return [
        Metric(name, score, value, source="run" if name == verdict.OURS else "rival")
        for name, answer in answers.items()
        for score in c.scores
        if np.isfinite(value := SCORES[score](c, answer, at))
    ]


def _tools(c: Problem) -> list[Learner]:
    """General tools for problems of this kind."""
    return [tool for tool in general_tools(c.classes) if not tool.capabilities.refuse(c)]


def _code(c: Problem, name: str) -> str:
    """A tool's code in two lines, which have no contrasts; "" where it learned from these."""
    codes = {t.name: t.code for t in _tools(c) if c.contrasts is None or not t.capabilities.trees}
    return codes.get(name, "")


def _interval(
    comparison: Comparison, rival: Scored | None, contest: Contest, seed: int
) -> tuple[Contest, float]:
    """The contest with the interval of its difference, and the deviation of this run's score.

    Of a rival whose rows are not known (None) the score is taken to vary as this run's, and
    independently of it: a wider interval than that of paired rows.
    """
    c, score = comparison.problem, SCORES[contest.score]
    n = len(c.y_test)
    generator = np.random.default_rng(seed)
    draws = [generator.integers(n, size=n) for _ in range(max(40, min(DRAWS, 10**6 // n)))]
    methods = [comparison.scored] if rival is None else [comparison.scored, rival]
    values = np.array([[score(c, p, at) for p in methods] for at in draws])
    values = values[np.isfinite(values).all(1)]
    if not len(values):
        return contest, float("nan")
    spread = float(values[:, 0].std())
    if rival is None:
        half = verdict.NORMAL_90 * 2**0.5 * spread
        low, high = contest.gain - half, contest.gain + half
    else:
        sign = 1 if verdict.LARGER.get(contest.score, True) else -1
        low, high = np.percentile(sign * (values[:, 0] - values[:, 1]), (5, 95))
    return replace(contest, low=float(low), high=float(high)), spread


def _spread(metrics: Iterable[Metric], name: str, spread: float) -> tuple[Metric, ...]:
    """The metrics, with the deviation of this run's score of that name where it had none."""
    return tuple(
        replace(m, spread=spread)
        if m.source == "run" and m.name == name and m.spread is None and np.isfinite(spread)
        else m
        for m in metrics
    )
