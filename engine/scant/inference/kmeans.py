"""k-means, for initial inducing inputs and basis functions.

Unlike scikit-learn's k-means it takes a PyTorch generator (reproducible runs) and runs on a GPU.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def kmeans_centres(
    X: Float[Tensor, "n d"], n_centres: int, generator: torch.Generator, sweeps: int = 10
) -> Float[Tensor, "m d"]:
    """k-means centers, initialized with a random subset of the rows.

    With no more rows than centers, the centers are rows (repeated if needed) plus small noise.

    Args:
        X: Rows, standardized.
        n_centres: Number of centers m.
        generator: A CPU generator, so that a seed gives the same result on every device.
        sweeps: Number of Lloyd iterations.
    """
    n = len(X)
    order = torch.cat([torch.randperm(n, generator=generator) for _ in range(-(-n_centres // n))])
    centres = X[order[:n_centres].to(X.device)].clone()
    if n <= n_centres:
        noise = torch.randn(centres.shape, generator=generator, dtype=X.dtype)
        return centres + 0.1 * noise.to(X.device)
    for _ in range(sweeps):
        nearest = square_distances(X, centres).argmin(dim=1)
        assignment = torch.nn.functional.one_hot(nearest, n_centres).to(X.dtype)
        size = assignment.sum(dim=0)
        means = (assignment.T @ X) / size.clamp(min=1).unsqueeze(1)
        centres = torch.where(size.unsqueeze(1) > 0, means, centres)
    return centres


def square_distances(
    X: Float[Tensor, "n d"], centres: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """Squared Euclidean distance of every row from every center."""
    cross = X @ centres.T
    squares = X.square().sum(1, keepdim=True) + centres.square().sum(1)
    return (squares - 2 * cross).clamp(min=0)
