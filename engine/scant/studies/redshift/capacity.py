"""What a redshift fit does with settings that are `auto`: how models start and how they grow.

Sizes that only training can tell (the number of basis functions and their shape) are found stage by
stage (`growth.py`); the order of the stages, and what of them a time budget has room for, is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

from scant.learners.cost import beside
from scant.studies.auto import AUTO, TRAINING_SHARE, Choice
from scant.studies.base import Counts, partner_seconds, until_rest
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.split import TEST, VALIDATION, SplitCounts

TIED, NOISY, FREE = 0, 1, 2  # how free the prior precisions and the noise are
SMALL = 2000  # rows up to which a fit starts with tied precisions and sees each row held out
PATHS = {"VL": "GL VL", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
STAGE_STEPS = 40  # that a stage is reckoned with: they rise for some 15 and then wait for better
ROWS_FOR_EACH = 12  # basis function, at least
ROWS_A_FUNCTION = 200  # trained on in a stage; the posterior of the weights sees all rows
LEAST_ROWS = 2000  # of these, if there are as many
MOST_STEPS = 3000
FIRST = 300  # basis functions that a fit to few rows starts with: as many as rows, up to this
LEAST_TESTED = 5  # rows, of which a score says something
SCORED_ROWS = 5000  # whose share of test rows says enough: those of more are better learned from
WIDE_STEPS = 150  # that many diagonal basis functions, which begin anew, are reckoned with
LEAST_WIDE = 50  # of these
# Of models of rows that lack something (`gaps.py`):
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
FULL = 14  # inputs up to which full covariances are tried in any case
# Beyond, their numbers grow with the square: 2,000 rows, 100 basis functions, one thread, a step
# with VD and VC takes 15 and 24 ms with 30 inputs, 24 and 85 with 60, 21 and 373 with 120.
FULL_SHARE = 0.1  # of the time, that a stage of full covariances may take beyond
FULL_BYTES = 250e6  # and its parameters, of all models, with L-BFGS's history
COPIES = 52  # of the parameters that training holds: 20 pairs of the history, and the best so far


class Stage(NamedTuple):
    """The size and the shape of the models of a stage.

    `free`: TIED: all basis functions share one prior precision, as the linear mean's slopes do, and
    the noise is the same everywhere: few numbers, as few rows can tell. NOISY: the noise depends on
    the input. FREE: each weight has its own precision.
    """

    n_basis: int
    shape: str
    free: int

    def __str__(self) -> str:
        return f"{self.n_basis} {self.shape}"


@dataclass(frozen=True)
class Room:
    """What limits growth.

    Attributes:
        rows: Trained on, of each model.
        inputs: d.
        models: Trained side by side.
        seconds: Of training; infinite where the steps are the user's.
        n_basis: The user's number; 0: auto.
        shape: The user's; "" where it is auto.
        heteroscedastic: Whether the noise may depend on the input.
        noisy: Whether the inputs' noise is integrated over, at a hundred times the cost.
    """

    rows: int
    inputs: int
    models: int
    seconds: float
    n_basis: int = 0
    shape: str = ""
    heteroscedastic: bool = True
    noisy: bool = False

    @classmethod
    def of(cls, s: RedshiftSettings, rows: int, inputs: int, models: int, seconds: float) -> Room:
        """The room that settings leave."""
        m = 0 if s.n_basis == AUTO else s.n_basis
        shape = "" if s.covariance == AUTO else s.covariance
        noisy = s.errors == "as noise"
        return cls(rows, inputs, models, seconds, m, shape, s.heteroscedastic, noisy)

    @property
    def small(self) -> bool:
        """Whether there are so few rows that models start with tied precisions."""
        return self.rows <= SMALL

    @property
    def first(self) -> Stage:
        """Where growth starts."""
        if not self.small:
            return Stage(self.n_basis or 25, self._path[min(1, len(self._path) - 1)], FREE)
        one = Stage(self.n_basis or min(FIRST, max(3, self.rows)), self._path[0], TIED)
        # As many as rows make a Gaussian process; fewer where four stages of it take too long.
        while one.n_basis > 25 and not self.n_basis and not self.fits(one, 0.75 * self.seconds):
            one = one._replace(n_basis=one.n_basis // 2)
        return one

    @property
    def _path(self) -> list[str]:
        """Shapes from coarse to fine."""
        if self.shape:
            return PATHS.get(self.shape, self.shape).split()
        if self.inputs <= FULL:
            return ["GL", "GD", "GC", "VC"] if self.inputs > 1 else ["GL"]
        return ["GL", "GD", "VD"] + (["GC", "VC"] if self._affords_full else [])

    @property
    def _affords_full(self) -> bool:
        """Whether full covariances of many inputs fit the time and memory, by their expected cost.

        Of as many basis functions as growth starts with, where there are few rows.
        """
        full = Stage(self.n_basis or min(FIRST, max(3, self.rows)), "VC", FREE)
        seconds = STAGE_STEPS * self.step_seconds(full)
        return seconds <= FULL_SHARE * self.seconds and self.bytes_of(full) <= FULL_BYTES

    @property
    def most(self) -> int:
        """Basis functions that the rows can tell apart."""
        return max(self.first.n_basis, min(400, self.rows // ROWS_FOR_EACH))

    def after(self, stage: Stage) -> Iterator[Stage]:
        """Stages a step away from this one, in the order in which they are tried."""
        path = self._path
        finer = path[path.index(stage.shape) + 1 :] if stage.shape in path else []
        larger = min(2 * stage.n_basis, self.most)
        if stage.shape == "GL" and finer:
            yield stage._replace(shape=finer[0])
        if stage.free < FREE:
            skipped = 1 if self.heteroscedastic else 2
            yield stage._replace(free=min(stage.free + skipped, FREE))
        if stage.shape != "GL" and stage.free == FREE:
            yield from (stage._replace(shape=shape) for shape in finer)
        if larger >= 1.5 * stage.n_basis and not self.n_basis:
            yield stage._replace(n_basis=larger)
        if stage.shape == "VC" and not (
            self.small or self.shape or self.n_basis or self.inputs > FULL
        ):
            yield from (wide for wide in self._wide() if wide.n_basis > stage.n_basis)

    def _wide(self) -> Iterator[Stage]:
        """Many basis functions without correlations, which begin anew.

        Full covariances of a dozen inputs fit the noise of the rows before there are many of them.
        """
        wide = Stage(self.most, "VD", FREE)
        while wide.n_basis >= LEAST_WIDE:
            if WIDE_STEPS * self.step_seconds(wide) <= 0.7 * self.seconds:
                yield wide
                return
            wide = wide._replace(n_basis=wide.n_basis // 2)

    @staticmethod
    def anew(stage: Stage, before: Stage) -> bool:
        """Whether a stage does not set out from the models of another one."""
        return stage.free == TIED or (stage.shape, before.shape) == ("VD", "VC")

    def all(self) -> Iterator[Stage]:
        """The stages of a fit in which each gains and the next one fits."""
        used, stage = 0.0, self.first
        while True:
            yield stage
            used += self.steps(stage) * self.step_seconds(stage)
            following = next((s for s in self.after(stage) if self.fits(s, used)), None)
            if following is None:
                return
            stage = following

    def trained(self, stage: Stage) -> int:
        """Rows of each model that a stage trains on."""
        return min(self.rows, max(LEAST_ROWS, ROWS_A_FUNCTION * stage.n_basis))

    def step_seconds(self, stage: Stage) -> float:
        """Seconds that a step of all models takes on one core, their scores included."""
        one = step_seconds(
            self.trained(stage), self.inputs, stage.n_basis, self.noisy, stage.shape[1] == "C"
        )
        return self.models * one

    def bytes_of(self, stage: Stage) -> float:
        """Bytes of all models' parameters with all their copies, and of the rows' features."""
        full = stage.shape[1] == "C"
        each = self.inputs**2 if full else self.inputs
        numbers = 1.0 * COPIES * stage.n_basis * (each + self.inputs + 4)
        numbers += self.trained(stage) * (0.5 * each + self.inputs if full else 2 * self.inputs)
        return 8.0 * self.models * numbers

    def fits(self, stage: Stage, used: float) -> bool:
        """Whether a stage is expected to end within the time, of which some is used."""
        return used + self.steps(stage) * self.step_seconds(stage) <= self.seconds

    def steps(self, stage: Stage) -> int:
        """Steps that a stage is reckoned with."""
        wide = stage.shape == "VD" and self.inputs <= FULL and not self.shape
        return WIDE_STEPS if wide else STAGE_STEPS


def step_seconds(rows: int, inputs: int, n_basis: int, noisy: bool, full: bool = False) -> float:
    """Seconds that a step of one model takes on one core, its score included.

    Measured, one thread, ten inputs, 5,000 rows: 8 ms with 25 basis functions, 20 ms with 100, 53
    ms with 200; the shape hardly matters, unless there are many inputs and it is full.
    """
    size = rows * n_basis
    one = size * (2.5e-8 + 1.3e-10 * n_basis) * (0.6 + 0.04 * inputs)
    if full and inputs > FULL:
        one *= 1 + inputs**2 / 1200
    return 0.002 + (110 * one if noisy else one)


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
        room = Room.of(s, n, max(columns - 1, 1), models_of(s, n + split.validation), seconds)
        stages = list(room.all())
        m, held = max(stage.n_basis for stage in stages), max(map(room.bytes_of, stages))
        training = sum(room.steps(stage) * room.step_seconds(stage) for stage in stages)
        size = room.models * room.trained(stages[-1]) * m
    else:
        size = n * m
        room = Room.of(s, n, max(columns - 1, 1), int(s.restarts), math.inf)
        held = room.bytes_of(Stage(m, s.covariance, FREE))
        step = size * (8e-8 + 2e-10 * m) * (0.5 + 0.05 * max(columns - 1, 1))
        if s.covariance[1] == "C" and room.inputs > FULL:
            step *= 1 + room.inputs**2 / 1200
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
