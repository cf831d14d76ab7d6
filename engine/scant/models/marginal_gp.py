"""Fully Bayesian GP regression for tables with few rows.

With a few dozen rows many hyperparameters are nearly as probable as the best, so a point estimate
is overconfident. Here their posterior is sampled by sequential Monte Carlo (Del Moral, Doucet and
Jasra 2006, Sequential Monte Carlo samplers): draws from the prior are moved by Metropolis steps
while the likelihood is tempered from 0 to 1. The kernel is the sum of a constant, a linear and an
ARD Matern 5/2 kernel; the prior median of the lengthscales grows with the square root of the number
of inputs (Hvarfner, Hellsten and Nardi 2024).

    model = MarginalGP.fit(x, y)
    mean, variance = model.predict(x_new)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, MaternKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

ARD = 20  # most inputs with separate lengthscales
DRAWS = 128  # particles of the sampler
PREDICTED_DRAWS = 32  # draws used for predictions
MOVES = 3  # Metropolis steps at each temperature; twice as many at the last one
ACCEPTED = 0.3  # target acceptance rate
# Log-normal priors (median, deviation of the logarithm): standard deviations of noise, function and
# slopes, in those of the target; lengthscales, in square roots of the number of inputs.
NOISE, SIGNAL, SLOPE, WIDTH = (0.5, 0.7), (0.7, 0.7), (0.5, 1.0), (1.5, 1.0)
JITTER = 1e-8
BLOCK_ROWS = 2000  # query rows per block


class MarginalGP:
    """GP posterior averaged over samples of the hyperparameters.

    Inputs and targets have unit standard deviation.

    Args:
        theta: Samples of the log standard deviations of noise, function and slopes, and of the log
            lengthscales.
        x: Training inputs.
        y: Training targets.
    """

    def __init__(
        self, theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"], y: Float[Tensor, " n"]
    ) -> None:
        self.theta, self.x, self.y = theta, x, y
        self.noise = float((2 * theta[:, 0]).exp().mean())
        factor = torch.linalg.cholesky(_covariance(theta, x))
        self.inverse_factor = torch.linalg.solve_triangular(
            factor, torch.eye(len(x)).to(x), upper=False
        )
        self.solved = self.inverse_factor.mT @ (self.inverse_factor @ y).unsqueeze(-1)

    @classmethod
    @torch.no_grad()
    def fit(cls, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> MarginalGP:
        """Sample the hyperparameters; each draw costs as much as one GP."""
        rows, targets = torch.from_numpy(x), torch.from_numpy(y)
        median, deviation = _prior(x.shape[1])
        z = _sample(lambda z: _evidence(median + deviation * z, rows, targets), len(median))
        return cls((median + deviation * z)[:: DRAWS // PREDICTED_DRAWS], rows, targets)

    @torch.no_grad()
    def predict(
        self, x: Float[np.ndarray, "m d"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Means, and variances without noise, of f; variances include that between samples."""
        if len(x) > BLOCK_ROWS:
            blocks = (self.predict(x[i : i + BLOCK_ROWS]) for i in range(0, len(x), BLOCK_ROWS))
            means, variances = zip(*blocks)
            return np.concatenate(means), np.concatenate(variances)
        kernel, query = _kernel(self.theta, self.x.shape[1]), torch.from_numpy(x)
        cross = kernel(self.x, query).to_dense()
        mean = (cross.mT @ self.solved).squeeze(-1)
        explained = (self.inverse_factor @ cross).square().sum(1)
        variance = (kernel(query, diag=True) - explained).clamp(min=0)
        average = mean.mean(0)
        return average.numpy(), (variance + (mean - average).square()).mean(0).numpy()

    def tensors(self) -> dict[str, Tensor]:
        """Tensors for `from_tensors`."""
        return {"theta": self.theta, "x": self.x, "y": self.y}

    @classmethod
    @torch.no_grad()
    def from_tensors(cls, tensors: dict[str, Tensor]) -> MarginalGP:
        """Restore a model from `tensors`."""
        return cls(**{name: value.cpu() for name, value in tensors.items()})


def _prior(inputs: int) -> tuple[Float[Tensor, " p"], Float[Tensor, " p"]]:
    """Prior means and standard deviations of theta."""
    width = (WIDTH[0] * inputs**0.5, WIDTH[1])
    priors = [NOISE, SIGNAL, SLOPE, *[width] * (inputs if inputs <= ARD else 1)]
    median, deviation = torch.tensor(priors, dtype=torch.float64).T
    return median.log(), deviation


