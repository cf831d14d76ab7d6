"""Settings of a redshift fit that are `auto`: numbers of rows and models, time of gaps, cost.

Sizes that only training can tell (the number of basis functions and their shape) are found stage by
stage (`growth.py`).
"""

from __future__ import annotations

import math
from importlib.util import find_spec

from scant.learners.cost import beside
from scant.studies.auto import AUTO, TRAINING_SHARE, Choice
from scant.studies.base import Counts, partner_seconds, until_rest
from scant.studies.redshift.growth_budget import (
    FREE,
    FULL,
    SMALL,
    GrowthBudget,
    Stage,
    step_seconds,
)
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.split import TEST, VALIDATION, SplitCounts

MOST_STEPS = 3000
LEAST_TESTED = 5  # rows, of which a score says something
SCORED_ROWS = 5000  # whose share of test rows says enough: those of more are better learned from
# Models of rows with missing values (`gaps.py`):
MOST_GAPS = 62  # as many as six bands have
GAP_ROWS = 100  # learned from, at least
# Of a time budget, that they may take, if `gap_seconds` allows as much. Three draws of 2,500
# galaxies, of which every third lacks two of five bands, had within 60 s (CPU time) all ten models
# of their gaps with 0.4, and RMSE .0714, .0672, .0568, mean log-likelihood 1.929, 1.853, 1.941; in
# 96 to 116 s, with models of all 30 gaps, .0713, .0673, .0563 and 1.925, 1.853, 1.938. With 1/3
# nine or ten were made, with 1/4 eight and seven: 1.897, 1.902. A shorter search costs nothing
# measurable (whole rows: 2.134, 1.960, 1.983 after 18 s, 2.127, 1.961, 1.978 after 26 to 34 s)
# until it is cut to a few seconds: 1.961 of the third with 1/2.
GAPS_SHARE = 0.4
GAP_WEIGHT = 2.0  # of a row with a gap in the time for search and gaps, where a whole one has 1
GAPS_LEFT = 0.7  # of the time left after search and average, for gaps that the table has
LEAST_GROWTH, MOST_GROWTH = 0.7, 3.0  # seconds, of each
BESIDE, BESIDE_ROW = 0.8, 1e-4  # seconds that all else of one takes, and for each row
RIVAL_ROWS = 20_000  # that the report's rivals learn from: more only make them slow


def models_of(s: RedshiftSettings, learned: int) -> int:
    """Models that are trained side by side."""
    if s.restarts != AUTO:
        return int(s.restarts)
    return 5 if learned <= SMALL else 3 if learned <= 20_000 else 1


def grows(s: RedshiftSettings) -> bool:
    """Whether training finds the size or the shape of the models."""
    return AUTO in (s.n_basis, s.covariance)


