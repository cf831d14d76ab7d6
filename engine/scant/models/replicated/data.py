"""Outputs measured in replicas: the rows that the models of replicated outputs share.

A row is one measurement y of an output, in one of its replicas, at x. Replicas of the same name in
several outputs are one *sampling* (an embryo whose genes were all measured): models that know of
samplings let its outputs vary together (Ma 2023, 5.12-5.14 with one index r for all outputs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput

NEW = -1  # the index of a replica that was never seen, and the label of its sampling
LEAST_NOISE = 1e-6  # variance, of standardized y: below it a bound is all rounding


class ReplicatedPrediction(NamedTuple):
    """Of k rows: `mean` and `variance` of f, and the variance `noise` of y about it."""

    mean: Float[Tensor, " k"]
    variance: Float[Tensor, " k"]
    noise: Float[Tensor, " k"]


@dataclass(frozen=True)
class Data:
    """Measurements, one a row; models expect x and each output's y standardized (`Scale`).

    Args:
        output: Index of the output.
        replica: Index within the replicas of that output.
        x: Where it was measured.
        y: What was measured.
        samplings: The sampling that replica r of output d is, from 0; `NEW` where there is no
            such replica. Its rows are the outputs, so it says how many there are.
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
        """Rows and the names of the replicas of each output.

        Args:
            replicas: By default replica r of every output is sampling r.

        Raises:
            BadInput: No rows, indices out of range, or numbers that are not finite.
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
        """How many replicas each output has."""
        return [int(count) for count in (self.samplings != NEW).sum(1)]

    def sampling(self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"]) -> Int[Tensor, " k"]:
        """The samplings that replicas of outputs are; `NEW` for a new replica.

        Raises:
            BadInput: An output or a replica that is not there.
        """
        self.check(output, replica)
        known = self.samplings[output, replica.clamp(min=0)]
        return torch.where(replica == NEW, NEW, known)

    def check(self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"]) -> None:
        """See that all rows speak of outputs and replicas that are there.

        Raises:
            BadInput: Naming the first that is not.
        """
        d, r = self.samplings.shape
        if not bool(((output >= 0) & (output < d)).all()):
            wrong = int(output[(output < 0) | (output >= d)][0])
            raise BadInput(f"Output {wrong} is unknown; the model has outputs 0 to {d - 1}.")
        there = (replica >= NEW) & (replica < r)
        there &= (replica == NEW) | (self.samplings[output, replica.clamp(0, r - 1)] != NEW)
        if not bool(there.all()):
            row = int((~there).nonzero()[0])
            raise BadInput(
                f"Replica {int(replica[row])} of output {int(output[row])} is unknown: that output"
                f" has {self.replicas[int(output[row])]}; ask for {NEW}, a new replica."
            )

    def at(self, rows: Tensor) -> Data:
        """Some of the rows; outputs and replicas keep their indices."""
        return Data(
            self.output[rows], self.replica[rows], self.x[rows], self.y[rows], self.samplings
        )

    def without(self, output: int, replica: int) -> Data:
        """All rows but those of one replica."""
        return self.at((self.output != output) | (self.replica != replica))


class Scale(NamedTuple):
    """Centre and width of x, and of y in each output: standardized = (value - centre) / width."""

    x_centre: Float[Tensor, ""]
    x_width: Float[Tensor, ""]
    y_centre: Float[Tensor, " d"]
    y_width: Float[Tensor, " d"]

    @classmethod
    def of(cls, data: Data) -> Scale:
        """Means and standard deviations; 1 in place of those that are 0.

        An output without rows takes the mean and deviation of all.
        """
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
        """The same rows, x and y in units of the widths."""
        d = data.output
        x = (data.x - self.x_centre) / self.x_width
        y = (data.y - self.y_centre[d]) / self.y_width[d]
        return Data(d, data.replica, x, y, data.samplings)

    def restore(
        self, output: Int[Tensor, " k"], prediction: ReplicatedPrediction
    ) -> ReplicatedPrediction:
        """A prediction of standardized y, in the units of y."""
        centre, width = self.y_centre[output], self.y_width[output]
        mean, variance, noise = prediction
        return ReplicatedPrediction(centre + width * mean, width**2 * variance, width**2 * noise)


def _or_one(width: Tensor) -> Tensor:
    return torch.where(width > 1e-12, width, torch.ones_like(width))


def _samplings(replicas: Sequence[Sequence[str]]) -> Int[Tensor, "d r"]:
    """Names numbered in the order of their first appearance."""
    number: dict[str, int] = {}
    for names in replicas:
        for name in names:
            number.setdefault(name, len(number))
    table = torch.full((len(replicas), max(map(len, replicas), default=0)), NEW)
    for d, names in enumerate(replicas):
        table[d, : len(names)] = torch.tensor([number[name] for name in names], dtype=torch.long)
    return table
