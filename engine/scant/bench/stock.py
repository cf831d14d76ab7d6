"""The counterparts in GPyTorch and scikit-learn, used as documented.

Each function gives a step: a step of Adam where the model is variational, else the evidence and its
gradient. All are in double precision, from the rows that the engine's model gets.
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

MOVE = 1e-3  # by which hyperparameters differ from one step to the next


class _Exact(gpytorch.models.ExactGP):
    def __init__(self, x: Tensor, y: Tensor, kernel: Any, mean: Any) -> None:
        super().__init__(x, y, GaussianLikelihood())
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def exact(x: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Step:
    """`ExactGP` with a lengthscale an input: the evidence and its gradient."""
    return _exact(x, y, ScaleKernel(RBFKernel(ard_num_dims=x.shape[1])), ConstantMean())


def exact_with(kernel: Any, x: Float[Tensor, "n d"], y: Float[Tensor, " n"], noise: float) -> Step:
    """`ExactGP` with a kernel of ours, a variance of noise, and mean zero."""
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
    """One function, or several (`many`) that a strategy mixes into tasks."""

    def __init__(self, z: Tensor, tasks: int = 0) -> None:
        many = z.shape[:-2]
        q = CholeskyVariationalDistribution(z.shape[-2], batch_shape=many)
        strategy: Any = VariationalStrategy(self, z, q, learn_inducing_locations=True)
        if tasks:
            strategy = LMCVariationalStrategy(
                strategy, num_tasks=tasks, num_latents=many[0], latent_dim=-1
            )
        super().__init__(strategy)
        kernel = RBFKernel(ard_num_dims=z.shape[-1], batch_shape=many)
        self.mean_module = ConstantMean(batch_shape=many)
        self.covar_module = ScaleKernel(kernel, batch_shape=many)

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _learning(model: Any, likelihood: Any, loss: Any) -> Step:
    """A step of Adam on what `loss` gives."""
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.03)
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def sparse(x: Float[Tensor, "n d"], y: Float[Tensor, " n"], m: int) -> Step:
    """A variational sparse GP (SVGP) on all rows."""
    model, likelihood = _Sparse(x[:m].clone()).to(x), GaussianLikelihood().to(x)
    bound = VariationalELBO(likelihood, model, len(y))
    return _learning(model, likelihood, lambda: -bound(model(x), y))


def mixed_tasks(
    x: Float[Tensor, "n d"], y: Float[Tensor, " n"], task: Int[Tensor, " n"], m: int
) -> Step:
    """A linear model of coregionalisation with one function, Gaussian tasks, a row of one each."""
    model = _Sparse(x[None, :m].clone(), int(task.max()) + 1).to(x)
    likelihood = GaussianLikelihood().to(x)
    bound = VariationalELBO(likelihood, model, len(y))
    return _learning(model, likelihood, lambda: -bound(model(x, task_indices=task), y))


def mixed_classes(
    x: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    classes: int,
    latent: int,
    m: int,
    batch: int,
    generator: torch.Generator,
) -> Step:
    """A linear model of coregionalisation under a softmax: a batch of rows, all classes."""
    z = x[torch.arange(latent * m) % len(x)].view(latent, m, -1).clone()
    model = _Sparse(z, classes).to(x)
    likelihood = SoftmaxLikelihood(num_classes=classes, mixing_weights=False).to(x)
    bound = VariationalELBO(likelihood, model, len(x))

    def loss() -> Tensor:
        at = torch.randperm(len(x), generator=generator)[:batch].to(x.device)
        return -bound(model(x[at]), label[at])

    return _learning(model, likelihood, loss)


class _Latent(BayesianGPLVM):
    def __init__(self, y: Tensor, dims: int, m: int) -> None:
        n, d = y.shape
        many = torch.Size([d])
        z = torch.randn(d, m, dims, generator=torch.Generator().manual_seed(0)).to(y)
        q = CholeskyVariationalDistribution(m, batch_shape=many)
        strategy = VariationalStrategy(self, z, q, learn_inducing_locations=True)
        zero = torch.zeros(n, dims).to(y)
        start = torch.linalg.svd(y - y.mean(0), full_matrices=False)[0][:, :dims] * n**0.5
        where = VariationalLatentVariable(
            n, d, dims, torch.nn.Parameter(start), NormalPrior(zero, torch.ones_like(zero))
        )
        super().__init__(where, strategy)
        self.mean_module = ConstantMean(batch_shape=many)
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=dims))

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def latent(y: Float[Tensor, "n d"], dims: int, m: int) -> Step:
    """GPyTorch's Bayesian GPLVM, positions sampled, on all rows."""
    model = _Latent(y, dims, m).to(y)
    likelihood = GaussianLikelihood(batch_shape=torch.Size([y.shape[1]])).to(y)
    bound = VariationalELBO(likelihood, model, len(y))

    def loss() -> Tensor:
        return -bound(model(model.sample_latent_variable()), y.T).sum()

    return _learning(model, likelihood, loss)


def regressor(x: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Step:
    """scikit-learn's GP regressor with a lengthscale an input: the evidence and its gradient."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(length_scale=[x.shape[1] ** 0.5] * x.shape[1]) + WhiteKernel()
    return _evidence(GaussianProcessRegressor(kernel, optimizer=None), x, y)


def classifier(x: Float[Tensor, "n d"], label: Int[Tensor, " n"], ard: bool = False) -> Step:
    """scikit-learn's GP classifier (Laplace, two classes), each mode sought from the last one."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    wide = x.shape[1] ** 0.5
    kernel = ConstantKernel(4.0) * RBF(length_scale=[wide] * x.shape[1] if ard else wide)
    return _evidence(GaussianProcessClassifier(kernel, optimizer=None, warm_start=True), x, label)


def _evidence(estimator: Any, x: Tensor, y: Tensor) -> Step:
    found = estimator.fit(x.cpu().numpy(), y.cpu().numpy())
    theta = found.kernel_.theta.copy()

    def step() -> Any:
        theta[0] += MOVE
        return found.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)

    return step
