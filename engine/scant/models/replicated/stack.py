"""Stacking of models of replicated outputs.

    p(y | x, d, r) = sum_k w_k p_k(y | x, d, r)

The weights maximize the mean log density of held-out rows (Yao, Vehtari, Simpson and Gelman, Using
stacking to average Bayesian predictive distributions, 2018). Predictions are the mean and variance
of the mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from scant.models.replicated.data import ReplicatedPrediction


class Stack(nn.Module):
    """Weighted mixture of trained models.

    Args:
        members: Models of the same data.
        weights: Weight of each model, summing to one.
    """

    weights: Float[Tensor, " k"]

    def __init__(self, members: Iterable[Any], weights: Sequence[float] | Tensor) -> None:
        super().__init__()
        self.members: Any = nn.ModuleList(members)
        self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float64))

    def predict(
        self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> ReplicatedPrediction:
        """Mean, variance and noise of the mixture (see `ReplicaGP.predict`)."""
        parts = [m.predict(output, replica, x) for m in self.members]
        mean, variance = self._mixed([(p.mean, p.variance) for p in parts])
        return ReplicatedPrediction(mean, variance, self._average([p.noise for p in parts]))

    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of the function shared by an output's replicas."""
        return self._mixed([m.shared(output, x) for m in self.members])

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

    def _mixed(self, parts: list[Any]) -> tuple[Tensor, Tensor]:
        """Moments of the mixture, from means and variances of its components."""
        means, variances = (torch.stack(column) for column in zip(*parts))
        mean = torch.tensordot(self.weights, means, 1)
        spread = variances + (means - mean).square()
        return mean, torch.tensordot(self.weights, spread, 1)
