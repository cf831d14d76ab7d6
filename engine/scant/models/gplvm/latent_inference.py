"""Inference of latent positions of new rows: q(x*) of each row, with q(U) fixed.

The bound of a row (Titsias and Lawrence 2010, section 3.3, with q(U) fixed),

    E_q(x*)q(U)[ln N(y* | f(x*), noise)] - KL(q(x*) || N(0, I)),

needs psi2 of the row only in a product with the matrix sum_d (w_d w_d' - spread) over its observed
outputs. All rows are optimized in parallel by Levenberg-Marquardt steps and stop when converged,
after about ten evaluations; Adam took a hundred.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.models.gplvm.collapsed_bound import Posterior

NUMBERS = 1 << 22  # rows x restarts x pairs of inducing inputs per block
GAIN = 1e-3  # nats; a row stops after a smaller gain
DAMPING, MAX_DAMPING = 0.1, 1e4  # of the first step, and beyond which a row stops


class LatentPosterior(NamedTuple):
    """q(x*) of new rows, and the bound on ln p(y*) in nats, y in its own unit."""

    mean: Float[Tensor, "k q"]
    std: Float[Tensor, "k q"]
    bound: Float[Tensor, " k"]


class Gradients(NamedTuple):
    """Value, gradients and curvature of the rows' bounds at their q(x*)."""

    value: Float[Tensor, " k"]
    mean: Float[Tensor, "k q"]  # gradient
    variance: Float[Tensor, "k q"]  # gradient
    curvature: Float[Tensor, "k q q"]  # Gauss-Newton Hessian of the negative bound in the mean

    def at(self, rows: Tensor) -> Gradients:
        """Select rows."""
        return Gradients(*(part[rows] for part in self))


def divergence(mean: Float[Tensor, "n q"], variance: Float[Tensor, "n q"]) -> Float[Tensor, " n"]:
    """KL(q(x) || N(0, I)) of each row."""
    return 0.5 * (mean.square() + variance - 1 - variance.log()).sum(1)


