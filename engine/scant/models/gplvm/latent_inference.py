"""Where new rows lie in a trained latent space: q(x*) for each, q(U) held as it is.

The bound of a row (Titsias and Lawrence 2010, section 3.3, with q(U) fixed),

    E_q(x*)q(U)[ln N(y* | f(x*), noise)] - KL(q(x*) || N(0, I)),

needs psi2 of the row only against the matrix sum_d w_d w_d' - spread over its observed outputs.
All rows climb it side by side, each by Levenberg-Marquardt steps of its own, and leave when they
gain no more: some ten evaluations, where Adam took a hundred.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.models.gplvm.collapsed_bound import Posterior

NUMBERS = 1 << 22  # rows x restarts x inducing pairs placed at once
GAIN = 1e-3  # nats: a step that gains less is a row's last
DAMPING, MOST_DAMPING = 0.1, 1e4  # of the first step, and where a row is given up


class LatentPosterior(NamedTuple):
    """q(x*) of new rows, and the bound on ln p(y*) of each, in nats of y as given."""

    mean: Float[Tensor, "k q"]
    std: Float[Tensor, "k q"]
    bound: Float[Tensor, " k"]


class Gradients(NamedTuple):
    """The bound of rows at their q(x*), and what the next step needs."""

    value: Float[Tensor, " k"]
    mean: Float[Tensor, "k q"]  # gradient
    variance: Float[Tensor, "k q"]  # gradient
    curvature: Float[Tensor, "k q q"]  # Gauss and Newton's, of minus the bound along the mean

    def at(self, rows: Tensor) -> Gradients:
        """Of some rows."""
        return Gradients(*(part[rows] for part in self))


def divergence(mean: Float[Tensor, "n q"], variance: Float[Tensor, "n q"]) -> Float[Tensor, " n"]:
    """KL(q(x) || N(0, I)) of each row."""
    return 0.5 * (mean.square() + variance - 1 - variance.log()).sum(1)


@runtime_checkable
class RowObjective(Protocol):
    """What `maximize` asks of a bound."""

    def fixed(self, y: Tensor) -> tuple[Tensor, Tensor]: ...

    def slopes(self, fixed: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> Gradients: ...


class RowBound:
    """The bound of rows of one class that were observed in the same outputs.

    Args:
        model: A `BGPLVM` or one of its kind.
        q_u: Its q(U).
        label: The class.
        seen: Which outputs were observed.
    """

    def __init__(self, model: Any, q_u: Posterior, label: int, seen: Bool[Tensor, " d"]) -> None:
        W = q_u.weights[:, seen]
        shares = torch.bincount(model.targets.pattern[seen], minlength=len(q_u.spread)).to(W)
        self.kernel = copy.deepcopy(model.kernel).requires_grad_(False)
        self.label, self.seen = label, seen
        self.weights, self.outer = W, W @ W.T
        self.matrix = self.outer - torch.einsum("p,pij->ij", shares, q_u.spread)
        self.Z = model.inducing.detach(), model.inducing_label
        self.noise, self.psi0 = model.noise.detach(), self.kernel.psi0()
        log_variance = (2 * math.pi * self.noise).log() + 2 * model.targets.scale.log()
        self.constant = W.shape[1] * (log_variance + self.psi0 / self.noise)

    def fixed(self, y: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, "k m"]]:
        """What the bound needs of outputs on the model's scale: their squares, and y W'."""
        return y[:, self.seen].square().sum(1), y[:, self.seen] @ self.weights.T

    def __call__(
        self,
        fixed: tuple[Tensor, Tensor],
        mean: Float[Tensor, "k q"],
        variance: Float[Tensor, "k q"],
    ) -> Float[Tensor, " k"]:
        """In nats of y as given, at q(x*) with these moments."""
        args = (mean, variance, self._labels(mean), *self.Z)
        along = (self.kernel.psi1(*args) * fixed[1]).sum(1)
        error = fixed[0] - 2 * along + self.kernel.psi2_dot(*args, self.matrix)
        return -0.5 * (self.constant + error / self.noise) - divergence(mean, variance)

    def slopes(self, fixed: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> Gradients:
        """The same, with gradients and curvature."""
        leaves = [t.detach().requires_grad_() for t in (mean, variance)]
        with torch.enable_grad():
            value = self(fixed, *leaves)
            along_mean, along_variance = torch.autograd.grad(value.sum(), leaves)
        J = self.kernel.psi1_slope(mean, variance, self._labels(mean), *self.Z)
        curvature = (J @ self.outer) @ J.mT / self.noise + torch.eye(mean.shape[1]).to(mean)
        return Gradients(value.detach(), along_mean, along_variance, curvature)

    def _labels(self, mean: Tensor) -> Int[Tensor, " k"]:
        return torch.full((len(mean),), self.label, device=mean.device)


def place(model: Any, Y: Tensor, label: int, restarts: int, steps: int) -> LatentPosterior:
    """The best q(x*) of each row under a class, found from its nearest rows of that class.

    Args:
        model: A `BGPLVM` or one of its kind.
        Y: Outputs as given, NaN where missing.
        label: The class, whose private space is used.
        restarts: How many of the nearest rows to start from.
        steps: At most.
    """
    q_u = model.posterior()
    y, seen = model.targets.place(Y)
    masks, which = torch.unique(seen, dim=0, return_inverse=True)
    mean, std = y.new_zeros(2, len(y), model.inducing.shape[1])
    found = LatentPosterior(mean, std, y.new_zeros(len(y)))
    pairs = len(model.inducing) * (len(model.inducing) + 1) // 2
    for p, mask in enumerate(masks):
        rows = (which == p).nonzero().squeeze(1)
        for part in rows.split(max(1, NUMBERS // (pairs * restarts))):
            placed = _place_alike(model, q_u, y[part], mask, label, restarts, steps)
            for whole, values in zip(found, placed):
                whole[part] = values
    return found


def _place_alike(
    model: Any, q_u: Posterior, y: Tensor, seen: Tensor, label: int, restarts: int, steps: int
) -> LatentPosterior:
    """`place` for rows that were observed in the same outputs."""
    own = (model.label == label).nonzero().squeeze(1)
    restarts = min(restarts, len(own))
    distance = torch.cdist(y @ model.targets.rotation, model.targets.y[own])
    nearest = own[distance.topk(restarts, largest=False).indices.flatten()]
    mean, variance = model.mean[nearest].detach(), (2 * model.log_std[nearest].detach()).exp()
    bound = RowBound(model, q_u, label, seen)
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
    """Moments of q(x*) that maximize the bound of each row, near where they start, and its value.

    A step that would lead down is not taken, and the next one from there is shorter.

    Args:
        bound: Of these rows.
        y: Outputs on the model's scale.
        mean: To start from.
        variance: To start from.
        steps: At most.
    """
    fixed = bound.fixed(y)
    mean, variance = mean.clone(), variance.clone()
    here = bound.slopes(fixed, mean, variance)
    value, rows = here.value.clone(), torch.arange(len(y), device=y.device)
    damping = torch.full_like(value, DAMPING)
    for _ in range(steps):
        there = _step(here, mean[rows], variance[rows], damping)
        new = bound.slopes((fixed[0][rows], fixed[1][rows]), *there)
        gain = new.value - here.value
        better = gain > 0  # not where it is not finite
        for whole, part in zip((mean, variance, value), (*there, new.value)):
            whole[rows[better]] = part[better]
        damping = torch.where(better, damping / 5, damping * 6)
        on = torch.where(better, gain > GAIN, damping < MOST_DAMPING)
        if not bool(on.any()):
            break
        for whole, part in zip(here, new):
            whole[better] = part[better]
        here = here.at(on)
        rows, damping = rows[on], damping[on]
    return mean, variance, value


def _step(
    here: Gradients, mean: Tensor, variance: Tensor, damping: Tensor
) -> tuple[Float[Tensor, "k q"], Float[Tensor, "k q"]]:
    """Levenberg and Marquardt's step of the mean, and the variance towards its fixed point.

    The slope along a variance is half the expected second derivative (Price's theorem): at the
    optimum 1 / variance is that of minus the bound, and tells how curved it really is.
    """
    diagonal = here.curvature.diagonal(dim1=1, dim2=2)
    ratio = (1 - 2 * variance * here.variance).clamp(math.exp(-1), math.exp(1))
    more = (ratio / variance - diagonal).clamp(min=0) + damping.unsqueeze(1) * diagonal
    move = torch.linalg.solve(here.curvature + torch.diag_embed(more), here.mean)
    return mean + move, variance * ratio ** (-1 / (1 + damping.unsqueeze(1)))
