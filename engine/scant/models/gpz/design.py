"""Design matrix of GPz (3.28), of basis functions and a linear mean, and density of its inputs."""

from __future__ import annotations

import math
from typing import cast

import gpytorch
import torch
from jaxtyping import Float
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.expectations import log_kernel
from scant.inference.kmeans import kmeans_centres
from scant.models.gpz.basis import (
    COVARIANCES,
    Covariance,
    expected_basis,
    full_precision,
    gamma_shape,
    precision_of,
    start_gamma,
    start_low_rank,
    tanh_basis,
)
from scant.models.gpz.completion import MAX_DENSE_INPUTS
from scant.models.gpz.input_density import (
    MIN_PRECISION,
    Mixture,
    fill,
    fit_mixture,
    single_gaussian,
)

START_ROWS = 50_000  # most rows used to initialize centers and widths


class BasisFunctionModel(gpytorch.Module):
    """Basis functions and linear mean of `GPz`, with the arguments of the same names there.

    Their parameters are `centres` and `gamma`. The state includes two densities of the inputs: the
    Gaussian that fills missing values of the linear mean's columns in training, and the mixture
    that predicts missing values.

    Raises:
        BadInput: An unknown covariance or basis, sizes below one, or a rank without a full
            covariance or beyond the inputs.
    """

    input_mean: Tensor
    input_precision: Tensor
    mixture_log_weights: Tensor
    mixture_means: Tensor
    mixture_precisions: Tensor
    projection: Tensor | None

    def __init__(
        self,
        n_features: int,
        n_basis: int,
        covariance: str,
        joint_mean: bool,
        dtype: torch.dtype,
        projection: Float[Tensor, "d c"] | None,
        basis: str,
        rank: int | None,
    ) -> None:
        super().__init__()
        if covariance not in COVARIANCES:
            raise BadInput(f"Covariance {covariance!r} is unknown; use one of {COVARIANCES}.")
        if n_features < 1 or n_basis < 1:
            raise BadInput(
                f"GPz needs at least one feature and one basis function, got {n_features} "
                f"and {n_basis}."
            )
        if basis not in ("rbf", "tanh"):
            raise BadInput(f"Basis {basis!r} is unknown; use 'rbf' or 'tanh'.")
        if rank is not None and (
            basis == "tanh" or covariance[1] != "C" or not 1 <= rank <= n_features
        ):
            raise BadInput(
                f"A rank from 1 to {n_features} needs radial basis functions with a full "
                f"covariance (GC or VC), got rank {rank}, basis {basis!r} and {covariance!r}."
            )
        self.covariance, self.basis, self.rank = cast(Covariance, covariance), basis, rank
        self.joint_mean = joint_mean
        m, d = n_basis, n_features
        shape = (m, d) if basis == "tanh" else gamma_shape(self.covariance, m, d, rank)
        self.centres = nn.Parameter(torch.zeros(m, d, dtype=dtype))
        self.gamma = nn.Parameter(torch.zeros(shape, dtype=dtype))
        self.register_buffer("projection", projection)
        c = d if projection is None else projection.shape[1]
        self._register_zeros("input_mean", c)
        self._register_zeros("input_precision", c, c)
        k = m if c <= MAX_DENSE_INPUTS else 1  # placeholder; a fitted density may have any number
        self._register_zeros("mixture_log_weights", k)
        self._register_zeros("mixture_means", k, c)
        self._register_zeros("mixture_precisions", k, c, c)

    def _register_zeros(self, name: str, *shape: int) -> None:
        self.register_buffer(name, self.centres.detach().new_zeros(shape))

    @property
    def needs_complete_inputs(self) -> bool:
        """Whether the basis functions have no expectation for missing or noisy inputs."""
        return self.basis == "tanh" or self.rank is not None

    @torch.no_grad()
    def init_basis(self, X: Float[Tensor, "n d"], generator: torch.Generator) -> None:
        """Initialize centers by k-means, widths by local density, and the Gaussian of the inputs.

        Raises:
            BadInput: X has the wrong number of columns, an infinite value or an empty column.
        """
        self.check(X)
        filled = torch.where(X.isnan(), X.nanmean(dim=0), X)
        if not bool(filled.isfinite().all()):
            column = int((~filled.isfinite().all(0)).nonzero()[0])
            raise BadInput(
                f"Column {column} of X has no value at all; leave it out of the features."
            )
        if len(filled) > START_ROWS:
            subset = torch.randperm(len(filled), generator=generator)[:START_ROWS]
            filled = filled[subset.to(filled.device)]
        self.centres.copy_(kmeans_centres(filled, len(self.centres), generator))
        if self.basis == "tanh":
            isotropic = start_gamma(filled, self.centres, "VC")
            self.gamma.copy_(start_low_rank(isotropic, 1, generator)[:, 0])
        elif self.rank is not None:
            isotropic = start_gamma(filled, self.centres, self.covariance)
            self.gamma.copy_(start_low_rank(isotropic, self.rank, generator))
        else:
            self.gamma.copy_(start_gamma(filled, self.centres, self.covariance))
        gaussian = single_gaussian(X)
        self.input_mean.copy_(gaussian.means[0])
        self.input_precision.copy_(gaussian.precisions[0])

    def precision(self) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
        """Sigma_j^-1 of each basis function; diagonals for the L and D structures."""
        return precision_of(self.gamma, self.covariance, self.centres)

    def design(
        self, X: Float[Tensor, "n d"], noise_variance: Float[Tensor, "n *d_d"] | None = None
    ) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n p"]]:
        """Basis functions, and the design matrix of 3.28 (one row per sample).

        Noisy inputs give expected basis functions (5.72), missing values the expectation 5.86; the
        linear mean's columns then hold the expected missing inputs given the observed ones.
        """
        if self.projection is not None:
            X = self.complete(X) @ self.projection.T
        if self.basis == "tanh":
            phi = tanh_basis(X, self.centres, self.gamma)
        elif noise_variance is not None or bool(X.isnan().any()):
            phi = expected_basis(X, noise_variance, self.centres, self.precision())
        else:
            phi = log_kernel(X, self.centres, self.precision()).exp()
        if not self.joint_mean:
            return phi, phi
        return phi, torch.cat([phi, self.linear_columns(X)], dim=1)

    def linear_columns(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n l"]:
        """Columns of the linear mean: inputs and ones (d + 1 columns), or none without it."""
        if not self.joint_mean:
            return X[:, :0]
        X = self.complete(X)
        return torch.cat([X, torch.ones_like(X[:, :1])], dim=1)

    def complete(self, X: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
        """Fill missing values with their expectation under one Gaussian."""
        if not bool(X.isnan().any()):
            return X
        one = self.input_mean.new_zeros(1)
        return fill(X, Mixture(one, self.input_mean[None], self.input_precision[None]))

    @property
    def mixture(self) -> Mixture:
        """Density of the inputs, for missing values."""
        return Mixture(self.mixture_log_weights, self.mixture_means, self.mixture_precisions)

    @torch.no_grad()
    def fit_density(self, X: Float[Tensor, "n d"], free: bool) -> None:
        """Fit the input density: weights over the basis functions (5.22), or all if `free`."""
        m, d = self.centres.shape
        floor = MIN_PRECISION * torch.eye(d, dtype=X.dtype, device=X.device)
        start = Mixture(
            X.new_full((m,), -math.log(m)), self.centres, full_precision(self.precision()) + floor
        )
        mixture = fit_mixture(X, start, free)
        for name, value in mixture._asdict().items():
            setattr(self, f"mixture_{name}", value.detach().clone().contiguous())

    def check(self, X: Tensor, noise_variance: Tensor | None = None) -> None:
        """Refuse inputs that the model cannot take.

        Raises:
            BadInput: Another shape, infinite values, or missing values or noise where the basis
                functions need complete inputs.
        """
        if self.needs_complete_inputs and (noise_variance is not None or bool(X.isnan().any())):
            raise BadInput(
                "Basis functions by tanh or of low rank need inputs without missing values and "
                "without noise; leave such rows out, or use radial basis functions of full rank."
            )
        d = self.input_mean.shape[0]
        if X.dim() != 2 or X.shape[1] != d or not len(X):
            raise BadInput(f"X must be rows of {d} features, got shape {tuple(X.shape)}.")
        if bool(X.isinf().any()):
            row, column = (int(i) for i in X.isinf().nonzero()[0])
            raise BadInput(
                f"X is infinite in row {row}, column {column}; use NaN for a missing value."
            )
