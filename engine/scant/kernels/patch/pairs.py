"""Sums over all pairs of an image's patches, sum_pp' w_p w_p' k(x^[p], x^[p']), without P x P cost.

With c_d the sum of the weights over the positions of distinct patch d, the sum is c^T K c, where K
is the kernel matrix of the distinct patches. Two exact shortcuts:

- `binary`: over all 2^E patches of two levels, the EQ-ARD kernel is a Kronecker product of E 2 x 2
  matrices, [[1, r], [r, 1]], whose eigenvectors are those of the Walsh-Hadamard transform H, so
  c^T K c = sum_s lambda_s (H c)_s^2 without one entry of K.
- `PairSum`: if distinct patches are many, each image's own are processed block by block; the
  gradient uses the same entries of K as the sum, so only their totals are saved.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scant.kernels.patch.rows import CHUNK
from scant.kernels.rbf import eq


def binary(
    c: Float[Tensor, "w b u"], lengthscale: Float[Tensor, "q e"], step: float
) -> Float[Tensor, "q b"]:
    """c^T K c over all u = 2^e patches of two levels, numbered as in `PatchRows`.

    Args:
        c: Sums of the weights; w is 1 if all kernels share them, or Q.
        step: Difference of the levels, in the unit of the lengthscales.
    """
    pixels = lengthscale.shape[1]
    r = torch.exp(-0.5 * (step / lengthscale).square())
    # Eigenvalues 1 + r and 1 - r of each factor, over 2 for the norm of the transform.
    factors = torch.stack([1 + r, 1 - r], dim=-1) / 2
    spectrum = factors[:, 0]
    for pixel in range(1, pixels):
        spectrum = (spectrum.unsqueeze(2) * factors[:, pixel].unsqueeze(1)).flatten(1)
    # H = H_1 x H_2 (Kronecker), each applied to the last axis by one matrix product.
    first, second = (_hadamard(k, c) for k in (pixels - pixels // 2, pixels // 2))
    partial_transform = (c.reshape(-1, len(second)) @ second).unflatten(0, (-1, len(first)))
    transform = (partial_transform.mT.reshape(-1, len(first)) @ first).view(c.shape)
    spectrum = spectrum.unflatten(1, (len(first), len(second))).mT.flatten(1)
    return (transform.square() @ spectrum.unsqueeze(2)).squeeze(2)


def _hadamard(k: int, like: Tensor) -> Float[Tensor, "s s"]:
    H = like.new_ones(1, 1)
    for _ in range(k):
        H = torch.cat([torch.cat([H, H], 1), torch.cat([H, -H], 1)])
    return H


class PairSum(torch.autograd.Function):
    """c^T K c of each image over its own distinct patches, with K the EQ-ARD kernel.

    Arguments: c, "q b l"; x, "b l e" (patches of data, no gradient); rate, "q e", one over the
    squared lengthscales. The value is "q b", differentiable once.
    """

    @staticmethod
    def forward(ctx: Any, c: Tensor, x: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        q, b, l = c.shape  # noqa: E741 (as in the shapes)
        scaled = x * rate.sqrt()[:, None, None]
        weighted = torch.cat([c.unsqueeze(-1), c.unsqueeze(-1) * x], dim=-1)
        block = max(1, CHUNK // (q * b * l))
        sums = [eq(part, scaled) @ weighted for part in scaled.split(block, dim=2)]
        total = torch.cat(sums, dim=2)  # K c and K (c x)
        Kc, Kcx = total[..., 0], total[..., 1:]
        # -1/2 sum_ij c_i c_j K_ij (x_i - x_j)^2, the square expanded
        slope = (weighted[..., 1:] * (Kcx - x * Kc.unsqueeze(-1))).sum(2)
        ctx.save_for_backward(Kc, slope)
        return (c * Kc).sum(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor]:
        (g,) = grads
        Kc, slope = ctx.saved_tensors
        return 2 * g.unsqueeze(-1) * Kc, None, (g.unsqueeze(-1) * slope).sum(1)


def dictionary(c: Float[Tensor, "w b u"], K: Float[Tensor, "q u u"]) -> Float[Tensor, "q b"]:
    """c^T K c of each image over one list of patches shared by all images."""
    return ((c @ K) * c).sum(-1)
