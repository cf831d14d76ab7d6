"""GPyTorch's sparse variational GP as a baseline (Hensman, Fusi and Lawrence 2013; SGP).

Full batches, learned inducing inputs initialized by k-means, and a Gaussian likelihood or, for two
classes, a Bernoulli likelihood with a probit link.

    model = SVGP.build(X, y, inducing=10, generator=generator)
    model.fit(steps=300)
    mean, variance = model.predict(X_new)
"""

from __future__ import annotations

import math
from typing import Literal

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from jaxtyping import Float
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from scant.inference.kmeans import kmeans_centres
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.dfgp.hidden import ViewStack
from scant.models.dfgp.likelihoods import checked_target
from scant.optim.adam_lbfgs import RATE, AdamLBFGS
from scant.optim.ascent import maximize


class SVGP(gpytorch.models.ApproximateGP):
    """Sparse variational GP; construct it with `build`.

    Calling the model takes standardized inputs (`views([X])[0]`) and returns f on the standardized
    target's scale, as `likelihood` expects; `predict` uses the original units.

    Args:
        views: Standardization of the input columns.
        x: Standardized inputs.
        y: Targets, or classes 0 and 1.
        classes: True for a Bernoulli likelihood.
        inducing: Initial inducing inputs.
        ard: True for a lengthscale per column.
        kernel: Kernel over standardized inputs, including its variance; default EQ.
    """

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]

    def __init__(
        self,
        views: ViewStack,
        x: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        classes: bool,
        inducing: Float[Tensor, "m d"],
        ard: bool,
        kernel: Kernel | None = None,
    ) -> None:
        q = CholeskyVariationalDistribution(len(inducing), mean_init_std=0.0)  # no random start
        super().__init__(VariationalStrategy(self, inducing, q, learn_inducing_locations=True))
        self.views, self.classes = views, classes
        one, zero = torch.ones_like(y.mean()), torch.zeros_like(y.mean())
        centre, scale = (zero, one) if classes else (y.mean(), y.std())
        self.register_buffer("x", x)
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)
        self.register_buffer("y", (y - centre) / scale)
        if kernel is None:
            width = x.shape[1]
            kernel = RBFKernel(ard_num_dims=width if ard else None)
            kernel.lengthscale = width**0.5
            kernel = ScaleKernel(kernel)
        self.mean_module = ConstantMean()
        self.covar_module = kernel
        self.likelihood = BernoulliLikelihood() if classes else GaussianLikelihood()
        self.notes: list[str] = []
        self.double().to(x.device)

    @classmethod
    def build(
        cls,
        X: Float[Tensor, "n d"],
        y: Float[Tensor, " n"],
        likelihood: Literal["gaussian", "bernoulli"] = "gaussian",
        inducing: int = 10,
        generator: torch.Generator | None = None,
        ard: bool = True,
        kernel: Kernel | None = None,
    ) -> SVGP:
        """Build a model over standardized inputs, with inducing inputs from k-means.

        Args:
            X: Inputs.
            y: Targets; classes as 0 and 1.
            likelihood: `"gaussian"`, or `"bernoulli"` for two classes.
            inducing: Number of inducing inputs.
            generator: A CPU generator for k-means; by default one with seed 0.
            ard: True for a lengthscale per column.
            kernel: Any GPyTorch kernel; default EQ.

        Raises:
            BadInput: Values that are not finite, or a target that does not vary.
        """
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        y = checked_target(y)
        views = ViewStack([X])
        x = views([X])[0]
        Z = kmeans_centres(x, min(inducing, len(x)), generator)
        return cls(views, x, y, likelihood == "bernoulli", Z, ard, kernel)

    def forward(self, x: Float[Tensor, "*b n d"]) -> MultivariateNormal:
        """Prior of f at standardized inputs."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def row_elbo(self) -> Float[Tensor, ""]:
        """ELBO per row on the standardized target's scale; NaN if the factorization fails."""
        bound = gpytorch.mlls.VariationalELBO(self.likelihood, self, len(self.y))
        try:
            with collect_numerical_warnings(self.notes):
                value: Tensor = bound(self(self.x), self.y)
                return value
        except (NanError, NotPSDError):
            return self.centre * torch.nan

    def fit(self, steps: int = 300, rate: float = RATE) -> list[float]:
        """Run Adam; return the ELBO before each step, in nats. Stop if it is not finite."""
        return maximize(SVGPTrainer(self, rate), steps)

    @torch.no_grad()
    def predict(self, X: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of y, with noise; for classes those of the 0/1 label."""
        self.eval()
        prediction = self.likelihood(self(self.views([X])[0]))
        return prediction.mean * self.scale + self.centre, prediction.variance * self.scale.square()


class SVGPTrainer(AdamLBFGS):
    """Adam on GPyTorch's `VariationalELBO`.

    Args:
        model: The model, trained in place.
        rate: Learning rate.
        horizon: Number of steps over which the rate decays to a hundredth; None keeps it constant.
    """

    def __init__(self, model: SVGP, rate: float = RATE, horizon: int | None = None) -> None:
        # GPyTorch's bound is per row already.
        super().__init__(model, model.row_elbo, 1, None, rate, horizon)

    def step(self) -> float:
        """Take one step and return the ELBO in nats, y in its own unit (see `AdamLBFGS.step`)."""
        model: SVGP = self.model
        model.train()
        return len(model.y) * (super().step() - math.log(model.scale.item()))
