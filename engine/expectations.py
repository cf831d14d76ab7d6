"""Expectations of Gaussian-shaped kernels under Gaussian inputs: the psi statistics.

The kernel here is k(x, z) = exp(-(x - z)' P (x - z) / 2), of unit height, where the precision P is
one of

- `"d"`: a diagonal shared by all centres (an EQ kernel with ARD, P = 1 / lengthscale^2),
- `"m d"`: a diagonal for each centre,
- `"m d d"`: a full matrix for each centre (GPz's bespoke covariances).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

# Elements of the largest temporary of one chunk of rows (64 MiB in float64).
CHUNK = 1 << 23


def quadratics(
    X: Float[Tensor, "n d"],
    A: Float[Tensor, "k d"] | Float[Tensor, "k d d"],
    b: Float[Tensor, "k d"],
    c: Float[Tensor, " k"],
) -> Float[Tensor, "n k"]:
    """x' A_k x - 2 b_k' x + c_k for every row x and every k, as one matrix product.

    The squares and products of the columns of X are the features of that product, so nothing of
    size n x k x d is ever made. A holds symmetric matrices or their diagonals.
    """
    d = X.shape[1]
    if A.dim() == 2:
        squares, weights = X * X, A
    else:
        i, j = torch.triu_indices(d, d, device=X.device)
        squares, weights = X[:, i] * X[:, j], A[:, i, j] * torch.where(i == j, 1.0, 2.0).to(X)
    features = torch.cat([squares, X], dim=1)
    return torch.addmm(c, features, torch.cat([weights, -2 * b], dim=1).T)


def log_kernel(
    X: Float[Tensor, "n d"],
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, " d"] | Float[Tensor, "m d"] | Float[Tensor, "m d d"],
) -> Float[Tensor, "n m"]:
    """ln k(x, z) for inputs that are known exactly."""
    if precision.dim() == 1:
        precision = precision.expand_as(centres)
    if precision.dim() == 2:
        pull = precision * centres
    else:
        pull = (precision @ centres.unsqueeze(-1)).squeeze(-1)
    # Rounding can lift a square of zero above it; a kernel above one would upset nothing else.
    return (-0.5 * quadratics(X, precision, pull, (pull * centres).sum(-1))).clamp(max=0)
