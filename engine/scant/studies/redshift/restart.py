"""A restart of a redshift study with models of the size and shape in the settings."""

from __future__ import annotations

from torch import Generator

from scant.models.gpz.model import GPz
from scant.studies.protocol import Step, Tensors
from scant.studies.redshift.fold import Fold, Place, weighted_mean
from scant.studies.redshift.shapes import parameters_of, take


class Restart:
    """Training of one model on one division of the rows; `growth.Growth` finds size and shape.

    Args:
        fold: The division.
        model: A new model.
        place: Constructor of `RowSums` (see `LogEvidence`).
        generator: Generator of the initial values.
        best: Parameters of a model of this shape or a coarser one, to start from.
    """

    ended = ""  # it ends by its steps

    def __init__(
        self, fold: Fold, model: GPz, place: Place, generator: Generator, best: Tensors | None
    ) -> None:
        self.folds, self.steps = [fold], 0
        self.notes: list[str] = []  # warnings of the last step
        model.init_from_data(fold.train.X, fold.train.y, generator)
        if best is not None:
            take(model, best)
        fold.begin(model, place)

    def step(self) -> Step:
        """Take a step; the score is the mean log density of the validation rows."""
        [fold] = self.folds
        self.steps += 1
        elbo = fold.trainer.step() / float(fold.train.omega.sum())
        score, self.notes = fold.score()
        return Step(elbo, weighted_mean(score, fold.unseen.omega))

    def parameters(self) -> Tensors:
        """Parameters of the model."""
        return parameters_of(self.folds[0].model)

    def state(self) -> Tensors:
        """Other tensors that the next step needs."""
        return self.folds[0].trainer.state_dict()

    def load(self, parameters: Tensors, state: Tensors) -> None:
        """Restore the state of a run."""
        take(self.folds[0].model, parameters)
        self.folds[0].trainer.load_state_dict(state)


def stages_to(covariance: str, start: str) -> tuple[str, ...]:
    """Return structures from coarse to fine that end in the requested one."""
    if start == "direct":
        return (covariance,)
    path = {"GL": "GL", "VL": "GL VL", "GD": "GD", "VD": "GD VD", "GC": "GD GC", "VC": "GD GC VC"}
    return tuple(path[covariance].split())
