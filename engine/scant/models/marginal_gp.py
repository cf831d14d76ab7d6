"""GP regression averaged over its hyperparameters, for tables of few rows.

Of a few dozen rows many hyperparameters are nearly as probable as the best, and whoever takes the
best alone is too sure. Here the posterior of the hyperparameters is sampled by sequential Monte
Carlo (Del Moral, Doucet and Jasra 2006, Sequential Monte Carlo samplers): draws of the prior, moved
by Metropolis steps while the likelihood is let in little by little. The kernel is a constant, a
line and a Matern 5/2 with a lengthscale of each input; lengthscales are expected to grow with the
root of the number of inputs (Hvarfner, Hellsten and Nardi 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, MaternKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

ARD = 20  # inputs up to which each has its own lengthscale
DRAWS = 128  # of the hyperparameters while they are moved
KEPT = 32  # of these, for predictions
MOVES = 3  # Metropolis steps at each temperature; twice as many at the last
ACCEPTED = 0.3  # share of moves that the size of steps aims at
# Medians and deviations of logarithms of deviations: of the noise, of the function and of the
# slopes, in deviations of the target, and of lengthscales, in roots of the number of inputs.
NOISE, SIGNAL, SLOPE, WIDTH = (0.5, 0.7), (0.7, 0.7), (0.5, 1.0), (1.5, 1.0)
JITTER = 1e-8
AT_ONCE = 2000  # rows asked


class MarginalGP:
    """What it knows after a few rows; inputs and targets have unit deviation.

    Args:
        theta: Samples of the logarithms of the deviations of noise, function and slopes, and of
            the lengthscales.
        x: Rows.
        y: Their targets.
    """

    def __init__(
        self, theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"], y: Float[Tensor, " n"]
    ) -> None:
        self.theta, self.x, self.y = theta, x, y
        self.noise = float((2 * theta[:, 0]).exp().mean())
        factor = torch.linalg.cholesky(_covariance(theta, x))
        self.whitens = torch.linalg.solve_triangular(factor, torch.eye(len(x)).to(x), upper=False)
        self.solved = self.whitens.mT @ (self.whitens @ y).unsqueeze(-1)

    @classmethod
    @torch.no_grad()
    def of(cls, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> MarginalGP:
        """Of some rows: each draw costs as much as a GP of them."""
        rows, targets = torch.from_numpy(x), torch.from_numpy(y)
        median, deviation = _prior(x.shape[1])
        z = _sampled(lambda z: _evidence(median + deviation * z, rows, targets), len(median))
        return cls((median + deviation * z)[:: DRAWS // KEPT], rows, targets)

    @torch.no_grad()
    def ask(
        self, x: Float[np.ndarray, "m d"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Means of rows asked, and variances without noise; the samples' disagreement is in it."""
        if len(x) > AT_ONCE:
            blocks = (self.ask(x[i : i + AT_ONCE]) for i in range(0, len(x), AT_ONCE))
            means, variances = zip(*blocks)
            return np.concatenate(means), np.concatenate(variances)
        kernel, asked = _kernel(self.theta, self.x.shape[1]), torch.from_numpy(x)
        across = kernel(self.x, asked).to_dense()
        mean = (across.mT @ self.solved).squeeze(-1)
        known = (self.whitens @ across).square().sum(1)
        variance = (kernel(asked, diag=True) - known).clamp(min=0)
        middle = mean.mean(0)
        return middle.numpy(), (variance + (mean - middle).square()).mean(0).numpy()

    def tensors(self) -> dict[str, Tensor]:
        """Everything that `read` needs."""
        return {"theta": self.theta, "x": self.x, "y": self.y}

    @classmethod
    @torch.no_grad()
    def read(cls, tensors: dict[str, Tensor]) -> MarginalGP:
        """The inverse of `tensors`."""
        return cls(**{name: value.cpu() for name, value in tensors.items()})


def _prior(inputs: int) -> tuple[Float[Tensor, " p"], Float[Tensor, " p"]]:
    """Medians and deviations of the logarithms that are sampled."""
    width = (WIDTH[0] * inputs**0.5, WIDTH[1])
    each = [NOISE, SIGNAL, SLOPE, *[width] * (inputs if inputs <= ARD else 1)]
    median, deviation = torch.tensor(each, dtype=torch.float64).T
    return median.log(), deviation


