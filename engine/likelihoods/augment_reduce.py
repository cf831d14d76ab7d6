"""The softmax likelihood by augment and reduce (Ruiz et al. 2018; Ma 2023, section 3.2, app. B).

Gumbel noise added to each function turns the softmax into an argmax, whose bound is closed:

    E[log softmax_y(f)] >= -log(1 + P),   P = sum over c != y of E[exp(f_c - f_y)]     (3.23-3.24)

and P can be estimated by a few of its terms. All is kept as logarithms: nothing overflows.

The publication takes q(f) for a product over classes, which makes a term of P
exp(m_c - m_y + v_c / 2 + v_y / 2). Functions that mix the same latent ones, f_c = a_c'u, are not
independent, and the true expectation is as closed and as cheap,
exp(m_c - m_y + sum_l (a_cl - a_yl)^2 v_l / 2): what the functions have in common cancels.
Covariances "kept" is the true bound; "dropped" is the publication's, a bound under the product.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

Covariance = Literal["kept", "dropped"]


def exponents(
    mixing: Float[Tensor, "g c l"],
    true: Float[Tensor, "g b l"],
    mean: Float[Tensor, "g b l"],
    variance: Float[Tensor, "g b l"],
    covariance: Covariance = "kept",
) -> Float[Tensor, "g b c"]:
    """log E[exp(f_c - f_y)] of groups of rows that are compared with the same classes.

    Args:
        mixing: a_c of each group's classes.
        true: a_y of each row's own class.
        mean, variance: Of the latent functions at each row.
        covariance: Of f_c and f_y: kept or dropped.
    """
    own = true * variance
    linear = mean - own if covariance == "kept" else mean
    offset = (true * (0.5 * own - mean)).sum(-1, keepdim=True)
    weights = torch.cat([linear, 0.5 * variance], -1)
    return weights @ torch.cat([mixing, mixing.square()], -1).mT + offset  # terms of 3.24


def exponents_of_drawn(
    mixing: Float[Tensor, "b k l"],
    mean: Float[Tensor, "b l"],
    variance: Float[Tensor, "b l"],
    covariance: Covariance = "kept",
) -> Float[Tensor, "b k-1"]:
    """log E[exp(f_c - f_y)] of rows that have each its own few classes to be compared with.

    Args:
        mixing: a_y of each row's own class, then a_c of those that were drawn for it.
        mean, variance: Of the latent functions at each row.
        covariance: Of f_c and f_y: kept or dropped.
    """
    own, others = mixing[:, :1], mixing[:, 1:]
    difference = others - own
    of_variance = difference.square() if covariance == "kept" else others.square() + own.square()
    mean, variance = mean.unsqueeze(1), variance.unsqueeze(1)
    return (difference * mean + 0.5 * of_variance * variance).sum(-1)  # terms of 3.24


def bound(
    exponents: Float[Tensor, "*n c"], log_factor: Float[Tensor, "*n"] | None = None
) -> Float[Tensor, "*n"]:
    """-log(1 + factor * sum_c exp(exponent_c)), which bounds the expected log softmax.

    The sum within the logarithm is estimated without bias; the logarithm of the estimate is, by
    Jensen's inequality, higher than the bound of all classes on average (the publication calls
    3.28 unbiased; it is where a row has one other class or all are taken).

    Args:
        exponents: -inf where a class takes no part.
        log_factor: log((C_d - 1) / |S_d|) of each row; None where all classes take part.
    """
    total = exponents.logsumexp(-1)
    if log_factor is not None:
        total = total + log_factor  # (3.28), with C_d - 1 where the publication has K - 1
    return torch.nn.functional.logsigmoid(-total)  # -ln(1 + P) of 3.23


def sample(
    label: Int[Tensor, " b"],
    n_classes: Int[Tensor, " b"],
    count: int,
    width: int,
    generator: torch.Generator,
) -> tuple[Int[Tensor, "b s"], Float[Tensor, " b"]]:
    """S_d of each row: other classes than its own, without replacement (Algorithm 1).

    Args:
        label: Each row's own class, within its output.
        n_classes: C_d of each row's output, at least 2.
        count: |S_d|; an output that has fewer other classes gives all it has.
        width: The largest C_d.
        generator: A CPU generator, so that a seed means the same on every device.

    Returns:
        Classes within the output, -1 where there is none left, and log((C_d - 1) / |S_d|).
    """
    device, dtype = label.device, torch.float64
    others = n_classes - 1
    if count == 1:
        u = torch.rand(len(label), generator=generator, dtype=dtype).to(device)
        drawn = (u * others).long()
        return (drawn + (drawn >= label)).unsqueeze(1), others.to(dtype).log()
    u = torch.rand(len(label), width, generator=generator, dtype=dtype).to(device)
    classes = torch.arange(width, device=device)
    barred = (classes >= n_classes.unsqueeze(1)) | (classes == label.unsqueeze(1))
    top = u.masked_fill(barred, -1.0).topk(min(count, width - 1))
    chosen = top.indices.masked_fill(top.values < 0, -1)
    return chosen, (others.to(dtype) / others.clamp(max=count)).log()
