"""The Student-t process: a GP whose covariance has an inverse Wishart process prior.

Shah, Wilson and Ghahramani (2014), with the covariance integrated out: the targets of n rows are
multivariate t with nu > 2 degrees of freedom and covariance K = variance k(X, X) + noise I. The
predictive mean is the GP's; the variance grows with the misfit y' K^-1 y of the training rows. The
limits are the GP (nu to infinity) and the heaviest tails (nu to 2).

It is the network of Kandemir and Hamprecht (2015, Theorem 1 ii) with its hidden layer integrated
out, but for the noise, which is part of K: nu + n - 1 hidden neurons B ~ N(0, K^-1), where the
theorem prints K, and the output covariance (nu - 2) (B B')^-1.

    model = StudentT.build(X, y, df=5)
    model.fit(steps=100)
    mean, variance, df = model.predict(X_new)

Inference is exact: a step is cubic in the number of rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import GP
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import StudentT as StudentTDistribution

from scant.errors import BadInput
from scant.inference.exact import whitened
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.kernels.constraints import LogPositive
from scant.kernels.rbf import eq
from scant.likelihoods.gaussian import GivenNoise
from scant.models.dfgp.hidden import ViewStack
from scant.models.dfgp.likelihoods import checked_target
from scant.models.hyperprior import log_hyperprior
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize

MIN_NOISE = 1e-6  # in variances of the target
START_NOISE = 0.5
START_DF = 5.0


class TProcessLikelihood(GaussianLikelihood):
    """Likelihood of a Student-t process, whose marginals are t distributions.

    Given f, the noise is taken to be Gaussian with its predictive variance.

    Args:
        noise: Predictive noise variance.
        df: Degrees of freedom of predictions.
    """

    def __init__(self, noise: Float[Tensor, ""], df: Float[Tensor, ""]) -> None:
        super().__init__()
        self.noise_covar, self.df = GivenNoise(noise), df

    def marginal(
        self, function_dist: MultivariateNormal, *args: Any, **kwargs: Any
    ) -> StudentTDistribution:
        """t distribution of y at each row, from mean and variance of f."""
        variance = function_dist.variance + self.noise
        scale = (variance * (self.df - 2) / self.df).sqrt()
        return StudentTDistribution(self.df, function_dist.mean, scale)

    def log_marginal(
        self,
        observations: Float[Tensor, "*b n"],
        function_dist: MultivariateNormal,
        *args: Any,
        **kwargs: Any,
    ) -> Float[Tensor, "*b n"]:
        """ln p(y) of each row, in nats."""
        value: Tensor = self.marginal(function_dist).log_prob(observations)
        return value


class StudentT(GP):
    """Student-t process regression; construct it with `build`.

    Args:
        views: Standardization of the input columns.
        x: Standardized inputs.
        y: Targets.
        df: Initial nu.
        learn_df: True to learn nu.
        ard: True for a lengthscale per column.
        kernel: Kernel over standardized columns, including its variance; default EQ.
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
        df: float,
        learn_df: bool,
        ard: bool,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__()
        self.views = views
        centre, scale = y.mean(), y.std()
        for name, value in {"x": x, "centre": centre, "scale": scale}.items():
            self.register_buffer(name, value)
        self.register_buffer("y", (y - centre) / scale)
        self.kernel = None if kernel is None else kernel.to(x)
        if kernel is None:
            columns = x.shape[1] if ard else 1
            self.log_lengthscale = nn.Parameter(x.new_full((columns,), 0.5 * math.log(x.shape[1])))
            self.log_variance = nn.Parameter(x.new_tensor(1 - START_NOISE).log())
            self.register_constraint("log_lengthscale", LogPositive())
            self.register_constraint("log_variance", LogPositive())
        self.log_noise = nn.Parameter(x.new_tensor(START_NOISE).log())
        self.log_df = nn.Parameter(x.new_tensor(df - 2).log(), requires_grad=learn_df)
        for name in ("log_noise", "log_df"):
            self.register_constraint(name, LogPositive())
        self.notes: list[str] = []

    @classmethod
    def build(
        cls,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        df: float | None = None,
        ard: bool = True,
        kernel: Kernel | None = None,
    ) -> StudentT:
        """Build a process over standardized inputs and targets.

        Args:
            X: Inputs.
            y: Targets.
            df: Fixed nu (the DFGP publication uses the number of hidden neurons); None learns it
                from an initial value of five.
            ard: True for a lengthscale per column.
            kernel: Any GPyTorch kernel; default EQ.

        Raises:
            BadInput: Two or fewer degrees of freedom, values that are not finite, a target that
                does not vary.
        """
        if df is not None and not df > 2:
            raise BadInput(f"A Student-t process needs more than 2 degrees of freedom, got {df}.")
        if len(y) != len(X) or len(y) < 2:
            raise BadInput(f"Two rows at least, with a target each; got {len(X)} and {len(y)}.")
        y = checked_target(y)
        views = ViewStack([X])
        start = START_DF if df is None else df
        return cls(views, views([X])[0], y, start, df is None, ard, kernel)

    @property
    def df(self) -> Float[Tensor, ""]:
        """Degrees of freedom nu."""
        return 2 + self.log_df.exp()

    @property
    def noise(self) -> Float[Tensor, ""]:
        """Noise variance, in variances of the targets."""
        return self.log_noise.exp() + MIN_NOISE

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        self.initialize(log_noise=(torch.as_tensor(value).to(self.log_noise) - MIN_NOISE).log())

    @property
    def lengthscale(self) -> Float[Tensor, "*_"]:
        """Lengthscales, in standard deviations of the columns."""
        if self.kernel is not None:
            lengthscale: Tensor = self.kernel.lengthscale
            return lengthscale
        return self.log_lengthscale.exp()

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        self.initialize(log_lengthscale=torch.as_tensor(value).to(self.log_lengthscale).log())

    @property
    def likelihood(self) -> TProcessLikelihood:
        """Likelihood of targets in their unit; computing it is cubic in the training rows."""
        factor, df = self._misfit(self._solved()[1])
        return TProcessLikelihood(self.noise * factor * self.scale.square(), df)

    def _misfit(self, whitened: Float[Tensor, " n"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Variance factor over the GP's prediction, and its degrees of freedom (eq. 6)."""
        n, df = len(self.y), self.df
        return (df + whitened.square().sum() - 2) / (df + n - 2), df + n

    def _kernel(self, a: Tensor, b: Tensor) -> Tensor:
        if self.kernel is not None:
            K: Tensor = self.kernel(a, b).to_dense()
            return K
        lengthscale = self.log_lengthscale.exp()
        return self.log_variance.exp() * eq(a / lengthscale, b / lengthscale)

    def _solved(self) -> tuple[Float[Tensor, "n n"], Float[Tensor, " n"]]:
        """Cholesky factor L of K, and L^-1 y."""
        K = self._kernel(self.x, self.x) + self.noise * torch.eye(len(self.x)).to(self.x)
        with collect_numerical_warnings(self.notes):
            lower, whitened_y = whitened(K, self.y.unsqueeze(1))
        return lower, whitened_y.squeeze(1)

    def log_density(self) -> Float[Tensor, ""]:
        """ln p(y) in nats, y in its own unit (Shah et al. 2014, eq. 2)."""
        lower, whitened_y = self._solved()
        value = log_density(
            whitened_y.square().sum(), lower.diagonal().log().sum(), len(whitened_y), self.df
        )
        return value - len(whitened_y) * self.scale.log()

    def elbo(self) -> Float[Tensor, ""]:
        """`log_density` plus the log density of registered priors."""
        return self.log_density() + log_hyperprior(self)

    def fit(self, steps: int = 100) -> list[float]:
        """Run L-BFGS until it converges; return the objective after each step."""
        return maximize(StudentTTrainer(self), steps)

    @torch.no_grad()
    def predict(
        self, X: Float[Tensor, "k d"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"], float]:
        """Mean, variance (with noise) and degrees of freedom of the t distribution of y.

        Shah et al. (2014), eq. 6. The scale of the distribution is sqrt(variance (df - 2) / df).
        """
        lower, whitened_y = self._solved()
        x = self.views([X])[0]
        cross = torch.linalg.solve_triangular(lower, self._kernel(self.x, x), upper=False)
        prior_variance = (
            self.log_variance.exp() if self.kernel is None else self.kernel(x, diag=True)
        )
        variance = (prior_variance - cross.square().sum(0)).clamp(min=0) + self.noise
        factor, df = self._misfit(whitened_y)
        mean = (whitened_y @ cross) * self.scale + self.centre
        return mean, variance * factor * self.scale.square(), float(df)

    @property
    def noise_variance(self) -> Float[Tensor, ""]:
        """Noise part of the variance of `predict`, in squared units of y."""
        return self.noise * self._misfit(self._solved()[1])[0] * self.scale.square()

    def forward(self, X: Float[Tensor, "k d"]) -> MultivariateNormal:
        """Mean and covariance of f (a multivariate t) in the unit of the targets.

        `likelihood(model(X))` gives the t distributions of `predict`.
        """
        lower, whitened_y = self._solved()
        x = self.views([X])[0]
        cross = torch.linalg.solve_triangular(lower, self._kernel(self.x, x), upper=False)
        factor = self._misfit(whitened_y)[0] * self.scale.square()
        mean = (whitened_y @ cross) * self.scale + self.centre
        return MultivariateNormal(mean, (self._kernel(x, x) - cross.T @ cross) * factor)


class StudentTTrainer(AdamLBFGS):
    """L-BFGS on `StudentT.elbo`."""

    def __init__(self, model: StudentT) -> None:
        super().__init__(model, model.elbo, len(model.y), adam=0)


def log_density(
    square: Float[Tensor, ""], half_log_det: Float[Tensor, ""], n: int, df: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """Log density of a multivariate t with covariance K, from y' K^-1 y and ln|K| / 2."""
    constant = torch.lgamma((df + n) / 2) - torch.lgamma(df / 2)
    constant = constant - n / 2 * ((df - 2) * math.pi).log()
    return constant - half_log_det - (df + n) / 2 * torch.log1p(square / (df - 2))
