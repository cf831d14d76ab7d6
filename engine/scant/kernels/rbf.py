"""The EQ kernel between all pairs of scaled rows, by matrix products."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def eq(x: Float[Tensor, "*b n e"], y: Float[Tensor, "*b m e"]) -> Float[Tensor, "*b n m"]:
    """exp(-|x - y|^2 / 2) for all pairs of rows; the exponent is one matrix product."""
    left = torch.cat([x, -0.5 * x.square().sum(-1, keepdim=True), torch.ones_like(x[..., :1])], -1)
    right = torch.cat([y, torch.ones_like(y[..., :1]), -0.5 * y.square().sum(-1, keepdim=True)], -1)
    return (left @ right.mT).exp()
