"""Batched layout of rows for HMOGP-LV: distinct inputs, and rows grouped by output."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.models.replicated.data import Data


@dataclass(frozen=True)
class ReplicaBatch:
    """Rows of D outputs, padded to at most n rows each.

    Args:
        inputs: Distinct inputs (x, sampling) of all outputs.
        where: Index of the input of each row.
        real: Mask of rows that are not padding.
        y: Values; 0 for padding.
        outputs: Indices of the outputs in the model.
        same: True if all outputs have the same inputs (5.22-5.28: one Phi^X for all).
    """

    inputs: Float[Tensor, "u 2"]
    where: Int[Tensor, "d n"]
    real: Bool[Tensor, "d n"]
    y: Float[Tensor, "d n"]
    outputs: Int[Tensor, " d"]
    same: bool

    @classmethod
    def of(cls, data: Data) -> ReplicaBatch:
        """Layout of all outputs of the data, including those without rows."""
        sampling = data.sampling(data.output, data.replica).to(data.x)
        pairs = torch.stack([data.x, sampling], dim=1)
        inputs, index = torch.unique(pairs, dim=0, return_inverse=True)
        D = data.n_outputs
        order = torch.argsort(data.output * len(inputs) + index, stable=True)
        output, index, y = data.output[order], index[order], data.y[order]
        counts = torch.bincount(output, minlength=D)
        column = torch.arange(len(y), device=y.device) - (counts.cumsum(0) - counts)[output]
        shape = (D, int(counts.max()))
        where = index.new_zeros(shape).index_put((output, column), index)
        padded = y.new_zeros(shape).index_put((output, column), y)
        real = torch.arange(shape[1], device=y.device) < counts.unsqueeze(1)
        same = bool(real.all()) and bool((where == where[0]).all())
        return cls(inputs, where, real, padded, torch.arange(D, device=y.device), same)

    @property
    def counts(self) -> Float[Tensor, " d"]:
        return self.real.sum(1).to(self.y)

    def at(self, outputs: Int[Tensor, " b"]) -> ReplicaBatch:
        """Select outputs."""
        used, where = torch.unique(self.where[outputs], return_inverse=True)
        real, y = self.real[outputs], self.y[outputs]
        return ReplicaBatch(self.inputs[used], where, real, y, self.outputs[outputs], self.same)
