"""Estimated cost of a multiview fit, and automatic values of settings."""

from __future__ import annotations

import math
from typing import Any

from scant.studies.auto import AUTO, Choice
from scant.studies.base import Counts
from scant.studies.multiview.settings import (
    MOST_PROCESS,
    PROCESS_STEPS,
    PUBLISHED_SHARE,
    MultiviewSettings,
)
from scant.studies.query import names_in
from scant.studies.split import TEST, SplitCounts
from scant.tables.levels import origin

SHARE = 0.5  # share of the time budget for everything except rivals
INDUCING = {True: 50, False: 10}  # maximum for classes, and for values, where more overfit
STEPS = {True: 300, False: 150}  # with sampled hidden values, and with bounds in closed form
LEAST_STEPS = 30
REPEATS = 5
FOLDED = 3.0  # cost of the folds of an average, in fits; each has three quarters of the rows
MOST_COMPONENTS = 200
WIDE = 0.5  # minimum number of columns per training row for components of a view


def parts(s: MultiviewSettings, rows: int, counts: Counts) -> SplitCounts:
    """Return the split of a table's rows."""
    task_name = _task(s, counts)
    groups = counts.get("group") if task_name == "classification" else None
    published_share = 1 / len(groups) if groups else PUBLISHED_SHARE[task_name]
    n_marked = counts.get("split", {}).get(TEST, 0)
    n_train = rows - n_marked if n_marked else round(rows * (s.training_share or published_share))
    return SplitCounts(
        min(n_train, s.training_size or n_train), 0, n_marked or rows - n_train, rows
    )


def estimate(
    settings: MultiviewSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimate seconds and bytes of a fit on one core, to a factor of two.

    Included: the run's steps, as many on each further split, and on each split the other models,
    which together cost 1.25 of DFGP, and for values Student-t with fewer steps, whose cost is
    cubic. Without view names in the columns, six views are assumed. Measured with one thread: a
    step of DFGP with 50 inducing points takes 5 ms for 150 rows of two views, 14 ms for 240 rows of
    eight views; with values and ten points 3 to 4 ms.
    """
    s = settings
    n, classes = parts(s, rows, counts).train, _task(s, counts) == "classification"
    m, neurons, step = _step(s, n, classes, counts)
    process = 0.002 + 1.4e-10 * n**3
    model_step = process if s.model == "student-t" else step
    folds = FOLDED if s.stack else 0.0
    cost = (s.restarts + folds) * model_step
    if s.baselines:
        cost += (s.repeats - 1) * (1 + folds) * model_step + 1.25 * s.repeats * step
    seconds = 0.5 + s.max_steps * cost + (3.0 if folds else 0.0)
    if s.baselines and not classes and n <= MOST_PROCESS:
        seconds += s.repeats * min(s.max_steps, PROCESS_STEPS) * process
    return seconds, 500e6 + 8 * rows * (3 * columns + 6 * m * neurons)


def _task(s: MultiviewSettings, counts: Counts) -> str:
    """The task by settings and columns."""
    if s.task != "auto":
        return s.task
    if "label" in counts or not counts:
        return "classification"
    return "survival" if "time" in counts else "regression"


def _step(s: Any, n: int, classes: bool, counts: Counts) -> tuple[int, int, float]:
    """Numbers of inducing points and neurons, and seconds per step."""
    views = {origin(name).partition(".")[0] for name in counts if "." in origin(name)}
    n_named = len(names_in(s.views))
    n_views = n_named or len(views) or (1 if counts else 6)
    m = s.n_inducing or (50 if classes else 10)
    neurons = s.neurons or (3 if n_views == 1 else n_views)
    return m, neurons, 0.002 + neurons * (0.001 + 8e-8 * n * m + 2.7e-9 * m**3)


def capacity(
    settings: MultiviewSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Choose sizes by the training rows, and steps and repeats by the time budget."""
    s = settings
    n, classes = parts(s, rows, counts).train, _task(s, counts) == "classification"
    budget_reason, seconds = f"within {s.time_budget:g} s", SHARE * s.time_budget
    widest = max(_widths(counts, columns))
    components = min(max(10, n // 4), widest, MOST_COMPONENTS)
    choices = {
        "neurons": Choice(0, "one for each view, 3 for a single one"),
        "n_inducing": Choice(min(INDUCING[classes], max(5, n // 4)), f"{n:,} training rows"),
        "n_components": Choice(components, f"views of up to {widest:,} columns")
        if widest > max(WIDE * n, 10)
        else Choice(0, "all columns"),
        "restarts": Choice(1, "one start"),
        "repeats": Choice(1, budget_reason),
    }

    def cost(**overrides: int) -> float:
        chosen = {name: c.value for name, c in choices.items() if getattr(s, name) == AUTO}
        trial = type(s)(**s.values() | chosen | overrides)
        return estimate(trial, rows, columns, counts)[0]

    stochastic = s.bound == "stochastic" or _task(s, counts) == "survival"
    usual_steps, steps = STEPS[stochastic], s.max_steps
    if s.max_steps == AUTO:
        base_cost = cost(max_steps=1)
        step_cost = (cost(max_steps=101) - base_cost) / 100
        steps = min(usual_steps, max(LEAST_STEPS, math.floor((seconds - base_cost) / step_cost)))
        choices["max_steps"] = Choice(
            steps, budget_reason if steps < usual_steps else "then the rate is low"
        )
    if s.repeats == AUTO:
        affordable = [
            r for r in range(2, REPEATS + 1) if cost(max_steps=steps, repeats=r) <= seconds / 2
        ]
        choices["repeats"] = Choice(max(affordable, default=1), budget_reason)
    return choices


def _widths(counts: Counts, columns: int) -> list[int]:
    """Number of columns of each view, by their names."""
    views: dict[str, int] = {}
    for name in counts:
        view, dot, _ = origin(name).partition(".")
        if dot:
            views[view] = views.get(view, 0) + 1
    remaining = columns - sum(views.values())
    return [*views.values(), remaining] if counts else [columns // 6 + 1]