@runtime_checkable
class RowObjective(Protocol):
    """Objective of `maximize`: terms that do not change (`fixed`), and value and gradients."""

    def fixed(self, y: Tensor) -> tuple[Tensor, Tensor]: ...

    def slopes(self, fixed: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> Gradients: ...


class RowBound:
    """Bound of rows of one class with the same observed outputs.

    Args:
        model: A `BGPLVM` or subclass.
        q_u: q(U) of the model.
        label: Class of the rows.
        observed: Mask of the observed outputs.
    """

    def __init__(
        self, model: Any, q_u: Posterior, label: int, observed: Bool[Tensor, " d"]
    ) -> None:
        W = q_u.weights[:, observed]
        shares = torch.bincount(model.targets.pattern[observed], minlength=len(q_u.spread)).to(W)
        self.kernel = copy.deepcopy(model.kernel).requires_grad_(False)
        self.label, self.observed = label, observed
        self.weights, self.outer = W, W @ W.T
        self.matrix = self.outer - torch.einsum("p,pij->ij", shares, q_u.spread)
        self.Z = model.inducing.detach(), model.inducing_label
        self.noise, self.psi0 = model.noise.detach(), self.kernel.psi0()
        log_variance = (2 * math.pi * self.noise).log() + 2 * model.targets.scale.log()
        self.constant = W.shape[1] * (log_variance + self.psi0 / self.noise)

    def fixed(self, y: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, "k m"]]:
        """Squared norm of the observed outputs y, and y W'."""
        return y[:, self.observed].square().sum(1), y[:, self.observed] @ self.weights.T

    def __call__(
        self,
        fixed: tuple[Tensor, Tensor],
        mean: Float[Tensor, "k q"],
        variance: Float[Tensor, "k q"],
    ) -> Float[Tensor, " k"]:
        """Bound of each row in nats, y in its own unit, at q(x*) with these moments."""
        args = (mean, variance, self._labels(mean), *self.Z)
        cross = (self.kernel.psi1(*args) * fixed[1]).sum(1)
        error = fixed[0] - 2 * cross + self.kernel.psi2_dot(*args, self.matrix)
        return -0.5 * (self.constant + error / self.noise) - divergence(mean, variance)

    def slopes(self, fixed: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> Gradients:
        """Bound of each row with gradients and curvature."""
        leaves = [t.detach().requires_grad_() for t in (mean, variance)]
        with torch.enable_grad():
            value = self(fixed, *leaves)
            d_mean, d_variance = torch.autograd.grad(value.sum(), leaves)
        J = self.kernel.psi1_slope(mean, variance, self._labels(mean), *self.Z)
        curvature = (J @ self.outer) @ J.mT / self.noise + torch.eye(mean.shape[1]).to(mean)
        return Gradients(value.detach(), d_mean, d_variance, curvature)

    def _labels(self, mean: Tensor) -> Int[Tensor, " k"]:
        return torch.full((len(mean),), self.label, device=mean.device)


def infer_latent(model: Any, Y: Tensor, label: int, restarts: int, steps: int) -> LatentPosterior:
    """Optimal q(x*) of each row under a class, starting from its nearest rows of that class.

    Args:
        model: A `BGPLVM` or subclass.
        Y: Outputs in their own units, NaN where missing.
        label: Class, whose private space is used.
        restarts: Number of nearest training rows to start from.
        steps: Maximum number of steps.
    """
    q_u = model.posterior()
    y, observed = model.targets.standardize(Y)
    masks, pattern = torch.unique(observed, dim=0, return_inverse=True)
    mean, std = y.new_zeros(2, len(y), model.inducing.shape[1])
    result = LatentPosterior(mean, std, y.new_zeros(len(y)))
    pairs = len(model.inducing) * (len(model.inducing) + 1) // 2
    for p, mask in enumerate(masks):
        rows = (pattern == p).nonzero().squeeze(1)
        for part in rows.split(max(1, NUMBERS // (pairs * restarts))):
            inferred = _infer_pattern(model, q_u, y[part], mask, label, restarts, steps)
            for target, values in zip(result, inferred):
                target[part] = values
    return result


def _infer_pattern(
    model: Any, q_u: Posterior, y: Tensor, observed: Tensor, label: int, restarts: int, steps: int
) -> LatentPosterior:
    """`infer_latent` for rows with the same observed outputs."""
    same_class = (model.label == label).nonzero().squeeze(1)
    restarts = min(restarts, len(same_class))
    distance = torch.cdist(y @ model.targets.rotation, model.targets.y[same_class])
    nearest = same_class[distance.topk(restarts, largest=False).indices.flatten()]
    mean, variance = model.mean[nearest].detach(), (2 * model.log_std[nearest].detach()).exp()
    bound = RowBound(model, q_u, label, observed)
    mean, variance, value = maximize(bound, y.repeat_interleave(restarts, 0), mean, variance, steps)
    best = value.view(-1, restarts).argmax(1)
    pick = torch.arange(len(y), device=y.device) * restarts + best
    return LatentPosterior(mean[pick], variance[pick].sqrt(), value[pick])


def maximize(
    bound: RowObjective,
    y: Float[Tensor, "k d"],
    mean: Float[Tensor, "k q"],
    variance: Float[Tensor, "k q"],
    steps: int,
) -> tuple[Float[Tensor, "k q"], Float[Tensor, "k q"], Float[Tensor, " k"]]:
    """Maximize the bound of each row over the moments of q(x*) by Levenberg-Marquardt.

    A step that lowers the bound is rejected, and the next one is damped more.

    Args:
        bound: Objective of these rows.
        y: Outputs on the model's scale.
        mean: Initial means.
        variance: Initial variances.
        steps: Maximum number of steps.

    Returns:
        Mean and variance of q(x*), and the value of the bound.
    """
    fixed = bound.fixed(y)
    mean, variance = mean.clone(), variance.clone()
    current = bound.slopes(fixed, mean, variance)
    value, rows = current.value.clone(), torch.arange(len(y), device=y.device)
    damping = torch.full_like(value, DAMPING)
    for _ in range(steps):
        proposal = _step(current, mean[rows], variance[rows], damping)
        new = bound.slopes((fixed[0][rows], fixed[1][rows]), *proposal)
        gain = new.value - current.value
        better = gain > 0  # False for NaN
        for target, part in zip((mean, variance, value), (*proposal, new.value)):
            target[rows[better]] = part[better]
        damping = torch.where(better, damping / 5, damping * 6)
        active = torch.where(better, gain > GAIN, damping < MAX_DAMPING)
        if not bool(active.any()):
            break
        for target, part in zip(current, new):
            target[better] = part[better]
        current = current.at(active)
        rows, damping = rows[active], damping[active]
    return mean, variance, value


def _step(
    current: Gradients, mean: Tensor, variance: Tensor, damping: Tensor
) -> tuple[Float[Tensor, "k q"], Float[Tensor, "k q"]]:
    """Levenberg-Marquardt step of the mean, and a damped fixed-point step of the variance.

    By Price's theorem the gradient in a variance is half the expected second derivative. At the
    optimum 1 / variance is the curvature of the negative bound, so it bounds the damping below.
    """
    diagonal = current.curvature.diagonal(dim1=1, dim2=2)
    ratio = (1 - 2 * variance * current.variance).clamp(math.exp(-1), math.exp(1))
    damping_matrix = (ratio / variance - diagonal).clamp(min=0) + damping.unsqueeze(1) * diagonal
    step = torch.linalg.solve(current.curvature + torch.diag_embed(damping_matrix), current.mean)
    return mean + step, variance * ratio ** (-1 / (1 + damping.unsqueeze(1)))
