"""GPz: a sparse Gaussian process of basis functions with input-dependent noise.

Almosallam (2017), chapters 2-5. The target is f(x) + noise,

    f(x) = sum_j w_j phi_j(x) + a' x + a_0,     phi_j(x) = exp(-|Gamma_j (x - mu_j)|^2 / 2),
    noise ~ N(0, 1 / beta(x)),                  beta(x) = exp(sum_j v_j phi_j(x) + b),

with a Gaussian prior of its own precision on every weight w_j, a (alpha) and v_j (tau): automatic
relevance determination of mean and noise apart. w and a are integrated out, the rest is learned.

X and y are expected standardised, so the prior mean of the linear part is zero, as in the thesis's
experiments (below 3.36); any other is had by taking it off y first.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from engine.errors import BadInput
from engine.expectations import log_kernel
from engine.models.gpz_basis import (
    COVARIANCES,
    Covariance,
    gamma_shape,
    precision_of,
    start_centres,
    start_gamma,
)
from engine.models.gpz_evidence import negative_log_evidence, weight_posterior


@dataclass(frozen=True)
class Prediction:
    """Predictive mean and the three parts of the predictive variance, one entry a row.

    Attributes:
        mean: E[f(x)].
        model_variance: nu^2, what more training data would take away (3.12, 5.13).
        noise_variance: E[1 / beta(x)], what better features would take away (5.17).
        input_variance: V[f(x)] caused by noisy or missing inputs (5.10); zero where there are none.
    """

    mean: Float[Tensor, " n"]
    model_variance: Float[Tensor, " n"]
    noise_variance: Float[Tensor, " n"]
    input_variance: Float[Tensor, " n"]

    @property
    def variance(self) -> Float[Tensor, " n"]:
        """Variance of a new target: the sum of the three parts (5.19)."""
        return self.model_variance + self.noise_variance + self.input_variance


class GPz(nn.Module):
    """Sparse GP with basis functions of one of six covariance structures.

    Args:
        n_features: d, the number of input columns.
        n_basis: m, the number of basis functions.
        covariance: Global or Variable (G, V), times Length-scale, Diagonal or full Covariance
            (L, D, C) of the basis functions (list below 4.38).
        heteroscedastic: Let the noise depend on the input (section 3.2).
        joint_mean: Learn a linear mean together with the rest (section 3.5).
        dtype: float64 unless speed on a GPU asks for float32.

    Parameters are free of constraints: precisions are held as logarithms, and Gamma enters
    squared. `state_dict` holds all that prediction needs once `fit_posterior` has run.

    Raises:
        BadInput: An unknown covariance, or sizes below one.
    """

    def __init__(
        self,
        n_features: int,
        n_basis: int,
        covariance: Covariance = "VC",
        heteroscedastic: bool = True,
        joint_mean: bool = True,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        if covariance not in COVARIANCES:
            raise BadInput(f"Covariance {covariance!r} is unknown; use one of {COVARIANCES}.")
        if n_features < 1 or n_basis < 1:
            raise BadInput(
                f"GPz needs at least one feature and one basis function, got {n_features} "
                f"and {n_basis}."
            )
        self.covariance: Covariance = covariance
        self.heteroscedastic, self.joint_mean = heteroscedastic, joint_mean
        m, d = n_basis, n_features
        p = m + (d + 1 if joint_mean else 0)

        def free(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(shape, dtype=dtype))

        self.centres = free(m, d)
        self.gamma = free(*gamma_shape(covariance, m, d))
        self.log_alpha = free(p)
        self.b = free()
        if heteroscedastic:
            self.v = free(m)
            self.log_tau = free(m)
        self.weight_mean: Tensor
        self.weight_factor: Tensor  # C, where the posterior covariance of the weights is C C'
        self.register_buffer("weight_mean", torch.zeros(p, dtype=dtype))
        self.register_buffer("weight_factor", torch.zeros(p, p, dtype=dtype))

    @torch.no_grad()
    def initialise(
        self, X: Float[Tensor, "n d"], y: Float[Tensor, " n"], generator: torch.Generator
    ) -> None:
        """Start values: k-means centres, widths by local density, noise at a tenth of V[y].

        Args:
            X: Inputs; a missing value (NaN) counts as the mean of its column here.
            y: Targets.
            generator: A CPU generator; the same seed gives the same start, bit by bit.
        """
        filled = torch.where(X.isnan(), X.nanmean(dim=0), X)
        variance = y.var(correction=0).clamp(min=1e-12)
        self.centres.copy_(start_centres(filled, len(self.centres), generator))
        self.gamma.copy_(start_gamma(filled, self.centres, self.covariance))
        self.log_alpha.copy_((-variance.log()).expand_as(self.log_alpha))
        self.b.copy_(-(0.1 * variance).log())
        if self.heteroscedastic:
            self.v.zero_()
            self.log_tau.zero_()

    def precision(self) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
        """Sigma_j^-1 of each basis function; diagonals for the L and D structures."""
        return precision_of(self.gamma, self.covariance, self.centres)

    def basis(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        """Values of the basis functions at inputs that are known exactly."""
        return log_kernel(X, self.centres, self.precision()).exp()

    def design(self, phi: Float[Tensor, "n m"], X: Float[Tensor, "n d"]) -> Float[Tensor, "n p"]:
        """The design matrix of 3.28: basis functions, then inputs and a constant if asked for."""
        if not self.joint_mean:
            return phi
        return torch.cat([phi, X, torch.ones_like(X[:, :1])], dim=1)

    def log_beta(self, phi: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
        """Log precision of the noise where the basis functions have the values phi."""
        return phi @ self.v + self.b if self.heteroscedastic else self.b.expand(len(phi))

    def objective(
        self,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
    ) -> Float[Tensor, ""]:
        """The negative of 3.36, in nats, summed over the samples and not divided by n.

        All constants are kept, so that it equals -ln N(y; 0, Phi' A^-1 Phi + B^-1) of 2.56 minus
        ln p(v | tau). A homoscedastic model has no v, and no prior of it.
        """
        omega = torch.ones_like(y) if omega is None else omega
        phi = self.basis(X)
        value = negative_log_evidence(
            self.design(phi, X), y, omega, self.log_alpha, self.log_beta(phi)
        )
        if self.heteroscedastic:
            scatter = self.log_tau.exp() @ self.v.square() - self.log_tau.sum()
            value = value + 0.5 * (scatter + len(self.v) * math.log(2 * math.pi))
        return value

    @torch.no_grad()
    def fit_posterior(
        self,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
    ) -> None:
        """Posterior of the weights (3.32-3.34) at the present parameters; prediction needs it.

        Warns (RuntimeWarning) where the Cholesky factor needed jitter.
        """
        omega = torch.ones_like(y) if omega is None else omega
        phi = self.basis(X)
        precision = omega * self.log_beta(phi).exp()
        posterior = weight_posterior(self.design(phi, X), y, precision, self.log_alpha)
        if posterior.jitter:
            warnings.warn(
                f"The posterior of the weights needed jitter {posterior.jitter:g} of its mean "
                "diagonal; the variances are less certain than they look.",
                RuntimeWarning,
                stacklevel=2,
            )
        self.weight_mean.copy_(posterior.mean)
        self.weight_factor.copy_(posterior.factor)

    @torch.no_grad()
    def predict(self, X: Float[Tensor, "n d"]) -> Prediction:
        """Predictive mean and variance parts (3.10-3.12)."""
        phi = self.basis(X)
        design = self.design(phi, X)
        return Prediction(
            mean=design @ self.weight_mean,
            model_variance=(design @ self.weight_factor).square().sum(dim=1),
            noise_variance=(-self.log_beta(phi)).exp(),
            input_variance=torch.zeros_like(X[:, 0]),
        )

    @torch.no_grad()
    def relevance(self) -> Float[Tensor, " m"]:
        """Share of each basis function in the sum of absolute weights (4.37)."""
        size = self.weight_mean[: len(self.centres)].abs()
        return size / size.sum().clamp(min=torch.finfo(size.dtype).tiny)
