"""Sizes and shapes of models that grow: the order of the stages, and what a time budget allows.

Only training can tell the number of basis functions and their shape (`growth.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scant.studies.auto import AUTO
from scant.studies.redshift.settings import RedshiftSettings

TIED, NOISY, FREE = 0, 1, 2  # how free the prior precisions and the noise are
SMALL = 2000  # rows up to which a fit starts with tied precisions and sees each row held out
PATHS = {"VL": "GL VL", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
STAGE_STEPS = 40  # that a stage is reckoned with: they rise for some 15 and then wait for better
ROWS_FOR_EACH = 12  # basis function, at least
ROWS_A_FUNCTION = 200  # trained on in a stage; the posterior of the weights sees all rows
LEAST_ROWS = 2000  # of these, if there are as many
FIRST = 300  # basis functions that a fit to few rows starts with: as many as rows, up to this
WIDE_STEPS = 150  # that many diagonal basis functions, which begin anew, are reckoned with
LEAST_WIDE = 50  # of these
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
class GrowthBudget:
    """Rows, time and settings that limit the growth of models.

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
    def of(
        cls, s: RedshiftSettings, rows: int, inputs: int, models: int, seconds: float
    ) -> GrowthBudget:
        """Return the limits that settings set."""
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

        The number of basis functions is that with which growth starts on few rows.
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
        """Return True if a stage is expected to end within the time, some of which is used."""
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
