"""Exact Gaussian-process regression over supports of several tasks, for Gaussian likelihoods.

    y ~ N(m, sum_q B_q o K_q + diag(noise of each row's task))

(Yousefi 2021, section 5.1.2). For a few thousand rows at most: a step costs their cube.
With one task it is area-to-point kriging (Kyriakidis 2004), and it is what MTGPA's bound and
posterior are checked against.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from scant.errors import BadInput
from scant.inference.exact import whitened
from scant.inference.expectations import LOG_2PI
from scant.models.mtgpa.likelihoods import LEAST_NOISE, Gaussian, MTGPAPrediction
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.optim.lbfgs import LBFGS
from torch import Tensor, nn

CHUNK = 4096  # rows predicted at once


class Prior(Protocol):
    """What `ExactGP` needs of a prior: functions j at supports x, row by row or all pairs."""

    def mean(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]: ...
    def variance(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]: ...
    def covariance(
        self,
        x1: Float[Tensor, "n c1"],
        j1: Int[Tensor, " n"],
        x2: Float[Tensor, "m c2"],
        j2: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]: ...


class ExactGP(nn.Module):
    """Conditioned on the data it is given; task d observes function d.

    Args:
        prior: Shared, not copied.
        data: y standardized roughly, as for MTGPA.
        noise: Variance of each task's observations to start from.
    """

    prior: Any  # a module, and a `Prior`

    def __init__(self, prior: nn.Module, data: Data, noise: Float[Tensor, " t"]) -> None:
        super().__init__()
        self.prior, self.data = prior, data
        self.log_noise = nn.Parameter((noise - LEAST_NOISE).clamp(min=1e-12).log())

    def noise(self) -> Float[Tensor, " t"]:
        """Variance of each task's observations."""
        return self.log_noise.exp() + LEAST_NOISE

    def _factor(self) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n 1"]]:
        """The Cholesky factor of y's covariance, and that factor's inverse times y - m."""
        x, y, task, _ = self.data
        K = self.prior.covariance(x, task, x, task) + self.noise()[task].diag()
        residual = (y - self.prior.mean(x, task)).unsqueeze(1)
        return whitened(K, residual)

    def log_marginal(self) -> Float[Tensor, ""]:
        """ln p(y), in nats."""
        lower, half = self._factor()
        log_det = lower.diagonal().log().sum()
        return -0.5 * half.square().sum() - log_det - 0.5 * len(half) * LOG_2PI

    def fit(self, steps: int = 50) -> float:
        """Maximize ln p(y) over all that has a gradient, by L-BFGS; returns what was reached."""
        learned = [p for p in self.parameters() if p.requires_grad]
        optimizer = LBFGS(learned, lambda: -self.log_marginal())
        value = float("inf")
        for _ in range(steps):
            value = optimizer.step()
            if optimizer.stalled:
                break
        return -value

    @torch.no_grad()
    def predict(self, supports: Float[Tensor, "n c"], task: int) -> MTGPAPrediction:
        """Posterior of a task's average over each support."""
        lower, half = self._factor()
        parts = [self._given(part, task, lower, half) for part in supports.split(CHUNK)]
        mean, variance = (torch.cat(columns) for columns in zip(*parts))
        return MTGPAPrediction(mean, variance, self.noise()[task].expand_as(mean))

    def _given(
        self, x: Tensor, task: int, lower: Tensor, half: Tensor
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        j = torch.full((len(x),), task, device=x.device)
        K = self.prior.covariance(self.data.supports, self.data.task, x, j)
        weights = torch.linalg.solve_triangular(lower, K, upper=False)
        mean = self.prior.mean(x, j) + (weights.T @ half)[:, 0]
        return mean, (self.prior.variance(x, j) - weights.square().sum(0)).clamp(min=0)

    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        """Log density of observations, given those trained on; in nats a row."""
        total = torch.zeros_like(data.y)
        for task in data.task.unique().tolist():
            rows = (data.task == task).nonzero().squeeze(1)
            mean, variance, noise = self.predict(data.supports[rows], int(task))
            variance = variance + noise
            squares = (data.y[rows] - mean).square() / variance
            total[rows] = -0.5 * (LOG_2PI + variance.log() + squares)
        return total


def exact_posterior(model: MTGPA, data: Data) -> ExactGP:
    """The posterior that MTGPA approximates, at its present hyperparameters.

    Raises:
        BadInput: A likelihood is not Gaussian.
    """
    noises = [lik.noise() for lik in model.likelihoods if isinstance(lik, Gaussian)]
    if len(noises) < len(model.likelihoods):
        raise BadInput("The posterior is exact with Gaussian likelihoods only.")
    return ExactGP(model.prior, data, torch.stack(noises).detach())
