"""What exact Gaussian processes have in common: a Cholesky factor and whitened targets."""

from __future__ import annotations

import torch
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


def whitened(
    K: Float[Tensor, "*b n n"], y: Float[Tensor, "*b n k"]
) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b n k"]]:
    """L with L L' = K, and L^-1 y (Rasmussen and Williams 2006, algorithm 2.1).

    Raises:
        NotPSDError: K has no factor, whatever the jitter.
        NanError: K is not finite.
    """
    lower = psd_safe_cholesky(K)
    return lower, torch.linalg.solve_triangular(lower, y, upper=False)
