"""GPz: a sparse Gaussian process of basis functions with input-dependent noise.

Almosallam (2017), chapters 2-5. The target is f(x) + noise,

    f(x) = sum_j w_j phi_j(x) + a' x + a_0,     phi_j(x) = exp(-|Gamma_j (x - mu_j)|^2 / 2),
    noise ~ N(0, 1 / beta(x)),                  beta(x) = exp(sum_j v_j phi_j(x) + b),

with separate Gaussian prior precisions for every weight w_j and a (alpha) and v_j (tau): automatic
relevance determination of mean and noise. w and a are integrated out, the rest is learned.

X and y should be standardized; the prior mean of the linear part is zero, as in the thesis's
experiments (below 3.36), or a linear regression (3.27).

    model = GPz(n_features=5, n_basis=100)
    model.init_from_data(X, y, generator)
    trainer = GPzTrainer(model, X, y)               # scant.models.gpz.training
    trainer.step()                                  # repeat
    model.fit_posterior(X, y)
    model.predict(X_new).mean
"""

from __future__ import annotations

import warnings
from itertools import repeat
from typing import Literal

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator.operators import RootLinearOperator
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.expectations import cached_chunks, kernel_forms
from scant.kernels.constraints import LogPositive
from scant.models.gpz.basis import relevant_count
from scant.models.gpz.design import BasisFunctionModel
from scant.models.gpz.evidence import Posterior, weight_posterior
from scant.models.gpz.given import PosteriorState, Prepared
from scant.models.gpz.prediction import Components, GPzPrediction
from scant.models.gpz.uncertain_inputs import predict_inputs

# Rows per block of a prediction with noise or missing values, which bounds its memory.
PREDICTED_ROWS = 1 << 16


