"""What a fit of multiview costs, and values for the settings that were left to the program."""

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

SHARE = 0.5  # of a time budget, for all that is fitted but the rivals
INDUCING = {True: 50, False: 10}  # at most, of classes and of values, which more overfit
STEPS = {True: 300, False: 150}  # of drawn hidden values, and of bounds in closed form
LEAST_STEPS = 30
REPEATS = 5
FOLDED = 3.0  # of a fit: those that weigh an average, to three quarters of the rows each
MOST_COMPONENTS = 200
WIDE = 0.5  # columns of a view for a training row, from which on it is learned by components


def parts(s: MultiviewSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into."""
    task = _task(s, counts)
    groups = counts.get("group") if task == "classification" else None
    published = 1 / len(groups) if groups else PUBLISHED_SHARE[task]
    marked = counts.get("split", {}).get(TEST, 0)
    train = rows - marked if marked else round(rows * (s.training_share or published))
    return SplitCounts(min(train, s.training_size or train), 0, marked or rows - train, rows)


def estimate(
    settings: MultiviewSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the run's steps, as many on every further split, and on each split the other models,
    which together cost 1.25 of DFGP, and Student-t with fewer steps, whose cost is cubic, where
    values are learnt. Views that the columns' names do not tell are guessed: six. Measured, one
    thread: a step of DFGP of 150 rows of two views with 50 inducing points takes 5 ms, of 240 rows
    of eight views 14 ms; with values and ten points 3 to 4 ms.
    """
    s = settings
    n, classes = parts(s, rows, counts).train, _task(s, counts) == "classification"
    m, neurons, step = _step(s, n, classes, counts)
    process = 0.002 + 1.4e-10 * n**3
    own = process if s.model == "student-t" else step
    folds = FOLDED if s.stack else 0.0
    cost = (s.restarts + folds) * own
    if s.baselines:
        cost += (s.repeats - 1) * (1 + folds) * own + 1.25 * s.repeats * step
    seconds = 0.5 + s.max_steps * cost + (3.0 if folds else 0.0)
    if s.baselines and not classes and n <= MOST_PROCESS:
        seconds += s.repeats * min(s.max_steps, PROCESS_STEPS) * process
    return seconds, 500e6 + 8 * rows * (3 * columns + 6 * m * neurons)


def _task(s: MultiviewSettings, counts: Counts) -> str:
    """The task, as far as settings and columns tell."""
    if s.task != "auto":
        return s.task
    if "label" in counts or not counts:
        return "classification"
    return "survival" if "time" in counts else "regression"


def _step(s: Any, n: int, classes: bool, counts: Counts) -> tuple[int, int, float]:
    """Inducing points, neurons, and seconds of a step."""
    views = {origin(name).partition(".")[0] for name in counts if "." in origin(name)}
    wanted = len(names_in(s.views))
    observed = wanted or len(views) or (1 if counts else 6)
    m = s.n_inducing or (50 if classes else 10)
    neurons = s.neurons or (3 if observed == 1 else observed)
    return m, neurons, 0.002 + neurons * (0.001 + 8e-8 * n * m + 2.7e-9 * m**3)


def capacity(
    settings: MultiviewSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Sizes by the rows to learn from; steps and repeats by the time budget."""
    s = settings
    n, classes = parts(s, rows, counts).train, _task(s, counts) == "classification"
    within, seconds = f"within {s.time_budget:g} s", SHARE * s.time_budget
    widest = max(_widths(counts, columns))
    components = min(max(10, n // 4), widest, MOST_COMPONENTS)
    found = {
        "neurons": Choice(0, "one for each view, 3 for a single one"),
        "n_inducing": Choice(min(INDUCING[classes], max(5, n // 4)), f"{n:,} training rows"),
        "n_components": Choice(components, f"views of up to {widest:,} columns")
        if widest > max(WIDE * n, 10)
        else Choice(0, "all columns"),
        "restarts": Choice(1, "one start"),
        "repeats": Choice(1, within),
    }

    def cost(**more: int) -> float:
        given = {name: c.value for name, c in found.items() if getattr(s, name) == AUTO}
        made = type(s)(**s.values() | given | more)
        return estimate(made, rows, columns, counts)[0]

    drawn = s.bound == "stochastic" or _task(s, counts) == "survival"
    wanted, steps = STEPS[drawn], s.max_steps
    if s.max_steps == AUTO:
        idle = cost(max_steps=1)
        each = (cost(max_steps=101) - idle) / 100
        steps = min(wanted, max(LEAST_STEPS, math.floor((seconds - idle) / each)))
        found["max_steps"] = Choice(steps, within if steps < wanted else "then the rate is low")
    if s.repeats == AUTO:
        fits = [r for r in range(2, REPEATS + 1) if cost(max_steps=steps, repeats=r) <= seconds / 2]
        found["repeats"] = Choice(max(fits, default=1), within)
    return found


def _widths(counts: Counts, columns: int) -> list[int]:
    """Columns of each view, as far as their names tell."""
    views: dict[str, int] = {}
    for name in counts:
        before, dot, _ = origin(name).partition(".")
        if dot:
            views[before] = views.get(before, 0) + 1
    rest = columns - sum(views.values())
    return [*views.values(), rest] if counts else [columns // 6 + 1]
