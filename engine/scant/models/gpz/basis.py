"""Basis functions of GPz: six covariance structures (Almosallam 2017, 4.38), initialization."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from scant.inference.expectations import kernel_forms, log_expected, log_kernel, row_chunks
from scant.inference.kmeans import square_distances
from scant.models.gpz.input_density import patterns

Covariance = Literal["GL", "VL", "GD", "VD", "GC", "VC"]
COVARIANCES: tuple[Covariance, ...] = ("GL", "VL", "GD", "VD", "GC", "VC")


def gamma_shape(
    covariance: Covariance, n_basis: int, n_features: int, rank: int | None = None
) -> tuple[int, ...]:
    """Shape of Gamma: Global or Variable; Length-scale, Diagonal or full Covariance of a rank."""
    scope = (n_basis,) if covariance[0] == "V" else ()
    full = (rank or n_features, n_features)
    return scope + {"L": (), "D": (n_features,), "C": full}[covariance[1]]


def precision_of(
    gamma: Tensor, covariance: Covariance, centres: Float[Tensor, "m d"]
) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
    """Sigma_j^-1 = Gamma_j' Gamma_j of each basis function, or its diagonal for L and D."""
    m, d = centres.shape
    if covariance[1] == "C":
        return (gamma.transpose(-1, -2) @ gamma).expand(m, d, d)  # (5.6)
    square = gamma.square()
    return (square.unsqueeze(-1) if covariance[1] == "L" else square).expand(m, d)


def full_precision(
    precision: Float[Tensor, "m d"] | Float[Tensor, "m d d"],
) -> Float[Tensor, "m d d"]:
    """Precisions as full matrices."""
    return torch.diag_embed(precision) if precision.dim() == 2 else precision


def tanh_basis(
    X: Float[Tensor, "n d"], centres: Float[Tensor, "m d"], h: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """tanh(h_j' x + b_j) (4.22, Table 4.1), b_j = -h_j' mu_j for a point mu_j of the hyperplane."""
    return torch.tanh(X @ h.T - (h * centres).sum(1))


def relevant_count(weights: Float[Tensor, " m"], share: float = 0.99) -> int:
    """Fewest basis functions with this share of all absolute weights (3.2)."""
    size = weights.abs().sort(descending=True).values
    return min(int((size.cumsum(0) < share * size.sum()).sum()) + 1, len(size))


def start_low_rank(gamma: Tensor, rank: int, generator: torch.Generator) -> Float[Tensor, "*m q d"]:
    """Initial Gamma of low rank: random orthonormal rows with the size of isotropic ones.

    Args:
        gamma: Initial isotropic matrices, of all basis functions or of each.
        rank: Number q of rows.
        generator: A CPU generator.
    """
    normal = torch.randn(gamma.shape, generator=generator, dtype=torch.float64).to(gamma)
    return (torch.linalg.qr(normal).Q.mT @ gamma)[..., :rank, :]


def expected_basis(
    X: Float[Tensor, "n d"],
    noise: Float[Tensor, "n *d_d"] | None,
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, "*m_d d"],
) -> Float[Tensor, "n m"]:
    """Expected basis functions of noisy (5.72) and partly missing (5.86) inputs.

    Missing values are integrated out under the basis function's Gaussian, which leaves the basis
    function of the observed values times 2^(-missing / 2). The precision of the observed block is
    the Schur complement 5.90, with the inverse of G[u, u] (the print has G[o, u]).
    """
    n, m = len(X), len(centres)
    phi = X.new_zeros(n, m)
    for observed, rows in patterns(X):
        part = observed_precision(precision, observed)
        scale = 2.0 ** (-0.5 * float((~observed).sum()))
        x, z = X[rows][:, observed], centres[:, observed]
        if noise is None:
            value = log_kernel(x, z, part).exp()
        else:
            value = _expected(x, _block(noise[rows], observed), z, part)
        # (5.86), with 5.72 for the observed values
        phi = phi.index_copy(0, rows, scale * value) if len(rows) < n else scale * value
    return phi


def _expected(x: Tensor, noise: Tensor, centres: Tensor, precision: Tensor) -> Tensor:
    """E[phi] in chunks of rows, with gradient checkpointing to save memory."""

    def chunk(x: Tensor, noise: Tensor, centres: Tensor, precision: Tensor) -> Tensor:
        return log_expected(kernel_forms(centres, precision), x, noise).exp()

    forms = kernel_forms(centres, precision)
    parts = [
        checkpoint(
            chunk, x[r], noise[r], centres, precision, use_reentrant=False, preserve_rng_state=False
        )
        for r in row_chunks(forms, noise)
    ]
    return torch.cat(parts)


def _block(noise: Tensor, observed: Tensor) -> Tensor:
    """Noise of the observed columns."""
    return noise[:, observed] if noise.dim() == 2 else noise[:, observed][:, :, observed]


def observed_precision(precision: Tensor, observed: Tensor) -> Tensor:
    """Sigma[o, o]^-1 of every basis function (5.90)."""
    if precision.dim() < 3:
        return precision[:, observed]
    G = precision
    if bool(observed.all()):
        return G
    cross = G[:, ~observed][:, :, observed]
    inner = G[:, ~observed][:, :, ~observed]
    return G[:, observed][:, :, observed] - cross.mT @ torch.linalg.solve(inner, cross)  # (5.90)


def start_gamma(
    X: Float[Tensor, "n d"], centres: Float[Tensor, "m d"], covariance: Covariance
) -> Tensor:
    """Initial Gamma from the spread of the data around each center.

    gamma_j^2 = m^(1/d) / (mean squared distance of the samples from center j): more basis functions
    are narrower. The authors' program has half of it, and centers drawn uniformly over the
    principal components; ours are k-means centers, which lie closer to the samples.
    """
    m, d = centres.shape
    spread = square_distances(X, centres).mean(dim=0).clamp(min=1e-6)
    gamma = (m ** (1 / d) / spread).sqrt()
    if covariance[0] == "G":
        gamma = gamma.mean()
    if covariance[1] == "L":
        return gamma
    if covariance[1] == "D":
        return gamma.unsqueeze(-1).repeat(*[1] * gamma.dim(), d)
    return gamma[..., None, None] * torch.eye(d, dtype=X.dtype, device=X.device)
