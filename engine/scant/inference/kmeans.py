"""k-means, from which inducing inputs and basis functions start.

scikit-learn's k-means would do, but draws its start from a generator of its own: runs would not
repeat what they gave before, nor stay on a GPU.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def kmeans_centres(
    X: Float[Tensor, "n d"], n_centres: int, generator: torch.Generator, sweeps: int = 10
) -> Float[Tensor, "m d"]:
    """k-means centres, started from a random subset of the rows.

    Where there are fewer rows than centres, rows are used more than once and set apart by
    a little noise. The generator lives on the CPU, so that a seed means the same on every device.
    """
    n = len(X)
    order = torch.cat([torch.randperm(n, generator=generator) for _ in range(-(-n_centres // n))])
    centres = X[order[:n_centres].to(X.device)].clone()
    if n <= n_centres:
        noise = torch.randn(centres.shape, generator=generator, dtype=X.dtype)
        return centres + 0.1 * noise.to(X.device)
    for _ in range(sweeps):
        nearest = square_distances(X, centres).argmin(dim=1)
        member = torch.nn.functional.one_hot(nearest, n_centres).to(X.dtype)
        size = member.sum(dim=0)
        means = (member.T @ X) / size.clamp(min=1).unsqueeze(1)
        centres = torch.where(size.unsqueeze(1) > 0, means, centres)
    return centres


def square_distances(
    X: Float[Tensor, "n d"], centres: Float[Tensor, "m d"]
) -> Float[Tensor, "n m"]:
    """Squared Euclidean distance of every row from every centre."""
    cross = X @ centres.T
    squares = X.square().sum(1, keepdim=True) + centres.square().sum(1)
    return (squares - 2 * cross).clamp(min=0)