def _kernel(theta: Float[Tensor, "s p"], inputs: int) -> Kernel:
    shape = torch.Size([len(theta)])
    wide = MaternKernel(2.5, ard_num_dims=theta.shape[1] - 3, batch_shape=shape)
    matern = ScaleKernel(wide, batch_shape=shape)
    line = LinearKernel(batch_shape=shape)
    kernel = (matern + line + ConstantKernel(batch_shape=shape)).to(theta)
    wide.lengthscale = theta[:, None, 3:].exp()
    matern.outputscale = (2 * theta[:, 1]).exp()
    line.variance = (2 * theta[:, 2]).exp()[:, None, None] / inputs
    kernel.kernels[2].constant = theta.new_ones(len(theta), 1)
    return kernel


def _covariance(theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"]) -> Float[Tensor, "s n n"]:
    """Of noisy targets."""
    diagonal = ((2 * theta[:, 0]).exp() + JITTER)[:, None].expand(-1, len(x))
    return _kernel(theta, x.shape[1])(x).to_dense() + torch.diag_embed(diagonal)


def _evidence(
    theta: Float[Tensor, "s p"], x: Float[Tensor, "n d"], y: Float[Tensor, " n"]
) -> Float[Tensor, " s"]:
    """Log probability of the targets, but for a constant; very low where it cannot be had."""
    factor, failed = torch.linalg.cholesky_ex(_covariance(theta, x))
    white = torch.linalg.solve_triangular(
        factor, y.expand(len(theta), -1).unsqueeze(-1), upper=False
    )
    log_root = factor.diagonal(dim1=1, dim2=2).log().sum(1)
    found = -0.5 * white.square().sum((1, 2)) - log_root
    return torch.where((failed == 0) & found.isfinite(), found, -1e10)


def _sampled(
    evidence: Callable[[Float[Tensor, "s p"]], Float[Tensor, " s"]], size: int
) -> Float[Tensor, "s p"]:
    """Samples of standard normal variables after an evidence, the same at every call."""
    sobol = torch.quasirandom.SobolEngine(size, scramble=True, seed=0)
    z = torch.special.ndtri(sobol.draw(DRAWS, dtype=torch.float64).clamp(1e-9, 1 - 1e-9))
    generator = torch.Generator().manual_seed(0)
    likely = evidence(z)
    power, step = 0.0, 2 / size**0.5
    while power < 1:
        before, power = power, _next_power(likely, power)
        weight = torch.softmax((power - before) * likely, 0)
        even = (torch.arange(DRAWS) + torch.rand(1, generator=generator)).to(z) / DRAWS
        chosen = torch.searchsorted(weight.cumsum(0), even).clamp(max=DRAWS - 1)
        z, likely = z[chosen], likely[chosen]
        spread = (torch.cov(z.T).reshape(size, size) + torch.diag(z.var(0))) / 2
        root = torch.linalg.cholesky(spread + 1e-6 * torch.eye(size).to(z))
        for _ in range(MOVES if power < 1 else 2 * MOVES):
            noise = torch.randn(DRAWS, size, generator=generator, dtype=z.dtype)
            other = z + step * noise @ root.T
            there = evidence(other)
            gain = power * (there - likely) - (other.square() - z.square()).sum(1) / 2
            moved = torch.rand(DRAWS, generator=generator, dtype=z.dtype).log() < gain
            z, likely = torch.where(moved[:, None], other, z), torch.where(moved, there, likely)
            step = min(max(step * math.exp(moved.double().mean() - ACCEPTED), 0.05), 2.0)
    return z


def _next_power(likely: Float[Tensor, " s"], power: float) -> float:
    """Of the likelihood: the greatest under which half of the draws still count."""

    def counting(to: float) -> float:
        return float(1 / torch.softmax((to - power) * likely, 0).square().sum())

    low, high = power, 1.0
    if counting(high) >= len(likely) / 2:
        return high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if counting(middle) >= len(likely) / 2 else (low, middle)
    return low
