"""Trained models of the same replicated outputs, with their weights in a stack.

Their predictions are a mixture, p(y | x, d, r) = sum_k w_k p_k(y | x, d, r), which whoever asks
makes of `members` and `weights` (`scant.ensemble`); what they say of curves is averaged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Stack(nn.Module):
    """Weighted models.

    Args:
        members: Models of the same data.
        weights: Weight of each model, summing to one.
    """

    weights: Float[Tensor, " k"]

    def __init__(self, members: Iterable[Any], weights: Sequence[float] | Tensor) -> None:
        super().__init__()
        self.members: Any = nn.ModuleList(members)
        self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float64))

    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of the function shared by an output's replicas."""
        means, variances = (
            torch.stack(column) for column in zip(*(m.shared(output, x) for m in self.members))
        )
        mean = torch.tensordot(self.weights, means, 1)
        spread = variances + (means - mean).square()
        return mean, torch.tensordot(self.weights, spread, 1)

    def levels(self, output: Int[Tensor, " k"]) -> Float[Tensor, "k 3"]:
        """Prior variance components of outputs: shared by replicas, replica level, noise."""
        return self._average([m.levels(output) for m in self.members])

    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs' curves at one x."""
        return self._average([m.outputs_covariance() for m in self.members])

    def latent(self) -> Any:
        """Latent positions of the outputs from the first member that has them."""
        return next(filter(None, (m.latent() for m in self.members)), None)

    def _average(self, parts: list[Tensor]) -> Tensor:
        return torch.tensordot(self.weights, torch.stack(parts), 1)
