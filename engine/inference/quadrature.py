"""Gauss-Hermite quadrature, for expectations under a Gaussian that have no closed form."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_rule = cache(np.polynomial.hermite_e.hermegauss)  # found as eigenvalues: once for each count


def gauss_hermite(count: int, like: Tensor) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Nodes and weights of E[g(z)], z ~ N(0, 1), on the device and in the precision of `like`."""
    nodes, weights = _rule(count)
    return torch.as_tensor(nodes).to(like), torch.as_tensor(weights / weights.sum()).to(like)
