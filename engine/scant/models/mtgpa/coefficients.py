"""q(b) of the coefficients of a linear mean, beside the latent functions of MTGPA."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scant.models.mtgpa.prior import COEFFICIENT

START = 0.1  # deviation of q(v) to start from


class Coefficients(nn.Module):
    """b_j = COEFFICIENT * v_j of each function j, with q(v_j) Gaussian and p(v_j) standard.

    The posterior of b and of the latent functions is taken for a product of the two.

    Args:
        functions: J.
        covariates: p.
    """

    def __init__(self, functions: int, covariates: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(functions, covariates, dtype=torch.float64))
        # Of the Cholesky factor the diagonal is an exponential: a step can make it small, but not
        # zero, where the divergence has no gradient that an optimizer recovers from.
        raw = math.log(START) * torch.eye(covariates, dtype=torch.float64)
        self.raw_root = nn.Parameter(raw.repeat(functions, 1, 1))

    def root(self) -> Float[Tensor, "j p p"]:
        """Cholesky factors of the covariances of q(v)."""
        diagonal = self.raw_root.diagonal(dim1=1, dim2=2).exp()
        return self.raw_root.tril(-1) + torch.diag_embed(diagonal)

    def covariances(self) -> Float[Tensor, "j p p"]:
        """Of the coefficients."""
        root = self.root()
        return COEFFICIENT**2 * root @ root.mT

    def moments(self, z: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "j n"], Float[Tensor, "j n"]]:
        """Means and variances of the linear means at covariates z."""
        half = torch.einsum("np,jpq->jnq", z, self.root())
        return COEFFICIENT * self.mean @ z.T, COEFFICIENT**2 * half.square().sum(2)

    def kl_divergence(self) -> Float[Tensor, " j"]:
        """KL(q(b) || p(b)) of each function, in nats."""
        log_det = 2 * self.raw_root.diagonal(dim1=1, dim2=2).sum(1)
        squares = self.root().square().sum((1, 2)) + self.mean.square().sum(1)
        return 0.5 * (squares - self.mean.shape[1] - log_det)