def test_rows(s: RedshiftSettings, n: int) -> int:
    """Rows to hold out of n, where none are marked."""
    if s.test_size in (0, AUTO):
        scored = min(n, max(SCORED_ROWS, n // 10)) if s.test_size == AUTO else n
        return max(round(s.test_share * scored), min(LEAST_TESTED, n // 3))
    return min(int(s.test_size), max(n - s.training_size - s.validation_size, n // 3))


def learned(s: RedshiftSettings, n: int) -> tuple[int, int]:
    """Rows to train on and to validate on, of n that are not held out.

    No more than a quarter of them validates; what is asked for beyond that trains.
    """
    share = s.validation_share / (1 - s.test_share)
    every = s.training_size / (1 - share) if s.training_size else n
    validation = min(s.validation_size or round(share * min(n, every)), n // 4)
    used = min(n, s.training_size + validation) if s.training_size else n
    validation = min(validation, used // 4)
    return used - validation, validation


def parts(s: RedshiftSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into."""
    marked = counts.get("split", {})
    test = marked.get(TEST) or test_rows(s, rows)
    train, validation = learned(s, rows - test)
    return SplitCounts(train, marked.get(VALIDATION) or validation, test, rows)


def capacity(s: RedshiftSettings, rows: int, columns: int, counts: Counts) -> dict[str, Choice]:
    """How many models, and how many steps at most; the rest is found while they are trained."""
    split = parts(s, rows, counts)
    learned = split.train + split.validation
    models = models_of(s, learned)
    what = "each sees other rows" if s.combine == "average" else "each from another start"
    chosen = {"restarts": Choice(models, f"for {learned:,} rows; {what}")}
    steps, why = MOST_STEPS, "at most: training ends by itself or with its time budget"
    if not grows(s):
        one = step_seconds(split.train, max(columns - 1, 1), s.n_basis, s.errors == "as noise")
        fitting = TRAINING_SHARE * s.time_budget / (models * one)
        steps, why = int(min(max(fitting, 50), MOST_STEPS)), f"within {s.time_budget:g} s"
    return {**chosen, "max_steps": Choice(steps, why)}


def gap_limit(s: RedshiftSettings) -> float:
    """Seconds of the time budget that models of gaps may take."""
    return min(s.gap_seconds, GAPS_SHARE * s.time_budget)


def gap_reserve(s: RedshiftSettings, gaps: int, share: float, rows: int) -> float:
    """Seconds of the time budget that the search leaves to models of the table's own gaps.

    The fewer rows have one, the less: whole rows gain nothing from such models.

    Args:
        s: Of the run.
        gaps: Those that the table has.
        share: Of its rows, that have one of them.
        rows: Learned from.
    """
    expected = gaps * (BESIDE + BESIDE_ROW * rows + MOST_GROWTH)
    return min(gap_limit(s), GAP_WEIGHT * share * s.time_budget, expected)


def gap_time(seconds: float, gaps: int, rows: int) -> tuple[int, float]:
    """How many gaps get models of their own in this time, and the seconds that each may grow.

    As expected, and not by the clock, so that a fit is the same on any machine.
    """
    other = BESIDE + BESIDE_ROW * rows
    count = min(gaps, int(seconds / (other + LEAST_GROWTH)))
    return count, min(MOST_GROWTH, seconds / max(count, 1) - other)


def gaps_when_asked(s: RedshiftSettings, rows: int) -> tuple[int, float]:
    """How many gaps have models in the end, if tables to predict ask for them, and the seconds that
    each of these may grow: as many as are expected to fit into a time budget of their own."""
    seconds = min(s.gap_seconds, s.time_budget)
    return int(seconds / (BESIDE + BESIDE_ROW * rows + MOST_GROWTH)), MOST_GROWTH


def stacks(s: RedshiftSettings) -> bool:
    """Whether other models take part: they know no noisy inputs and no weights of rows."""
    return bool(s.stack and s.errors != "as noise" and s.weights == "normal")


def estimate(s: RedshiftSettings, rows: int, columns: int, counts: Counts) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the report with its rivals; the steps of all restarts (45 to 80% were
    used before the score settled), each with objective, gradient and score. Measured, one thread, a
    full covariance: a step of 2,000 rows, ten inputs and 25 basis functions 6 ms, with 100
    functions 16 ms; with noisy inputs (5.71) 0.3 s of 2,000. Training on 1,000,000 rows of ten
    inputs with 100 functions peaks at 2.0 GB; the table and the report come on top. Models that
    grow take the time that they are given, or what their stages would take if all gained. GPs of
    the average are searched for in each fold, of many rows once.
    """
    split = parts(s, rows, counts)
    n, m = split.train, s.n_basis
    if grows(s):
        seconds = TRAINING_SHARE * s.time_budget
        budget = GrowthBudget.of(
            s, n, max(columns - 1, 1), models_of(s, n + split.validation), seconds
        )
        stages = list(budget.all())
        m, held = max(stage.n_basis for stage in stages), max(map(budget.bytes_of, stages))
        training = sum(budget.steps(stage) * budget.step_seconds(stage) for stage in stages)
        size = budget.models * budget.trained(stages[-1]) * m
    else:
        size = n * m
        budget = GrowthBudget.of(s, n, max(columns - 1, 1), int(s.restarts), math.inf)
        held = budget.bytes_of(Stage(m, s.covariance, FREE))
        step = size * (8e-8 + 2e-10 * m) * (0.5 + 0.05 * max(columns - 1, 1))
        if s.covariance[1] == "C" and budget.inputs > FULL:
            step *= 1 + budget.inputs**2 / 1200
        if s.errors == "as noise":
            step *= 110
        training = until_rest(s.max_steps, s.patience, 0.4) * s.restarts * (0.004 + step)
    if stacks(s):  # of each fold, and of all
        sets = 1 + models_of(s, n + split.validation) if n <= 300 else 1
        training += sets * partner_seconds(n, max(columns - 1, 1), wide=3, narrow=2)
    known, inputs = n + split.validation, max(columns - 1, 1)
    report = beside(min(known, RIVAL_ROWS), inputs, find_spec("catboost") is not None)
    of_rows = min(450 * size, 1e8 + n * (25 * m + 1000))
    if inputs > FULL:  # blocks of pairs, and of completed rows: 2,000 rows of 60 took 0.66 GB
        of_rows += held + 2e8
    return 1.0 + report + training, 500e6 + of_rows
