"""Sparse GP regression by FITC (Snelson and Ghahramani 2006), the SGP of the DFGP publication.

The targets of the rows have the covariance Q + diag(K - Q) + noise I with Q = K_xz K_zz^-1 K_zx,
whose variances are those of the full GP. GPyTorch's `InducingPointKernel` corrects the diagonal in
predictions only: it trains on the density with Q + noise I and Titsias' trace term. Here both have
the correction, and the inducing inputs are parameters of the density.

    model = FITC.build(X, y, inducing=10, generator=generator)
    trainer = AdamLBFGS(model, model.log_density, len(y), adam=None)    # scant.optim.adam_lbfgs
    maximize(trainer, 100)                                              # scant.optim.ascent
    mean, variance = model.predict(X_new)
"""

from __future__ import annotations

import torch
from gpytorch import Module
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from jaxtyping import Float
from linear_operator.operators import (
    DiagLinearOperator,
    LowRankRootAddedDiagLinearOperator,
    LowRankRootLinearOperator,
)
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.inference.kmeans import kmeans_centres
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.dfgp.hidden import ViewStack
from scant.models.dfgp.likelihoods import checked_target

JITTER = 1e-6


class FITC(Module):
    """Sparse GP regression with FITC's likelihood; construct it with `build`.

    Args:
        views: Standardization of the input columns.
        x: Standardized inputs.
        y: Targets.
        inducing: Initial inducing inputs, which are learned.
        ard: True for a lengthscale per column.
    """

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]  # standardized
    centre: Float[Tensor, ""]
    scale: Float[Tensor, ""]

    def __init__(
        self,
        views: ViewStack,
        x: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        inducing: Float[Tensor, "m d"],
        ard: bool,
    ) -> None:
        super().__init__()
        self.views = views
        for name, value in {"x": x, "centre": y.mean(), "scale": y.std()}.items():
            self.register_buffer(name, value)
        self.register_buffer("y", (y - self.centre) / self.scale)
        self.inducing = nn.Parameter(inducing)
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=x.shape[1] if ard else None))
        self.covar_module.base_kernel.lengthscale = x.shape[1] ** 0.5
        self.likelihood = GaussianLikelihood()
        self.notes: list[str] = []
        self.double().to(x.device)

    @classmethod
    def build(
        cls,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        inducing: int = 10,
        generator: torch.Generator | None = None,
        ard: bool = True,
    ) -> FITC:
        """Build a model over standardized inputs and targets, with inducing inputs from k-means.

        Args:
            X: Inputs.
            y: Targets.
            inducing: Number of inducing inputs.
            generator: A CPU generator for k-means; by default one with seed 0.
            ard: True for a lengthscale per column.

        Raises:
            BadInput: Values that are not finite, or a target that does not vary.
        """
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        y = checked_target(y)
        views = ViewStack([X])
        x = views([X])[0]
        return cls(views, x, y, kmeans_centres(x, min(inducing, len(x)), generator), ard)

    def _features(self, x: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """A = L^-1 K_zx with L L' = K_zz, so that Q = A'A."""
        cross = self.covar_module(self.inducing, x).to_dense()
        return torch.linalg.solve_triangular(self._lower(), cross, upper=False)

    def _lower(self) -> Float[Tensor, "m m"]:
        """L of L L' = K_zz."""
        z = self.inducing
        eye = torch.eye(len(z)).to(z)
        with collect_numerical_warnings(self.notes):
            return psd_safe_cholesky(self.covar_module(z).to_dense() + JITTER * eye)

    def _covariance(self, A: Float[Tensor, "m n"]) -> LowRankRootAddedDiagLinearOperator:
        """Q + diag(K - Q) + noise I of the training rows, solved through m x m matrices."""
        variance = self.covar_module(self.x, diag=True) - A.square().sum(0)
        diagonal = DiagLinearOperator(variance.clamp(min=0) + self.row_noise)
        return LowRankRootAddedDiagLinearOperator(LowRankRootLinearOperator(A.mT), diagonal)

    @property
    def row_noise(self) -> Float[Tensor, " n"] | Float[Tensor, "1"]:
        """Noise variance of the training rows, in the unit of standardized targets."""
        return self.likelihood.noise

    def log_density(self) -> Float[Tensor, ""]:
        """ln p(y) in nats, y in its own unit (Snelson and Ghahramani 2006, eq. 9)."""
        covariance = self._covariance(self._features(self.x))
        value: Tensor = MultivariateNormal(torch.zeros_like(self.y), covariance).log_prob(self.y)
        return value - len(self.y) * self.scale.log()

    @torch.no_grad()
    def weights(self) -> Float[Tensor, " m"]:
        """Weights w of the mean K_xz w, in the unit of standardized targets."""
        A = self._features(self.x)
        # A = L^-1 K_zx, so the mean A_new' A C^-1 y is K_new,z (L^-T A C^-1 y)
        right = A @ self._covariance(A).solve(self.y.unsqueeze(1))
        return torch.linalg.solve_triangular(self._lower().mT, right, upper=True)[:, 0]

    @torch.no_grad()
    def predict(self, X: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of y, with noise (Snelson and Ghahramani 2006, eq. 8)."""
        x = self.views([X])[0]
        A, new = self._features(self.x), self._features(x)
        solved = self._covariance(A).solve(torch.cat([A.mT, self.y.unsqueeze(1)], 1))
        variance = self.covar_module(x, diag=True) - (new * (A @ solved[:, :-1] @ new)).sum(0)
        mean = (A @ solved[:, -1]) @ new
        variance = variance.clamp(min=0) + self.likelihood.noise
        return mean * self.scale + self.centre, variance * self.scale.square()
