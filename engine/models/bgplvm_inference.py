"""Where new rows lie in a trained latent space: q(x*) for each, q(U) held as it is.

The bound of a row (Titsias and Lawrence 2010, section 3.3, with q(U) fixed),

    E_q(x*)q(U)[ln N(y* | f(x*), noise)] - KL(q(x*) || N(0, I)),

needs psi2 of the row only against the matrix sum_d w_d w_d' - spread over its observed outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.models.bgplvm_bound import Posterior

RATE = 0.05  # of Adam, falling to nothing over the steps
NUMBERS = 1 << 22  # rows x restarts x inducing pairs placed at once


class Placed(NamedTuple):
    """q(x*) of new rows, and the bound on ln p(y*) of each, in nats of y as given."""

    mean: Float[Tensor, "k q"]
    std: Float[Tensor, "k q"]
    bound: Float[Tensor, " k"]


def divergence(mean: Float[Tensor, "n q"], variance: Float[Tensor, "n q"]) -> Float[Tensor, " n"]:
    """KL(q(x) || N(0, I)) of each row."""
    return 0.5 * (mean.square() + variance - 1 - variance.log()).sum(1)


def row_bound(
    model: Any, q_u: Posterior, label: Int[Tensor, " k"], seen: Bool[Tensor, " d"]
) -> Callable[[Tensor, Tensor, Tensor], Float[Tensor, " k"]]:
    """The bound as a function of outputs on the model's scale, mean and variance of q(x*).

    For rows that were observed in the same outputs.

    Args:
        model: A `BGPLVM` or one of its kind.
        q_u: Its q(U).
        label: Class of each row.
        seen: Which outputs were observed.
    """
    W = q_u.weights[:, seen]
    shares = torch.bincount(model.targets.pattern[seen], minlength=len(q_u.spread)).to(W)
    matrix = W @ W.T - torch.einsum("p,pij->ij", shares, q_u.spread)
    Z = (model.inducing, model.inducing_label)
    noise, psi0, n_seen = model.noise, model.kernel.psi0(), W.shape[1]
    constant = n_seen * ((2 * math.pi * noise).log() + 2 * model.targets.scale.log())

    def bound(y: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        along = (model.kernel.psi1(mean, variance, label, *Z) * (y[:, seen] @ W.T)).sum(1)
        second = n_seen * psi0 + model.kernel.psi2_dot(mean, variance, label, *Z, matrix)
        error = y[:, seen].square().sum(1) - 2 * along + second
        return -0.5 * (constant + error / noise) - divergence(mean, variance)

    return bound


def place(model: Any, Y: Tensor, label: int, restarts: int, steps: int) -> Placed:
    """The best q(x*) of each row under a class, found from its nearest rows of that class.

    Args:
        model: A `BGPLVM` or one of its kind.
        Y: Outputs as given, NaN where missing.
        label: The class, whose private space is used.
        restarts: How many of the nearest rows to start from.
        steps: Of Adam.
    """
    q_u = model.posterior()
    y, seen = model.targets.place(Y)
    masks, which = torch.unique(seen, dim=0, return_inverse=True)
    mean, std = y.new_zeros(2, len(y), model.inducing.shape[1])
    found = Placed(mean, std, y.new_zeros(len(y)))
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
) -> Placed:
    """`place` for rows that were observed in the same outputs."""
    own = (model.label == label).nonzero().squeeze(1)
    restarts = min(restarts, len(own))
    distance = torch.cdist(y @ model.targets.rotation, model.targets.y[own])
    nearest = own[distance.topk(restarts, largest=False).indices.flatten()]
    mean = model.mean[nearest].detach().clone().requires_grad_()
    log_std = model.log_std[nearest].detach().clone().requires_grad_()
    wide = y.repeat_interleave(restarts, 0)
    bound = row_bound(model, q_u, torch.full((len(wide),), label).to(own), seen)
    optimiser = torch.optim.Adam([mean, log_std], lr=RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
    for _ in range(steps):
        optimiser.zero_grad()
        with torch.enable_grad():
            loss = -bound(wide, mean, (2 * log_std).exp()).sum()
        mean.grad, log_std.grad = torch.autograd.grad(loss, [mean, log_std])
        optimiser.step()
        falling.step()
    with torch.no_grad():
        value, best = bound(wide, mean, (2 * log_std).exp()).view(-1, restarts).max(1)
    pick = torch.arange(len(y), device=y.device) * restarts + best
    return Placed(mean.detach()[pick], log_std.detach()[pick].exp(), value)
