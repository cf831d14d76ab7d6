"""Sizes and shapes of models that grow: the order of the stages, and limits of time.

Training finds the number of basis functions and their shape (`growth.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scant.studies.auto import AUTO
from scant.studies.redshift.settings import RedshiftSettings

TIED, NOISY, FREE = 0, 1, 2  # how free the prior precisions and the noise are
SMALL = 2000  # rows up to which a fit starts with tied precisions and holds each row out once
PATHS = {"VL": "GL VL", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
STAGE_STEPS = 40  # expected steps of a stage: scores rise for some 15, the others are patience
ROWS_FOR_EACH = 12  # least number of rows for each basis function
ROWS_A_FUNCTION = 200  # training rows for each in a stage; the weights' posterior takes all rows
LEAST_ROWS = 2000  # least number of training rows in a stage, if there are as many
FIRST = 300  # maximum of initial basis functions with few rows, where they are as many as rows
WIDE_STEPS = 150  # expected steps of many diagonal basis functions, from initial values
LEAST_WIDE = 50  # least number of these
FULL = 14  # inputs up to which full covariances are tried in any case
# Beyond, their size grows with the square: 2,000 rows, 100 basis functions, one thread, a step
# with VD and VC takes 15 and 24 ms with 30 inputs, 24 and 85 with 60, 21 and 373 with 120.
FULL_SHARE = 0.1  # largest share of the time for a stage of full covariances beyond
FULL_BYTES = 250e6  # and largest size of its parameters, all models, with the history of L-BFGS
COPIES = 52  # copies of the parameters in training: 20 pairs of the history, and the best so far


class Stage(NamedTuple):
    """The size and the shape of the models of a stage.

    `free`: TIED: all basis functions share one prior precision, as the linear mean's slopes do, and
    the noise is constant: few parameters, for few rows. NOISY: the noise depends on the input.
    FREE: each weight has its own precision.
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
        rows: Training rows of each model.
        inputs: Number of inputs d.
        models: Number of models trained together.
        seconds: Time for training; infinite if the user sets the steps.
        n_basis: Number set by the user; 0: auto.
        shape: Shape set by the user; "": auto.
        heteroscedastic: Whether the noise may depend on the input.
        noisy: Whether noise of the inputs is integrated over, at a hundred times the cost.
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
        """True if rows are so few that models start with tied precisions."""
        return self.rows <= SMALL

    @property
    def first(self) -> Stage:
        """The first stage."""
        if not self.small:
            return Stage(self.n_basis or 25, self._path[min(1, len(self._path) - 1)], FREE)
        stage = Stage(self.n_basis or min(FIRST, max(3, self.rows)), self._path[0], TIED)
        # As many as rows make a Gaussian process; fewer if four such stages take too long.
        while stage.n_basis > 25 and not self.n_basis and not self.fits(stage, 0.75 * self.seconds):
            stage = stage._replace(n_basis=stage.n_basis // 2)
        return stage

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
        """True if full covariances of many inputs are expected to fit time and memory.

        The number of basis functions is the initial one with few rows.
        """
        full = Stage(self.n_basis or min(FIRST, max(3, self.rows)), "VC", FREE)
        seconds = STAGE_STEPS * self.step_seconds(full)
        return seconds <= FULL_SHARE * self.seconds and self.bytes_of(full) <= FULL_BYTES

    @property
    def most(self) -> int:
        """Maximum number of basis functions."""
        return max(self.first.n_basis, min(400, self.rows // ROWS_FOR_EACH))

    def after(self, stage: Stage) -> Iterator[Stage]:
        """Yield the stages one change away, in the order in which they are tried."""
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
            yield from (
                candidate for candidate in self._wide() if candidate.n_basis > stage.n_basis
            )

    def _wide(self) -> Iterator[Stage]:
        """Yield a stage of many diagonal basis functions, if time allows.

        Full covariances of a dozen inputs fit the noise of the rows before there are many of them.
        """
        stage = Stage(self.most, "VD", FREE)
        while stage.n_basis >= LEAST_WIDE:
            if WIDE_STEPS * self.step_seconds(stage) <= 0.7 * self.seconds:
                yield stage
                return
            stage = stage._replace(n_basis=stage.n_basis // 2)

    @staticmethod
    def anew(stage: Stage, before: Stage) -> bool:
        """Return True if a stage starts from initial values."""
        return stage.free == TIED or (stage.shape, before.shape) == ("VD", "VC")

    def all(self) -> Iterator[Stage]:
        """Yield the stages of a fit if each gains, as far as time allows."""
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
        """Seconds of a step of all models on one core, their scores included."""
        seconds = step_seconds(
            self.trained(stage), self.inputs, stage.n_basis, self.noisy, stage.shape[1] == "C"
        )
        return self.models * seconds

    def bytes_of(self, stage: Stage) -> float:
        """Bytes of all models' parameters with all their copies, and of the rows' features."""
        full = stage.shape[1] == "C"
        size = self.inputs**2 if full else self.inputs
        numbers = 1.0 * COPIES * stage.n_basis * (size + self.inputs + 4)
        numbers += self.trained(stage) * (0.5 * size + self.inputs if full else 2 * self.inputs)
        return 8.0 * self.models * numbers

    def fits(self, stage: Stage, used: float) -> bool:
        """Return True if a stage is expected to end in time, after `used` seconds."""
        return used + self.steps(stage) * self.step_seconds(stage) <= self.seconds

    def steps(self, stage: Stage) -> int:
        """Expected steps of a stage."""
        many_diagonal = stage.shape == "VD" and self.inputs <= FULL and not self.shape
        return WIDE_STEPS if many_diagonal else STAGE_STEPS


def step_seconds(rows: int, inputs: int, n_basis: int, noisy: bool, full: bool = False) -> float:
    """Seconds of a step of one model on one core, its score included.

    Measured on one thread, ten inputs, 5,000 rows: 8 ms with 25 basis functions, 20 ms with 100, 53
    ms with 200; the shape hardly matters, unless there are many inputs and it is full.
    """
    size = rows * n_basis
    seconds = size * (2.5e-8 + 1.3e-10 * n_basis) * (0.6 + 0.04 * inputs)
    if full and inputs > FULL:
        seconds *= 1 + inputs**2 / 1200
    return 0.002 + (110 * seconds if noisy else seconds)
