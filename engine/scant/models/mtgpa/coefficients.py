"""Variational posterior q(b) of MTGPA's linear mean coefficients."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scant.models.mtgpa.prior import COEFFICIENT

START = 0.1  # initial standard deviation of q(v)


class Coefficients(nn.Module):
    """Coefficients b_j = COEFFICIENT * v_j with Gaussian q(v_j) and standard normal p(v_j).

    The joint posterior factorizes into those of b and of the latent functions.

    Args:
        functions: Number J of functions.
        covariates: Number p of covariates.
    """

    def __init__(self, functions: int, covariates: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(functions, covariates, dtype=torch.float64))
        # The Cholesky factor's diagonal is an exponential, so that it cannot reach zero, where the
        # divergence is infinite.
        raw = math.log(START) * torch.eye(covariates, dtype=torch.float64)
        self.raw_root = nn.Parameter(raw.repeat(functions, 1, 1))

    def root(self) -> Float[Tensor, "j p p"]:
        """Cholesky factors of the covariances of q(v)."""
        diagonal = self.raw_root.diagonal(dim1=1, dim2=2).exp()
        return self.raw_root.tril(-1) + torch.diag_embed(diagonal)

    def covariances(self) -> Float[Tensor, "j p p"]:
        """Posterior covariances of the coefficients b_j."""
        root = self.root()
        return COEFFICIENT**2 * root @ root.mT

    def moments(self, z: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "j n"], Float[Tensor, "j n"]]:
        """Means and variances of z' b_j at covariates z."""
        scaled = torch.einsum("np,jpq->jnq", z, self.root())
        return COEFFICIENT * self.mean @ z.T, COEFFICIENT**2 * scaled.square().sum(2)

    def kl_divergence(self) -> Float[Tensor, " j"]:
        """KL(q(b) || p(b)) of each function, in nats."""
        log_det = 2 * self.raw_root.diagonal(dim1=1, dim2=2).sum(1)
        squares = self.root().square().sum((1, 2)) + self.mean.square().sum(1)
        return 0.5 * (squares - self.mean.shape[1] - log_det)
