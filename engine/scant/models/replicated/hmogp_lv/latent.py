"""Latent positions of outputs: k_H, its inducing outputs, and q(H) (Ma 2023, 5.10-5.11, 5.23)."""

from __future__ import annotations

import torch
from gpytorch import Module
from jaxtyping import Float, Int
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.inference.expectations import expected_kernel, expected_product, log_kernel
from scant.kernels.constraints import LogPositive

JITTER = 1e-8  # on matrices of unit variance; GPyTorch warns when a Cholesky factor needs more
START_VARIANCE = 0.1  # initial variance of q(h)


class LatentOutputs(Module):
    """q(h_d) = N(mean_d, diagonal) of D outputs in Q dimensions, with p(h_d) = N(0, I).

    k_H is an EQ-ARD kernel with unit variance; k_X has the variance.

    Args:
        mean: Initial means of q(H).
        inducing: Initial inducing outputs Z_H.
    """

    def __init__(self, mean: Float[Tensor, "d q"], inducing: Float[Tensor, "h q"]) -> None:
        super().__init__()
        self.mean = nn.Parameter(mean.clone())
        self.log_variance = nn.Parameter(torch.full_like(mean, START_VARIANCE).log())
        self.inducing = nn.Parameter(inducing.clone())
        self.log_lengthscale = nn.Parameter(mean.new_zeros(mean.shape[1]))
        for name in ("log_variance", "log_lengthscale"):
            self.register_constraint(name, LogPositive())

    @property
    def lengthscale(self) -> Float[Tensor, " q"]:
        """Lengthscales of k_H."""
        return self.log_lengthscale.exp()

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        log = torch.as_tensor(value).to(self.log_lengthscale).log()
        self.initialize(log_lengthscale=log.expand_as(self.log_lengthscale))

    def statistics(
        self, outputs: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b h"], Float[Tensor, "b h h"]]:
        """E[alpha_d] and E[alpha_d alpha_d'] over q(h_d), alpha_d = L_H^-1 k_H(Z, h_d)."""
        Z, precision = self.inducing, (-2 * self.log_lengthscale).exp()
        mean, variance = self.mean[outputs], self.log_variance[outputs].exp()
        K = log_kernel(Z, Z, precision).exp()
        lower = psd_safe_cholesky(K + JITTER * torch.eye(len(Z)).to(K))
        Psi = expected_kernel(mean, variance, Z, precision)  # Psi^H of 5.25
        Phi = expected_product(mean, variance, Z, precision)  # Phi^H of 5.23, one term per output
        psi = torch.linalg.solve_triangular(lower, Psi.T, upper=False).T
        P = torch.linalg.solve_triangular(lower, Phi, upper=False)
        return psi, torch.linalg.solve_triangular(lower, P.mT, upper=False)

    def divergence(self, outputs: Int[Tensor, " b"]) -> Float[Tensor, ""]:
        """KL(q(H) || p(H)) of the given outputs, in nats."""
        mean, log_variance = self.mean[outputs], self.log_variance[outputs]
        return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()

    @torch.no_grad()
    def covariance(self) -> Float[Tensor, "d d"]:
        """E[K_H] over q(H): prior correlations of outputs, 1 on the diagonal."""
        variance = self.log_variance.exp()
        total_variance = variance.unsqueeze(1) + variance + (2 * self.log_lengthscale).exp()
        squares = (self.mean.unsqueeze(1) - self.mean).square() / total_variance
        log_scale = self.log_lengthscale - 0.5 * total_variance.log()
        return (log_scale - 0.5 * squares).sum(2).exp().fill_diagonal_(1.0)

    @torch.no_grad()
    def positions(self) -> tuple[Float[Tensor, "d q"], Float[Tensor, "d q"]]:
        """Means and standard deviations of q(H), in lengthscales of k_H."""
        scale = self.log_lengthscale.exp()
        return self.mean / scale, (0.5 * self.log_variance).exp() / scale
