"""Counterparts in GPyTorch and scikit-learn, used as documented.

Functions return a step: an Adam step for variational models, else the evidence and its gradient,
with the rows of the engine's model.
"""

from __future__ import annotations

import copy
from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood, SoftmaxLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from gpytorch.models.gplvm.bayesian_gplvm import BayesianGPLVM
from gpytorch.models.gplvm.latent_variable import VariationalLatentVariable
from gpytorch.priors import NormalPrior
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    LMCVariationalStrategy,
    VariationalStrategy,
)
from jaxtyping import Float, Int
from torch import Tensor

from scant.bench.timing import Step

MOVE = 1e-3  # change of hyperparameters between steps


class _Exact(gpytorch.models.ExactGP):
    def __init__(self, x: Tensor, y: Tensor, kernel: Any, mean: Any) -> None:
        super().__init__(x, y, GaussianLikelihood())
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def exact(x: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Step:
    """Build the evidence of `ExactGP` with ARD, and its gradient."""
    return _exact(x, y, ScaleKernel(RBFKernel(ard_num_dims=x.shape[1])), ConstantMean())


def exact_with(kernel: Any, x: Float[Tensor, "n d"], y: Float[Tensor, " n"], noise: float) -> Step:
    """Build the evidence of `ExactGP` with a given kernel, noise variance, and zero mean."""
    return _exact(x, y, copy.deepcopy(kernel), ZeroMean(), noise)


def _exact(x: Tensor, y: Tensor, kernel: Any, mean: Any, noise: float = 0.1) -> Step:
    model = _Exact(x, y, kernel, mean).to(x)
    model.likelihood.noise = torch.as_tensor(noise).to(x)
    evidence = ExactMarginalLogLikelihood(model.likelihood, model)
    model.train()

    def step() -> Tensor:
        model.zero_grad()
        value = -evidence(model(x), y)
        value.backward()
        return value.detach()

    return step


class _Sparse(gpytorch.models.ApproximateGP):
    """Sparse GP of one function, or of a batch of functions mixed into tasks."""

    def __init__(self, z: Tensor, tasks: int = 0) -> None:
        batch_shape = z.shape[:-2]
        q = CholeskyVariationalDistribution(z.shape[-2], batch_shape=batch_shape)
        strategy: Any = VariationalStrategy(self, z, q, learn_inducing_locations=True)
        if tasks:
            strategy = LMCVariationalStrategy(
                strategy, num_tasks=tasks, num_latents=batch_shape[0], latent_dim=-1
            )
        super().__init__(strategy)
        kernel = RBFKernel(ard_num_dims=z.shape[-1], batch_shape=batch_shape)
        self.mean_module = ConstantMean(batch_shape=batch_shape)
        self.covar_module = ScaleKernel(kernel, batch_shape=batch_shape)

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _adam_step(model: Any, likelihood: Any, loss: Any) -> Step:
    """Return an Adam step on a loss."""
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.03)
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def sparse(x: Float[Tensor, "n d"], y: Float[Tensor, " n"], m: int) -> Step:
    """Build a variational sparse GP (SVGP) on all rows."""
    model, likelihood = _Sparse(x[:m].clone()).to(x), GaussianLikelihood().to(x)
    bound = VariationalELBO(likelihood, model, len(y))
    return _adam_step(model, likelihood, lambda: -bound(model(x), y))


def mixed_tasks(
    x: Float[Tensor, "n d"], y: Float[Tensor, " n"], task: Int[Tensor, " n"], m: int
) -> Step:
    """Build an LMC with one latent function and Gaussian tasks; each row has one task."""
    model = _Sparse(x[None, :m].clone(), int(task.max()) + 1).to(x)
    likelihood = GaussianLikelihood().to(x)
    bound = VariationalELBO(likelihood, model, len(y))
    return _adam_step(model, likelihood, lambda: -bound(model(x, task_indices=task), y))


def mixed_classes(
    x: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    classes: int,
    latent: int,
    m: int,
    batch: int,
    generator: torch.Generator,
) -> Step:
    """Build an LMC with a softmax over all classes, trained on minibatches."""
    z = x[torch.arange(latent * m) % len(x)].view(latent, m, -1).clone()
    model = _Sparse(z, classes).to(x)
    likelihood = SoftmaxLikelihood(num_classes=classes, mixing_weights=False).to(x)
    bound = VariationalELBO(likelihood, model, len(x))

    def loss() -> Tensor:
        at = torch.randperm(len(x), generator=generator)[:batch].to(x.device)
        return -bound(model(x[at]), label[at])

    return _adam_step(model, likelihood, loss)


class _Latent(BayesianGPLVM):
    def __init__(self, y: Tensor, dims: int, m: int) -> None:
        n, d = y.shape
        batch_shape = torch.Size([d])
        z = torch.randn(d, m, dims, generator=torch.Generator().manual_seed(0)).to(y)
        q = CholeskyVariationalDistribution(m, batch_shape=batch_shape)
        strategy = VariationalStrategy(self, z, q, learn_inducing_locations=True)
        zero = torch.zeros(n, dims).to(y)
        start = torch.linalg.svd(y - y.mean(0), full_matrices=False)[0][:, :dims] * n**0.5
        latent = VariationalLatentVariable(
            n, d, dims, torch.nn.Parameter(start), NormalPrior(zero, torch.ones_like(zero))
        )
        super().__init__(latent, strategy)
        self.mean_module = ConstantMean(batch_shape=batch_shape)
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=dims))

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def latent(y: Float[Tensor, "n d"], dims: int, m: int) -> Step:
    """Build the Bayesian GPLVM of GPyTorch with sampled positions on all rows."""
    model = _Latent(y, dims, m).to(y)
    likelihood = GaussianLikelihood(batch_shape=torch.Size([y.shape[1]])).to(y)
    bound = VariationalELBO(likelihood, model, len(y))

    def loss() -> Tensor:
        return -bound(model(model.sample_latent_variable()), y.T).sum()

    return _adam_step(model, likelihood, loss)


def regressor(x: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Step:
    """Build the evidence of scikit-learn's GP regressor with ARD, and its gradient."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(length_scale=[x.shape[1] ** 0.5] * x.shape[1]) + WhiteKernel()
    return _evidence(GaussianProcessRegressor(kernel, optimizer=None), x, y)


def classifier(x: Float[Tensor, "n d"], label: Int[Tensor, " n"], ard: bool = False) -> Step:
    """Build the evidence of scikit-learn's binary GP classifier, with warm-started modes."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    lengthscale = x.shape[1] ** 0.5
    kernel = ConstantKernel(4.0) * RBF(
        length_scale=[lengthscale] * x.shape[1] if ard else lengthscale
    )
    return _evidence(GaussianProcessClassifier(kernel, optimizer=None, warm_start=True), x, label)


def _evidence(estimator: Any, x: Tensor, y: Tensor) -> Step:
    fitted = estimator.fit(x.cpu().numpy(), y.cpu().numpy())
    theta = fitted.kernel_.theta.copy()

    def step() -> Any:
        theta[0] += MOVE
        return fitted.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)

    return step