class GPz(BasisFunctionModel):
    """Sparse GP with basis functions of one of six covariance structures.

    Args:
        n_features: Number of input columns d.
        n_basis: Number of basis functions m.
        covariance: Global or Variable (G, V), times Length-scale, Diagonal or full Covariance
            (L, D, C) of the basis functions (list below 4.38).
        heteroscedastic: Let the noise depend on the input (section 3.2).
        joint_mean: Learn a linear mean together with the rest (section 3.5).
        dtype: float64, or float32 for speed on a GPU.
        projection: Matrix from the columns of X to the d inputs of the basis functions, such as
            principal components; None for the identity.
        basis: "rbf" (4.38), or "tanh": tanh(h_j' x + b_j) (4.22, 4.34), with h_j in `gamma` and a
            point of the hyperplane h_j' x + b_j = 0 in `centres`; `covariance` is not used.
        rank: Rows q of Gamma_j, a low-rank approximation of the precision (section 4.4.2); None
            for d. Only for full covariances.
        regression_mean: The prior mean of the linear mean's weights is a linear regression (3.27)
            instead of zero; `init_from_data` fits it by least squares.
        noise_link: "exp", or "squared": the noise variance is (sum_j v_j phi_j(x) + b)^2, whose
            expectation for uncertain inputs is exact (section 5.1.1, below 5.17). The thesis
            advises against it, since the exponential trains more stably: the evidence has a pole
            where the root is zero at a row. Each step allocates the n x p design matrix. The state
            of a model does not tell its link.

    Missing values are NaN in X. The mixture that predicts them, and the single Gaussian that fills
    the linear mean's columns in training, are part of the state.

    Precisions are stored as logarithms (`alpha`, `tau`), and Gamma enters squared. After
    `fit_posterior`, `state_dict` contains everything that predictions need.

    Basis functions by tanh or of low rank take complete inputs without noise: chapter 5's integrals
    are of Gaussians with a full covariance.

    `model(x)` is the posterior of f at x (a GPyTorch model) and `GPzLikelihood(model)(model(x), x)`
    that of a new target; `predict` returns the same moments with the variance split by source. The
    objective is `scant.models.gpz.log_evidence.LogEvidence`.

    Raises:
        BadInput: An unknown covariance, basis or link, sizes below one, a rank without a full
            covariance or beyond the inputs, or a regression without a linear mean.
    """

    weight_mean: Tensor
    weight_factor: Tensor
    prior_mean: Tensor | None  # prior mean of all weights (3.28)

    def __init__(
        self,
        n_features: int,
        n_basis: int,
        covariance: str = "VC",
        heteroscedastic: bool = True,
        joint_mean: bool = True,
        dtype: torch.dtype = torch.float64,
        projection: Float[Tensor, "d c"] | None = None,
        basis: str = "rbf",
        rank: int | None = None,
        regression_mean: bool = False,
        noise_link: str = "exp",
    ) -> None:
        super().__init__(
            n_features, n_basis, covariance, joint_mean, dtype, projection, basis, rank
        )
        if noise_link not in ("exp", "squared"):
            raise BadInput(f"Noise link {noise_link!r} is unknown; use 'exp' or 'squared'.")
        if regression_mean and not joint_mean:
            raise BadInput("A regression as prior mean needs the linear mean: set joint_mean.")
        self.heteroscedastic, self.noise_link = heteroscedastic, noise_link
        m, d = n_basis, n_features
        p = m + (d + 1 if joint_mean else 0)

        def free(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(shape, dtype=dtype))

        self.log_alpha = free(p)
        self.b = free()
        if heteroscedastic:
            self.v = free(m)
            self.log_tau = free(m)
            self.register_constraint("log_tau", LogPositive())
        self.register_constraint("log_alpha", LogPositive())
        self._prepared: Prepared | None = None
        self._register_zeros("weight_mean", p)
        # C, where the posterior covariance of the weights is C C'
        self._register_zeros("weight_factor", p, p)
        self.register_buffer("prior_mean", None)
        if regression_mean:
            self._register_zeros("prior_mean", p)

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
        """Weights v of the noise; zeros for a homoscedastic model."""
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
        """Initialize parameters: k-means centers, widths by local density, noise V[y] / 10.

        Args:
            X: Inputs; missing values (NaN) are replaced by column means.
            y: Targets.
            generator: A CPU generator; equal seeds give bitwise equal results. At most 50,000
                random rows are used for centers and widths.

        Raises:
            BadInput: X has the wrong number of columns, an infinite value or an empty column.
        """
        self.init_basis(X, generator)
        variance = y.var(correction=0).clamp(min=1e-12)
        self.log_alpha.copy_((-variance.log()).expand_as(self.log_alpha))
        noise = 0.1 * variance
        self.b.copy_(-noise.log() if self.noise_link == "exp" else noise.sqrt())
        if self.heteroscedastic:
            self.v.zero_()
            self.log_tau.zero_()
        if self.prior_mean is not None:
            linear = self.linear_columns(X)
            self.prior_mean[len(self.centres) :] = torch.linalg.lstsq(
                linear, y.unsqueeze(1), driver="gelsd"
            ).solution[:, 0]

    def prior_function(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"] | float:
        """Prior mean of f (3.27); zero without a regression."""
        if self.prior_mean is None:
            return 0.0
        return self.linear_columns(X) @ self.prior_mean[len(self.centres) :]

    def log_beta(self, phi: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
        """Log precision ln beta of the noise (section 3.2), given basis function values phi."""
        linear = phi @ self.v + self.b if self.heteroscedastic else self.b.expand(len(phi))
        return linear if self.noise_link == "exp" else -linear.square().log()

    def weight_posterior(
        self,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"] | None = None,
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
    ) -> Posterior:
        """Posterior of the weights (3.32-3.34) given rows, at the current parameters.

        With a regression as prior mean, it is that of w - a: y - Phi' a has a prior mean of zero.
        """
        y = y - self.prior_function(X)
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
        """Compute the posterior of the weights (3.32-3.34) and the input density for predictions.

        Args:
            X: Inputs, NaN where missing.
            y: Targets.
            omega: Sample weights.
            noise_variance: Variances or covariances of the inputs.
            mixture: Density of the inputs, for missing values. "basis" uses the basis functions'
                centers and covariances with weights by EM, as in the thesis (5.22). "data" (the
                default) fits all three by EM: basis functions are often far wider than the data,
                which for galaxies without two bands gives two to three times the error. None keeps
                the current density, for a live view.

        Warns:
            RuntimeWarning: The Cholesky factorization needed jitter.
        """
        self.check(X, noise_variance)
        self.take_posterior(self.weight_posterior(X, y, omega, noise_variance))
        if mixture is not None and not self.needs_complete_inputs:
            self.fit_density(X, free=mixture == "data")

    @torch.no_grad()
    def take_posterior(self, posterior: Posterior) -> None:
        """Store the posterior of the weights for predictions.

        Warns:
            RuntimeWarning: The Cholesky factorization needed jitter.
        """
        if posterior.jitter:
            warnings.warn(
                f"The posterior of the weights needed jitter {posterior.jitter:g} of its mean "
                "diagonal; the variances are less certain than they look.",
                RuntimeWarning,
                stacklevel=2,
            )
        mean = posterior.mean
        self.weight_mean.copy_(mean if self.prior_mean is None else mean + self.prior_mean)
        self.weight_factor.copy_(posterior.factor)

    @torch.no_grad()
    def predict(
        self, X: Float[Tensor, "n d"], noise_variance: Float[Tensor, "n *d_d"] | None = None
    ) -> GPzPrediction:
        """Predictive mean and parts of the variance (3.10-3.12; 5.19 for uncertain inputs).

        Args:
            X: Inputs, NaN where missing.
            noise_variance: Variances (n, d) or covariances (n, d, d) of the inputs; entries of
                missing values are ignored.
        """
        self.check(X, noise_variance)
        if noise_variance is None and not bool(X.isnan().any()):
            d = X.shape[1]
            width = max(len(self.weight_mean), d * (d + 3) // 2)  # of the design, and of `features`
            exact = cached_chunks(len(X), width, X.device)
            return GPzPrediction.join([self._predict_exact(X[rows]) for rows in exact])
        noise = repeat(None) if noise_variance is None else noise_variance.split(PREDICTED_ROWS)
        blocks = zip(X.split(PREDICTED_ROWS), noise)
        return GPzPrediction.join([self.predict_components(*block).collapse() for block in blocks])

    def _predict_exact(self, X: Float[Tensor, "n d"]) -> GPzPrediction:
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
        """Prediction given each component of the inputs' density (5.28, 5.62)."""
        self.check(X, noise_variance)
        if noise_variance is not None:
            return predict_inputs(self._fitted(), X, noise_variance)
        incomplete = X.isnan().any(1)
        if not bool(incomplete.any()):
            return self.predict(X).components()
        predicted = predict_inputs(self._fitted(), X[incomplete], None)
        if bool(incomplete.all()):
            return predicted
        return predicted.joined(self.predict(X[~incomplete]), incomplete)

    def predict_density(
        self,
        X: Float[Tensor, "n d"],
        grid: Float[Tensor, " g"],
        noise_variance: Float[Tensor, "n *d_d"] | None = None,
    ) -> Float[Tensor, "n g"]:
        """p(y | observed inputs) on a grid of targets, as the full mixture."""
        return self.predict_components(X, noise_variance).density(grid)

    def _fitted(self) -> Prepared:
        """Cached `Prepared` of the current state."""
        m = len(self.centres)
        state = PosteriorState(
            basis=kernel_forms(self.centres, self.precision()),
            weights=self.weight_mean[:m],
            linear=self.weight_mean[m:],
            covariance=self.weight_factor @ self.weight_factor.T,
            v=self.noise_weights,
            b=self.b,
            mixture=self.mixture,
            projection=self.centres[:0] if self.projection is None else self.projection,
        )
        if self._prepared is None or not self._prepared.matches(state):
            self._prepared = Prepared(state, self.noise_link)
        return self._prepared

    @torch.no_grad()
    def relevance(self) -> Float[Tensor, " m"]:
        """Relative absolute weight of each basis function (4.37)."""
        size = self.weight_mean[: len(self.centres)].abs()
        return size / size.sum().clamp(min=torch.finfo(size.dtype).tiny)  # (4.37)

    def relevant_count(self, share: float = 0.99) -> int:
        """Fewest basis functions with this share of all absolute weights (3.2)."""
        return relevant_count(self.weight_mean[: len(self.centres)], share)
