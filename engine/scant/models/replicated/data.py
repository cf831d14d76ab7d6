"""Data of outputs measured in replicas.

A row is one measurement y of an output, in one of its replicas, at x. Replicas with the same name
in several outputs form one *sampling* (an embryo in which all genes were measured): models with
samplings correlate its outputs (Ma 2023, 5.12-5.14 with one index r for all outputs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput

NEW = -1  # index of a new replica without data, and label of its sampling
MIN_NOISE = 1e-6  # minimum noise variance of standardized y, against rounding errors in bounds


class ReplicatedPrediction(NamedTuple):
    """Predictions for k rows: mean and variance of f, and noise variance of y given f."""

    mean: Float[Tensor, " k"]
    variance: Float[Tensor, " k"]
    noise: Float[Tensor, " k"]


@dataclass(frozen=True)
class Data:
    """Measurements, one per row; models expect standardized x and y (`Scale`).

    Args:
        output: Output index of each row.
        replica: Replica index of each row, within its output.
        x: Inputs.
        y: Measured values.
        samplings: Sampling index of replica r of output d, from 0; `NEW` if there is no such
            replica. The number of its rows is the number of outputs.
    """

    output: Int[Tensor, " n"]
    replica: Int[Tensor, " n"]
    x: Float[Tensor, " n"]
    y: Float[Tensor, " n"]
    samplings: Int[Tensor, "d r"]

    @classmethod
    def of(
        cls,
        output: Int[Tensor, " n"],
        replica: Int[Tensor, " n"],
        x: Float[Tensor, " n"],
        y: Float[Tensor, " n"],
        replicas: Sequence[Sequence[str]] | None = None,
    ) -> Data:
        """Validate rows, and match the replicas of different outputs by name.

        Args:
            output, replica, x, y: See the class.
            replicas: Names of the replicas of each output; by default replica r of every output is
                sampling r.

        Raises:
            BadInput: There are no rows, indices are out of range, or values are not finite.
        """
        if not len(y):
            raise BadInput("There is no measurement to learn from; give at least one row.")
        if replicas is None:
            r = int(replica.max()) + 1
            samplings = torch.arange(r).repeat(int(output.max()) + 1, 1)
        else:
            samplings = _samplings(replicas)
        data = cls(output, replica, x, y, samplings.to(output.device))
        data.check(output, replica)
        for what, values in (("x", x), ("y", y)):
            if not bool(values.isfinite().all()):
                row = int((~values.isfinite()).nonzero()[0])
                raise BadInput(
                    f"Row {row} has {values[row]:g} as its {what}; give a finite number."
                )
        return data

    @property
    def n_outputs(self) -> int:
        return len(self.samplings)

    @property
    def n_samplings(self) -> int:
        return int(self.samplings.max()) + 1

    @property
    def replicas(self) -> list[int]:
        """Number of replicas of each output."""
        return [int(count) for count in (self.samplings != NEW).sum(1)]

    def sampling(self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"]) -> Int[Tensor, " k"]:
        """Sampling index of each replica; `NEW` for new replicas.

        Raises:
            BadInput: An output or a replica does not exist.
        """
        self.check(output, replica)
        samplings = self.samplings[output, replica.clamp(min=0)]
        return torch.where(replica == NEW, NEW, samplings)

    def check(self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"]) -> None:
        """Check that all outputs and replicas exist.

        Raises:
            BadInput: An output or a replica does not exist; the message names the first.
        """
        d, r = self.samplings.shape
        if not bool(((output >= 0) & (output < d)).all()):
            unknown = int(output[(output < 0) | (output >= d)][0])
            raise BadInput(f"Output {unknown} is unknown; the model has outputs 0 to {d - 1}.")
        valid = (replica >= NEW) & (replica < r)
        valid &= (replica == NEW) | (self.samplings[output, replica.clamp(0, r - 1)] != NEW)
        if not bool(valid.all()):
            row = int((~valid).nonzero()[0])
            raise BadInput(
                f"Replica {int(replica[row])} of output {int(output[row])} is unknown: that output"
                f" has {self.replicas[int(output[row])]}; ask for {NEW}, a new replica."
            )

    def at(self, rows: Tensor) -> Data:
        """Select rows; outputs and replicas keep their indices."""
        return Data(
            self.output[rows], self.replica[rows], self.x[rows], self.y[rows], self.samplings
        )

    def without(self, output: int, replica: int) -> Data:
        """All rows except those of one replica."""
        return self.at((self.output != output) | (self.replica != replica))


class Scale(NamedTuple):
    """Standardization of x, and of y per output: (value - centre) / width."""

    x_centre: Float[Tensor, ""]
    x_width: Float[Tensor, ""]
    y_centre: Float[Tensor, " d"]
    y_width: Float[Tensor, " d"]

    @classmethod
    def of(cls, data: Data) -> Scale:
        """Means and standard deviations (1 if zero); outputs without rows use those of all rows."""
        y, D = data.y, data.n_outputs
        count = torch.zeros(D).to(y).index_add(0, data.output, torch.ones_like(y))
        sums = torch.zeros_like(count).index_add(0, data.output, y)
        centre = torch.where(count > 0, sums / count.clamp(min=1), y.mean())
        squares = (y - centre[data.output]).square()
        mean = torch.zeros_like(count).index_add(0, data.output, squares) / count.clamp(min=1)
        width = torch.where(count > 0, mean, y.var(correction=0)).sqrt()
        x_width = data.x.std(correction=0)
        return cls(data.x.mean(), _or_one(x_width), centre, _or_one(width))

    def standardize(self, data: Data) -> Data:
        """Standardize x and y."""
        d = data.output
        x = (data.x - self.x_centre) / self.x_width
        y = (data.y - self.y_centre[d]) / self.y_width[d]
        return Data(d, data.replica, x, y, data.samplings)

    def restore(
        self, output: Int[Tensor, " k"], prediction: ReplicatedPrediction
    ) -> ReplicatedPrediction:
        """Convert a prediction of standardized y to the units of y."""
        centre, width = self.y_centre[output], self.y_width[output]
        mean, variance, noise = prediction
        return ReplicatedPrediction(centre + width * mean, width**2 * variance, width**2 * noise)


def _or_one(width: Tensor) -> Tensor:
    return torch.where(width > 1e-12, width, torch.ones_like(width))


def _samplings(replicas: Sequence[Sequence[str]]) -> Int[Tensor, "d r"]:
    """Table of sampling indices, numbered by first appearance of the names."""
    number: dict[str, int] = {}
    for names in replicas:
        for name in names:
            number.setdefault(name, len(number))
    table = torch.full((len(replicas), max(map(len, replicas), default=0)), NEW)
    for d, names in enumerate(replicas):
        table[d, : len(names)] = torch.tensor([number[name] for name in names], dtype=torch.long)
    return table
