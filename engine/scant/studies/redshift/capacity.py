"""Values of settings that are `auto`: numbers of rows and models, time for gaps, cost.

Training finds the number of basis functions and their shape, stage by stage (`growth.py`).
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import NamedTuple

from scant.learners.cost import beside
from scant.studies.auto import AUTO, TRAINING_SHARE, Choice
from scant.studies.base import Counts, partner_seconds, until_rest
from scant.studies.redshift.colors import MAX_PAIRED
from scant.studies.redshift.growth_budget import (
    FREE,
    FULL,
    SMALL,
    GrowthBudget,
    Stage,
    step_seconds,
)
from scant.studies.redshift.settings import COLORS, RedshiftSettings
from scant.studies.split import TEST, VALIDATION, SplitCounts

MOST_STEPS = 3000
LEAST_TESTED = 5  # least number of rows for a meaningful score
SCORED_ROWS = 5000  # rows whose share is held out: beyond, rows are better used for training
# Models of rows with missing values (`gaps.py`):
MOST_GAPS = 62  # 2^6 - 2, the patterns of six bands
GAP_ROWS = 100  # least number of rows to learn from
# Largest share of a time budget, within `gap_seconds`. Measured on three draws of 2,500 galaxies,
# a third of them without two of five bands, within 60 s (CPU time): 0.4 gave all ten models of
# their gaps, RMSE .0714, .0672, .0568 and mean log-likelihood 1.929, 1.853, 1.941; 96 to 116 s with
# models of all 30 gaps gave .0713, .0673, .0563 and 1.925, 1.853, 1.938. A share of 1/3 gave nine
# or ten models, 1/4 eight and seven: 1.897, 1.902. A shorter search costs nothing measurable
# (complete rows: 2.134, 1.960, 1.983 after 18 s, 2.127, 1.961, 1.978 after 26 to 34 s) until it is
# cut to a few seconds: 1.961 for the third draw with 1/2.
GAPS_SHARE = 0.4
GAP_WEIGHT = 2.0  # weight of a row with a gap in the division of time; a complete row has 1
GAPS_LEFT = 0.7  # share of the time left after search and average, for gaps of the table
LEAST_GROWTH, MOST_GROWTH = 0.7, 3.0  # seconds of growth of each model
# Seconds of all other work for a model, and for each of its rows; and for each row of a GP of the
# nearest rows, one thread. Without this GP models of 7,200 SDSS galaxies took 1.9 s instead of 6.0;
# with two bands missing RMSE was .0612 instead of .0608, and the log-likelihood 1.830 instead of
# 1.842 (with four: .0904 and .0904, 1.302 and 1.323).
BESIDE, BESIDE_ROW, NEAREST_ROW = 0.8, 1e-4, 5e-4
RIVAL_ROWS = 20_000  # rows that baselines of the report learn from: more only make them slow


def models_of(s: RedshiftSettings, n_rows: int) -> int:
    """Number of models that are trained together."""
    if s.restarts != AUTO:
        return int(s.restarts)
    return 5 if n_rows <= SMALL else 3 if n_rows <= 20_000 else 1


def grows(s: RedshiftSettings) -> bool:
    """Return True if training finds the size or the shape of the models."""
    return AUTO in (s.n_basis, s.covariance)


def test_rows(s: RedshiftSettings, n: int) -> int:
    """Number of rows to hold out of n, if none are marked."""
    if s.test_size in (0, AUTO):
        scored = min(n, max(SCORED_ROWS, n // 10)) if s.test_size == AUTO else n
        return max(round(s.test_share * scored), min(LEAST_TESTED, n // 3))
    return min(int(s.test_size), max(n - s.training_size - s.validation_size, n // 3))


def learned(s: RedshiftSettings, n: int) -> tuple[int, int]:
    """Numbers of training and validation rows, of n that are not held out.

    At most a quarter are validation rows; further requested ones are trained on.
    """
    share = s.validation_share / (1 - s.test_share)
    requested = s.training_size / (1 - share) if s.training_size else n
    validation = min(s.validation_size or round(share * min(n, requested)), n // 4)
    used = min(n, s.training_size + validation) if s.training_size else n
    validation = min(validation, used // 4)
    return used - validation, validation


def parts(s: RedshiftSettings, rows: int, counts: Counts) -> SplitCounts:
    """Numbers of training, validation and test rows."""
    marked = counts.get("split", {})
    test = marked.get(TEST) or test_rows(s, rows)
    train, validation = learned(s, rows - test)
    return SplitCounts(train, marked.get(VALIDATION) or validation, test, rows)


def capacity(s: RedshiftSettings, rows: int, columns: int, counts: Counts) -> dict[str, Choice]:
    """Number of models and maximum number of steps; training finds the rest."""
    split = parts(s, rows, counts)
    learned = split.train + split.validation
    models = models_of(s, learned)
    what = "each sees other rows" if s.combine == "average" else "each from another start"
    choices = {"restarts": Choice(models, f"for {learned:,} rows; {what}")}
    steps, reason = MOST_STEPS, "at most: training ends by itself or with its time budget"
    if not grows(s):
        seconds = step_seconds(split.train, max(columns - 1, 1), s.n_basis, s.errors == "as noise")
        affordable = TRAINING_SHARE * s.time_budget / (models * seconds)
        steps, reason = int(min(max(affordable, 50), MOST_STEPS)), f"within {s.time_budget:g} s"
    return {**choices, "max_steps": Choice(steps, reason)}


def gap_limit(s: RedshiftSettings) -> float:
    """Maximum seconds of the time budget for models of gaps."""
    return min(s.gap_seconds, GAPS_SHARE * s.time_budget)


def gap_reserve(s: RedshiftSettings, n_gaps: int, share: float, rows: int) -> float:
    """Seconds of the time budget that are reserved for models of the table's gaps.

    They grow with the share of rows with gaps: complete rows gain nothing from them.

    Args:
        s: Settings of the run.
        n_gaps: Number of gaps in the table.
        share: Share of its rows with one of them.
        rows: Number of rows to learn from.
    """
    expected = n_gaps * (BESIDE + (BESIDE_ROW + NEAREST_ROW) * rows + MOST_GROWTH)
    return min(gap_limit(s), GAP_WEIGHT * share * s.time_budget, expected)


class GapTime(NamedTuple):
    """Models of gaps for which there is time.

    Attributes:
        n_models: Number of models.
        with_nearest: How many of these, the first ones, have a GP of the nearest rows.
        growth: Seconds that each may grow.
    """

    n_models: int
    with_nearest: int
    growth: float


def gap_time(seconds: float, n_gaps: int, rows: int) -> GapTime:
    """Divide time among models of gaps.

    First comes a model for each gap: on 4,000 SDSS galaxies that lack two of five bands, quick
    models of all ten gaps had an RMSE of .0613 and a log-likelihood of 1.84, thorough ones of five
    of them .0666 and 1.61. Then come GPs of the nearest rows, then growth. All follow from expected
    times, not the clock, so that a fit is the same on any machine.

    Args:
        seconds: Time of all models.
        n_gaps: Number of gaps.
        rows: Number of rows to learn from.
    """
    each = BESIDE + BESIDE_ROW * rows + LEAST_GROWTH
    n_models = min(n_gaps, int(seconds / each))
    rest = seconds - n_models * each
    nearest = NEAREST_ROW * max(rows, 1)
    with_nearest = min(n_models, int(rest / nearest))
    rest -= with_nearest * nearest
    growth = LEAST_GROWTH + rest / max(n_models, 1)
    return GapTime(n_models, with_nearest, min(MOST_GROWTH, growth))


def gaps_when_asked(s: RedshiftSettings, n_gaps: int, rows: int) -> GapTime:
    """Models of gaps when tables to predict need them, in a time budget of their own.

    Their growth does not depend on their number, so that a row is predicted alike in tables with
    other gaps, unless there are so many that not all have GPs of the nearest rows.
    """
    seconds = min(s.gap_seconds, s.time_budget)
    return gap_time(seconds, n_gaps, rows)._replace(growth=LEAST_GROWTH)


def stacks(s: RedshiftSettings) -> bool:
    """Return True if other models take part: they support no noisy inputs or row weights."""
    return bool(s.stack and s.errors != "as noise" and s.weights == "normal")


def estimate(s: RedshiftSettings, rows: int, columns: int, counts: Counts) -> tuple[float, float]:
    """Estimated seconds and bytes of a fit on one core, within a factor of two.

    The estimate includes the report with its baselines, and the steps of all restarts (45 to 80%
    were used before the score converged), each with objective, gradient and score. Measured on one
    thread with a full covariance: a step of 2,000 rows, ten inputs and 25 basis functions takes
    6 ms, with 100 functions 16 ms; with noisy inputs (5.71) 0.3 s. Training on 1,000,000 rows of
    ten inputs with 100 functions peaks at 2.0 GB, without table and report. Models that grow take
    their time budget, or the time of their stages if all gained. GPs of the average are fitted in
    each fold, with many rows once.
    """
    split = parts(s, rows, counts)
    n, m = split.train, s.n_basis
    if grows(s):
        seconds = TRAINING_SHARE * s.time_budget
        budget = GrowthBudget.of(
            s, n, max(columns - 1, 1), models_of(s, n + split.validation), seconds
        )
        stages = list(budget.all())
        m, held_bytes = max(stage.n_basis for stage in stages), max(map(budget.bytes_of, stages))
        training = sum(budget.steps(stage) * budget.step_seconds(stage) for stage in stages)
        size = budget.models * budget.trained(stages[-1]) * m
    else:
        size = n * m
        budget = GrowthBudget.of(s, n, max(columns - 1, 1), int(s.restarts), math.inf)
        held_bytes = budget.bytes_of(Stage(m, s.covariance, FREE))
        step = size * (8e-8 + 2e-10 * m) * (0.5 + 0.05 * max(columns - 1, 1))
        if s.covariance[1] == "C" and budget.inputs > FULL:
            step *= 1 + budget.inputs**2 / 1200
        if s.errors == "as noise":
            step *= 110
        training = until_rest(s.max_steps, s.patience, 0.4) * s.restarts * (0.004 + step)
    if stacks(s):  # in each fold, and for all rows
        n_fits = 1 + models_of(s, n + split.validation) if n <= 300 else 1
        training += n_fits * partner_seconds(n, max(columns - 1, 1), wide=3, narrow=2)
    n_learned, inputs = n + split.validation, max(columns - 1, 1)
    # Tree methods have all colors, too. All columns are bands, or half of them are errors.
    n_bands = 3 * inputs // 4 if s.features in (AUTO, COLORS) else 0
    n_colors = math.comb(n_bands, 2) if n_bands <= MAX_PAIRED else 0
    n_rival_rows, has_catboost = min(n_learned, RIVAL_ROWS), find_spec("catboost") is not None
    report_seconds = beside(n_rival_rows, inputs + n_colors, has_catboost)
    row_bytes = min(450 * size, 1e8 + n * (25 * m + 1000))
    if inputs > FULL:  # blocks of pairs and of completed rows: 2,000 rows of 60 took 0.66 GB
        row_bytes += held_bytes + 2e8
    return 1.0 + report_seconds + training, 500e6 + row_bytes