def _kernel(theta: Float[Tensor, "s p"], inputs: int) -> Kernel:
    shape = torch.Size([len(theta)])
    matern = MaternKernel(2.5, ard_num_dims=theta.shape[1] - 3, batch_shape=shape)
    scaled = ScaleKernel(matern, batch_shape=shape)
    line = LinearKernel(batch_shape=shape)
    kernel = (scaled + line + ConstantKernel(batch_shape=shape)).to(theta)
    matern.lengthscale = theta[:, None, 3:].exp()
    scaled.outputscale = (2 * theta[:, 1]).exp()
    line.variance = (2 * theta[:, 2]).exp()[:, None, None] / inputs
    kernel.kernels[2].constant = theta.new_ones(len(theta), 1)
    return kernel


def _covariance(theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"]) -> Float[Tensor, "s n n"]:
    """Covariances of noisy targets, one per sample of theta."""
    diagonal = ((2 * theta[:, 0]).exp() + JITTER)[:, None].expand(-1, len(x))
    return _kernel(theta, x.shape[1])(x).to_dense() + torch.diag_embed(diagonal)


def _evidence(
    theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"], y: Float[Tensor, " n"]
) -> Float[Tensor, " s"]:
    """Log evidence of each theta without its constant; -1e10 if the factorization fails."""
    lower, failed = torch.linalg.cholesky_ex(_covariance(theta, x))
    whitened = torch.linalg.solve_triangular(
        lower, y.expand(len(theta), -1).unsqueeze(-1), upper=False
    )
    half_log_det = lower.diagonal(dim1=1, dim2=2).log().sum(1)
    value = -0.5 * whitened.square().sum((1, 2)) - half_log_det
    return torch.where((failed == 0) & value.isfinite(), value, -1e10)


def _sample(
    evidence: Callable[[Float[Tensor, "s p"]], Float[Tensor, " s"]], size: int
) -> Float[Tensor, "s p"]:
    """Sample the posterior of standard normal variables, with a fixed seed."""
    sobol = torch.quasirandom.SobolEngine(size, scramble=True, seed=0)
    z = torch.special.ndtri(sobol.draw(DRAWS, dtype=torch.float64).clamp(1e-9, 1 - 1e-9))
    generator = torch.Generator().manual_seed(0)
    log_likelihood = evidence(z)
    power, step = 0.0, 2 / size**0.5
    while power < 1:
        previous, power = power, _next_power(log_likelihood, power)
        weight = torch.softmax((power - previous) * log_likelihood, 0)
        positions = (torch.arange(DRAWS) + torch.rand(1, generator=generator)).to(z) / DRAWS
        resampled = torch.searchsorted(weight.cumsum(0), positions).clamp(max=DRAWS - 1)
        z, log_likelihood = z[resampled], log_likelihood[resampled]
        covariance = (torch.cov(z.T).reshape(size, size) + torch.diag(z.var(0))) / 2
        lower = torch.linalg.cholesky(covariance + 1e-6 * torch.eye(size).to(z))
        for _ in range(MOVES if power < 1 else 2 * MOVES):
            noise = torch.randn(DRAWS, size, generator=generator, dtype=z.dtype)
            proposal = z + step * noise @ lower.T
            proposed = evidence(proposal)
            log_ratio = (
                power * (proposed - log_likelihood) - (proposal.square() - z.square()).sum(1) / 2
            )
            accepted = torch.rand(DRAWS, generator=generator, dtype=z.dtype).log() < log_ratio
            z, log_likelihood = (
                torch.where(accepted[:, None], proposal, z),
                torch.where(accepted, proposed, log_likelihood),
            )
            step = min(max(step * math.exp(accepted.double().mean() - ACCEPTED), 0.05), 2.0)
    return z


def _next_power(log_likelihood: Float[Tensor, " s"], power: float) -> float:
    """Next inverse temperature: the largest with an effective sample size of half the draws."""

    def sample_size(candidate: float) -> float:
        return float(1 / torch.softmax((candidate - power) * log_likelihood, 0).square().sum())

    low, high = power, 1.0
    if sample_size(high) >= len(log_likelihood) / 2:
        return high
    for _ in range(30):
        mid = (low + high) / 2
        low, high = (mid, high) if sample_size(mid) >= len(log_likelihood) / 2 else (low, mid)
    return low
