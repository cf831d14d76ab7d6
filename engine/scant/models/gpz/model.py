"""GPz: a sparse Gaussian process of basis functions with input-dependent noise.

Almosallam (2017), chapters 2-5. The target is f(x) + noise,

    f(x) = sum_j w_j phi_j(x) + a' x + a_0,     phi_j(x) = exp(-|Gamma_j (x - mu_j)|^2 / 2),
    noise ~ N(0, 1 / beta(x)),                  beta(x) = exp(sum_j v_j phi_j(x) + b),

with a Gaussian prior of its own precision on every weight w_j, a (alpha) and v_j (tau): automatic
relevance determination of mean and noise apart. w and a are integrated out, the rest is learned.

X and y are expected standardized, so the prior mean of the linear part is zero, as in the thesis's
experiments (below 3.36); any other is had by taking it off y first.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, cast

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator.operators import RootLinearOperator
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.expectations import kernel_forms, log_kernel
from scant.inference.kmeans import kmeans_centres
from scant.kernels.constraints import LogPositive
from scant.models.gpz.basis import (
    COVARIANCES,
    Covariance,
    expected_basis,
    full_precision,
    gamma_shape,
    precision_of,
    start_gamma,
)
from scant.models.gpz.completion import WIDE
from scant.models.gpz.evidence import Posterior, weight_posterior
from scant.models.gpz.given import PosteriorState, Prepared
from scant.models.gpz.input_density import (
    LEAST_PRECISION,
    Mixture,
    fill,
    fit_mixture,
    single_gaussian,
)
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.models.gpz.uncertain_inputs import predict_inputs

START_ROWS = 50_000  # from which centres and widths start, at most
PREDICTED_ROWS = 1 << 16  # at once, so that memory does not grow with the rows


class GPz(gpytorch.Module):
    """Sparse GP with basis functions of one of six covariance structures.

    Args:
        n_features: d, the number of input columns.
        n_basis: m, the number of basis functions.
        covariance: Global or Variable (G, V), times Length-scale, Diagonal or full Covariance
            (L, D, C) of the basis functions (list below 4.38).
        heteroscedastic: Let the noise depend on the input (section 3.2).
        joint_mean: Learn a linear mean together with the rest (section 3.5).
        dtype: float64 unless speed on a GPU asks for float32.
        projection: From the columns of X to the d inputs of the basis functions; None: they are the
            same. A model trained on principal components, say, then predicts from X itself.

    Missing values are NaN in X. The mixture that fills them at prediction and the single Gaussian
    that fills the linear mean's columns in training are part of the state.

    Precisions are held as logarithms (`alpha`, `tau`), and Gamma enters squared. `state_dict`
    holds all that prediction needs once `fit_posterior` has run.

    As in GPyTorch, `model(x)` is the posterior of f at x and `GPzLikelihood(model)(model(x), x)`
    that of a new target; `predict` gives the same moments with the variance in parts. The objective
    is `scant.models.gpz.log_evidence.LogEvidence`. GPyTorch has no sum of basis functions with
    widths of their own, so that the algebra is written out here.

    Raises:
        BadInput: An unknown covariance, or sizes below one.
    """

    weight_mean: Tensor
    weight_factor: Tensor
    mixture_log_weights: Tensor
    mixture_means: Tensor
    mixture_precisions: Tensor
    input_mean: Tensor
    input_precision: Tensor
    projection: Tensor | None

    def __init__(
        self,
        n_features: int,
        n_basis: int,
        covariance: str = "VC",
        heteroscedastic: bool = True,
        joint_mean: bool = True,
        dtype: torch.dtype = torch.float64,
        projection: Float[Tensor, "d c"] | None = None,
    ) -> None:
        super().__init__()
        if covariance not in COVARIANCES:
            raise BadInput(f"Covariance {covariance!r} is unknown; use one of {COVARIANCES}.")
        if n_features < 1 or n_basis < 1:
            raise BadInput(
                f"GPz needs at least one feature and one basis function, got {n_features} "
                f"and {n_basis}."
            )
        self.covariance = cast(Covariance, covariance)
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
            self.register_constraint("log_tau", LogPositive())
        self.register_constraint("log_alpha", LogPositive())
        self._prepared: Prepared | None = None
        self._hold("weight_mean", p)
        self._hold(
            "weight_factor", p, p
        )  # C, where the posterior covariance of the weights is C C'
        self.register_buffer("projection", projection)
        c = d if projection is None else projection.shape[1]
        k = m if c <= WIDE else 1  # until there is a density, which may have any number
        self._hold("mixture_log_weights", k)
        self._hold("mixture_means", k, c)
        self._hold("mixture_precisions", k, c, c)
        self._hold("input_mean", c)
        self._hold("input_precision", c, c)

    def _hold(self, name: str, *shape: int) -> None:
        self.register_buffer(name, torch.zeros(shape, dtype=self.b.dtype, device=self.b.device))

    @property
    def alpha(self) -> Float[Tensor, " p"]:
        """Prior precision of the weights."""
        return self.log_alpha_constraint.transform(self.log_alpha)  # type: ignore[no-any-return]

    @property
    def tau(self) -> Float[Tensor, " m"]:
        """Prior precision of the noise's weights v (3.8)."""
        return self.log_tau_constraint.transform(self.log_tau)  # type: ignore[no-any-return]

    @property
    def noise_weights(self) -> Float[Tensor, " m"]:
        """v of the noise's log precision; zeros where the noise does not depend on the input."""
        return self.v if self.heteroscedastic else torch.zeros_like(self.centres[:, 0])

    def forward(self, X: Float[Tensor, "n d"]) -> MultivariateNormal:
        """Posterior of f at rows without missing values, of rank p (3.11, first term of 3.12)."""
        _, design = self.design(X)
        return MultivariateNormal(
            design @ self.weight_mean, RootLinearOperator(design @ self.weight_factor)
        )

    @torch.no_grad()
    def init_from_data(
        self, X: Float[Tensor, "n d"], y: Float[Tensor, " n"], generator: torch.Generator
    ) -> None:
        """Start values: k-means centres, widths by local density, noise at a tenth of V[y].

        Args:
            X: Inputs; a missing value (NaN) counts as the mean of its column here.
            y: Targets.
            generator: A CPU generator; the same seed gives the same start, bit by bit. Of more than
                50,000 rows, so many are drawn for centres and widths.

        Raises:
            BadInput: X has another number of columns, an infinite value or an empty column.
        """
        self._check(X)
        filled = torch.where(X.isnan(), X.nanmean(dim=0), X)
        if not bool(filled.isfinite().all()):
            column = int((~filled.isfinite().all(0)).nonzero()[0])
            raise BadInput(
                f"Column {column} of X has no value at all; leave it out of the features."
            )
        variance = y.var(correction=0).clamp(min=1e-12)
        if len(filled) > START_ROWS:
            drawn = torch.randperm(len(filled), generator=generator)[:START_ROWS]
            filled = filled[drawn.to(filled.device)]
        self.centres.copy_(kmeans_centres(filled, len(self.centres), generator))
        self.gamma.copy_(start_gamma(filled, self.centres, self.covariance))
        self.log_alpha.copy_((-variance.log()).expand_as(self.log_alpha))
        self.b.copy_(-(0.1 * variance).log())
        if self.heteroscedastic:
            self.v.zero_()
            self.log_tau.zero_()
        gaussian = single_gaussian(X)
        self.input_mean.copy_(gaussian.means[0])
        self.input_precision.copy_(gaussian.precisions[0])

    def precision(self) -> Float[Tensor, "m d"] | Float[Tensor, "m d d"]:
        """Sigma_j^-1 of each basis function; diagonals for the L and D structures."""
        return precision_of(self.gamma, self.covariance, self.centres)

    def design(
        self, X: Float[Tensor, "n d"], noise_variance: Float[Tensor, "n *d_d"] | None = None
    ) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n p"]]:
        """The basis functions, and with them the design matrix of 3.28 (a row a sample).

        Noisy inputs give expected basis functions (5.72), missing ones the expectation 5.86; the
        columns of the linear mean then hold expected inputs, the missing ones given the observed.
        """
        if self.projection is not None:
            X = self.complete(X) @ self.projection.T
        if noise_variance is not None or bool(X.isnan().any()):
            phi = expected_basis(X, noise_variance, self.centres, self.precision())
        else:
            phi = log_kernel(X, self.centres, self.precision()).exp()
        if not self.joint_mean:
            return phi, phi
        return phi, torch.cat([phi, self.linear_columns(X)], dim=1)

    def linear_columns(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n l"]:
        """Columns of the linear mean, the inputs and ones: d + 1 of them, or none without it."""
        if not self.joint_mean:
            return X[:, :0]
        X = self.complete(X)
        return torch.cat([X, torch.ones_like(X[:, :1])], dim=1)

    def complete(self, X: Float[Tensor, "n c"]) -> Float[Tensor, "n c"]:
        """Rows with the expectation of what is missing, under one Gaussian."""
        if not bool(X.isnan().any()):
            return X
        one = torch.zeros_like(self.b.detach()).unsqueeze(0)
        return fill(X, Mixture(one, self.input_mean[None], self.input_precision[None]))

    def log_beta(self, phi: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
        """Log precision of the noise, ln beta (section 3.2), at basis function values phi."""
        return phi @ self.v + self.b if self.heteroscedastic else self.b.expand(len(phi))

    def weight_posterior(
        self,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
    ) -> Posterior:
        """Posterior of the weights (3.32-3.34) given rows, at the present parameters."""
        omega = torch.ones_like(y) if omega is None else omega
        phi, design = self.design(X, noise_variance)
        return weight_posterior(design, y, omega * self.log_beta(phi).exp(), self.log_alpha)

    @torch.no_grad()
    def fit_posterior(
        self,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
        mixture: Literal["basis", "data"] | None = "data",
    ) -> None:
        """What prediction needs at the present parameters: weights (3.32-3.34) and input density.

        Args:
            X: Inputs, NaN where missing.
            y: Targets.
            omega: Sample weights.
            noise_variance: Of the inputs.
            mixture: Density of the inputs, for missing values. "basis": the basis functions'
                centres and covariances, and weights by EM, as the thesis has it (5.22). "data": EM
                moves all three from there. The default departs from the thesis: basis functions
                are often far wider than the data, and galaxies without two bands come out with
                two to three times the error. None: leave the density alone, for a live view.

        Warns (RuntimeWarning) where the Cholesky factor needed jitter.
        """
        self._check(X)
        self.take_posterior(self.weight_posterior(X, y, omega, noise_variance))
        if mixture is not None:
            self.fit_density(X, free=mixture == "data")

    @torch.no_grad()
    def take_posterior(self, posterior: Posterior) -> None:
        """Predict by these weights from now on.

        Warns (RuntimeWarning) where the Cholesky factor needed jitter.
        """
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
    def fit_density(self, X: Float[Tensor, "n d"], free: bool) -> None:
        """The density of the inputs from the basis functions (5.22), or `free` from there on."""
        m, d = self.centres.shape
        floor = LEAST_PRECISION * torch.eye(d, dtype=X.dtype, device=X.device)
        start = Mixture(
            X.new_full((m,), -math.log(m)), self.centres, full_precision(self.precision()) + floor
        )
        found = fit_mixture(X, start, free)
        for name, value in found._asdict().items():
            setattr(self, f"mixture_{name}", value.detach().clone().contiguous())

    @torch.no_grad()
    def predict(
        self, X: Float[Tensor, "n d"], noise_variance: Float[Tensor, "n *d_d"] | None = None
    ) -> GPzPrediction:
        """Predictive mean and parts of the variance (3.10-3.12; 5.19 for uncertain inputs).

        Args:
            X: Inputs, NaN where missing.
            noise_variance: Variances (n, d) or covariances (n, d, d) of the inputs; what stands
                where X is missing is not read.
        """
        self._check(X)
        if len(X) > PREDICTED_ROWS:
            noise = noise_variance
            blocks = [slice(i, i + PREDICTED_ROWS) for i in range(0, len(X), PREDICTED_ROWS)]
            return GPzPrediction.join(
                [self.predict(X[r], None if noise is None else noise[r]) for r in blocks]
            )
        if noise_variance is not None or bool(X.isnan().any()):
            return self.predict_components(X, noise_variance).collapse()
        phi, design = self.design(X)
        return GPzPrediction(
            mean=design @ self.weight_mean,  # (3.11)
            model_variance=(design @ self.weight_factor).square().sum(dim=1),  # (3.12), first term
            noise_variance=(-self.log_beta(phi)).exp(),  # (3.12), second term
            input_variance=torch.zeros_like(X[:, 0]),
        )

    @torch.no_grad()
    def predict_components(
        self, X: Float[Tensor, "n d"], noise_variance: Float[Tensor, "n *d_d"] | None = None
    ) -> Components:
        """The prediction given each component of the inputs' density (5.28, 5.62)."""
        self._check(X)
        if noise_variance is not None:
            return predict_inputs(self._fitted(), X, noise_variance)
        holes = X.isnan().any(1)
        k = len(self.mixture_log_weights) if bool(holes.any()) else 1
        out = X.new_zeros(5, len(X), k)
        if not bool(holes.all()):
            plain = self.predict(X[~holes])
            parts = (plain.mean, plain.model_variance, plain.noise_variance, plain.input_variance)
            out[:, ~holes, 0] = torch.stack([torch.ones_like(plain.mean), *parts])
        if bool(holes.any()):
            some = predict_inputs(self._fitted(), X[holes], None)
            out[:, holes] = torch.stack(
                [
                    some.weights,
                    some.mean,
                    some.model_variance,
                    some.noise_variance,
                    some.input_variance,
                ]
            )
        return Components(*out)

    def predict_density(
        self,
        X: Float[Tensor, "n d"],
        grid: Float[Tensor, " g"],
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
    ) -> Float[Tensor, "n g"]:
        """p(y | observed inputs) on a grid of targets: the full mixture, not its two moments."""
        return self.predict_components(X, noise_variance).density(grid)

    def _fitted(self) -> Prepared:
        """The model as it is now, and what was found of it since it is so."""
        m = len(self.centres)
        mixture = Mixture(self.mixture_log_weights, self.mixture_means, self.mixture_precisions)
        state = PosteriorState(
            basis=kernel_forms(self.centres, self.precision()),
            weights=self.weight_mean[:m],
            linear=self.weight_mean[m:],
            covariance=self.weight_factor @ self.weight_factor.T,
            v=self.noise_weights,
            b=self.b,
            mixture=mixture,
            projection=self.centres[:0] if self.projection is None else self.projection,
        )
        if self._prepared is None or not self._prepared.of(state):
            self._prepared = Prepared(state)
        return self._prepared

    def _check(self, X: Tensor) -> None:
        d = self.input_mean.shape[0]
        if X.dim() != 2 or X.shape[1] != d or not len(X):
            raise BadInput(f"X must be rows of {d} features, got shape {tuple(X.shape)}.")
        if bool(X.isinf().any()):
            row, column = (int(i) for i in X.isinf().nonzero()[0])
            raise BadInput(
                f"X is infinite in row {row}, column {column}; use NaN for a missing value."
            )

    @torch.no_grad()
    def relevance(self) -> Float[Tensor, " m"]:
        """Share of each basis function in the sum of absolute weights (4.37)."""
        size = self.weight_mean[: len(self.centres)].abs()
        return size / size.sum().clamp(min=torch.finfo(size.dtype).tiny)  # (4.37)
