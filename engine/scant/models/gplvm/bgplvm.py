"""BGPLVM: the Bayesian GP latent variable model, with the optimal q(U) in closed form.

Titsias and Lawrence (2010); Yousefi (2021), 3.12-3.21. Outputs y_d(x) = f_d(x) + noise with
f_d ~ GP(0, k), latent positions x ~ N(0, I), Gaussian q(X) with diagonal covariances, and inducing
inputs Z. SCLVM (`sclvm`) is the same model with a kernel over (x, class).

    generator = torch.Generator().manual_seed(seed)
    model = BGPLVM.build(Y, 5, 50, generator)
    trainer = GPLVMTrainer(model)              # scant.models.gplvm.training
    elbo = trainer.step()                        # repeat
    model.infer(Y_new).mean

It is a GPyTorch model: `model(x)` is the posterior of the output functions at given positions. Any
kernel with the psi statistics of `ClassPrivateKernel` may be used.

Without missing values the cost of a step does not depend on the number of outputs
(`collapsed_bound`). On a CPU, equal seeds give bitwise equal runs.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from jaxtyping import Float, Int
from linear_operator.operators import MatmulLinearOperator
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.kmeans import kmeans_centres
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.kernels.shared_private import ClassPrivateKernel
from scant.models.gplvm.collapsed_bound import (
    Posterior,
    Statistics,
    TargetModel,
    Targets,
    collapsed,
)
from scant.models.gplvm.collapsed_bound import posterior as optimal_posterior
from scant.models.gplvm.latent_inference import LatentPosterior, infer_latent
from scant.models.hyperprior import log_hyperprior

JITTER = 1e-6  # in units of the kernel's variance
START_STD = 0.3
ROWS, CERTAIN_ROWS = 16, 4096  # rows decoded per block: with uncertain, with fixed positions


class BGPLVM(TargetModel):
    """Bayesian GPLVM; construct it with `build`.

    Args:
        targets: Standardized outputs.
        kernel: Kernel over (position, class).
        mean: Initial means of q(X).
        label: Class of each row.
        inducing: Initial inducing inputs Z.
        inducing_label: Class of each inducing input.
        noise: Initial noise variance, on the standardized outputs' scale.
    """

    label: Tensor
    inducing_label: Tensor

    def __init__(
        self,
        targets: Targets,
        kernel: ClassPrivateKernel,
        mean: Float[Tensor, "n q"],
        label: Int[Tensor, " n"],
        inducing: Float[Tensor, "m q"],
        inducing_label: Int[Tensor, " m"],
        noise: float = 0.1,
    ) -> None:
        super().__init__(targets)
        self.register_buffer("label", label)
        self.register_buffer("inducing_label", inducing_label)
        self.kernel = kernel
        self.register_parameter("mean", nn.Parameter(mean.clone()))
        self.register_log("log_std", torch.full_like(mean, START_STD).log())
        self.register_parameter("inducing", nn.Parameter(inducing.clone()))
        self.register_log("log_noise", torch.tensor(noise).to(mean).log())
        self.notes: list[str] = []
        self._cached_posterior: tuple[Tensor, Posterior] | None = None

    @classmethod
    def build(
        cls,
        Y: Float[Tensor, "n d"],
        n_latent: int,
        inducing: int,
        generator: torch.Generator,
        rank: int | None = None,
    ) -> BGPLVM:
        """Build a model initialized with the principal components of the outputs.

        Args:
            Y: Outputs, NaN where missing.
            n_latent: Number Q of latent dimensions; ARD switches off those that are not needed.
            inducing: Number M of inducing inputs.
            generator: A CPU generator for k-means over the positions.
            rank: See `Targets.from_outputs`.

        Raises:
            BadInput: A number below one, or outputs without values.
        """
        check(Y, {"latent dimension": n_latent, "inducing input": inducing})
        targets = Targets.from_outputs(Y.double(), rank)
        mean, noise = principal(targets.y, n_latent, targets.squares)
        Z = kmeans_centres(mean, inducing, generator)
        kernel = ClassPrivateKernel(n_latent, 0, 1)
        zeros = torch.zeros(len(Y), dtype=torch.long), torch.zeros(inducing, dtype=torch.long)
        return cls(targets, kernel, mean, zeros[0], Z, zeros[1], noise)

    @property
    def std(self) -> Float[Tensor, "n q"]:
        """Standard deviations of q(X)."""
        return self.log_std.exp()

    @std.setter
    def std(self, value: Tensor | float) -> None:
        self.initialize(log_std=torch.as_tensor(value).to(self.log_std).log())

    def forward(self, x: Float[Tensor, "k q"], label: int = 0) -> MultitaskMultivariateNormal:
        """Posterior of all output functions at latent positions of a class.

        The k x k covariances are lazy. q(U) is that of the current parameters, without gradients.
        """
        W, spread = self.posterior()
        labels = torch.full((len(x),), label).to(self.label)
        cross = self.kernel.covariance(x, labels, self.inducing, self.inducing_label).detach()
        prior = self.kernel(torch.cat([x, labels.unsqueeze(1).to(x)], 1))
        covariances = [prior - MatmulLinearOperator(cross @ part, cross.T) for part in spread]
        return self.outputs(cross @ W, covariances)

    def statistics(self, variance: Float[Tensor, "n q"] | None = None) -> Statistics:
        """Statistics of all rows for the bound; `variance` is that of q(X), if already computed."""
        targets, variance = self.targets, self._variance() if variance is None else variance
        psi0 = self.kernel.psi0()  # of one row (3.18)
        args = self.mean, variance, self.label, self.inducing, self.inducing_label
        # (3.19-3.20)
        K, psi1, psi2 = self.kernel.matrices(*args, targets.masks, JITTER)
        with collect_numerical_warnings(self.notes):
            lower = psd_safe_cholesky(K.detach())
        return Statistics(K, lower, psi0, psi1.T @ targets.y, psi2, self.noise)

    def bound(self) -> Float[Tensor, ""]:
        """Lower bound on ln p(Y) (3.25) in nats, with Y in its own unit."""
        variance = self._variance()
        # KL(q(X) || p(X))
        squares = (self.mean.square() + variance).sum() - variance.numel()
        divergence = 0.5 * squares - self.log_std.sum()
        # (3.25): the sum of 3.26 over the outputs, less the divergence
        return collapsed(self.statistics(variance), self.targets) - divergence

    def _variance(self) -> Float[Tensor, "n q"]:
        return (2 * self.log_std).exp()

    def elbo(self) -> Float[Tensor, ""]:
        """`bound` plus the log density of registered priors; NaN if a factorization fails."""
        try:
            return self.bound() + log_hyperprior(self)
        except (NanError, NotPSDError):
            return self.log_noise * torch.nan

    def latent(self) -> tuple[Float[Tensor, "n q"], Float[Tensor, "n q"]]:
        """Means and standard deviations of q(X); the prior is standard normal."""
        return self.mean.detach().clone(), self.log_std.detach().exp()

    def relevance(self) -> Float[Tensor, " q"]:
        """1 / lengthscale^2 of each dimension."""
        return self.kernel.relevance().detach()

    @torch.no_grad()
    def covariance(self, rows: Int[Tensor, " k"] | None = None) -> Float[Tensor, "k k"]:
        """Kernel matrix of rows at the means of q(X).

        Args:
            rows: Row indices; default all (n^2 elements).
        """
        rows = torch.arange(len(self.label)) if rows is None else rows
        at = self.mean[rows], self.label[rows]
        return self.kernel.covariance(*at, *at)

    @torch.no_grad()
    def posterior(self) -> Posterior:
        """q(U) at the current parameters, cached until they change."""
        here = torch.cat([p.detach().flatten() for p in self.parameters()])
        if self._cached_posterior is None or not torch.equal(self._cached_posterior[0], here):
            self._cached_posterior = here, optimal_posterior(self.statistics(), self.targets)
        return self._cached_posterior[1]

    @torch.no_grad()
    def infer(
        self, Y: Float[Tensor, "k d"], restarts: int = 2, steps: int = 50, label: int = 0
    ) -> LatentPosterior:
        """Infer q(x*) of new rows, with the bound on ln p(y*) of each.

        Args:
            Y: Outputs, NaN where missing.
            restarts: Number of nearest training rows to start from.
            steps: Maximum number of steps; converged rows stop earlier.
            label: Class of the new rows.

        Raises:
            BadInput: The number of outputs differs from training, or the class is unknown.
        """
        if not bool((self.label == label).any()):
            raise BadInput(f"No row of class {label} was learned from.")
        return infer_latent(self, Y.to(self.mean.dtype), label, max(restarts, 1), steps)

    @torch.no_grad()
    def decode(
        self,
        mean: Float[Tensor, "k q"],
        std: Float[Tensor, "k q"] | None = None,
        label: int = 0,
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, "k d"]]:
        """Mean and variance (with noise) of the outputs at latent positions.

        Args:
            mean: Positions, or the means of q(x).
            std: Standard deviations of q(x); None for fixed positions.
            label: Class of the positions.
        """
        certain = std is None
        std = torch.zeros_like(mean) if std is None else std
        rows = CERTAIN_ROWS if certain else ROWS
        parts = [
            self._decode(m, s.square(), label, certain)
            for m, s in zip(mean.split(rows), std.split(rows))
        ]
        targets = self.targets
        y, variance = (torch.cat(part) for part in zip(*parts))
        return y * targets.scale + targets.centre, variance * targets.scale.square()

    def _decode(self, mean: Tensor, variance: Tensor, label: int, certain: bool) -> Any:
        """Moments of one block of rows (Titsias and Lawrence 2010, 28-29)."""
        W, spread = self.posterior()
        labels = torch.full((len(mean),), label).to(self.label)
        args = (mean, variance, labels, self.inducing, self.inducing_label)
        psi1 = self.kernel.psi1(*args)
        y = psi1 @ W
        if certain:
            explained = torch.einsum("ki,pij,kj->kp", psi1, spread, psi1)
            mean_variance = torch.zeros_like(y)
        else:
            psi2 = self.kernel.psi2(*args, torch.eye(len(mean)).to(mean))
            explained = torch.einsum("kij,pij->kp", psi2, spread)
            mean_variance = ((psi2 @ W) * W).sum(1) - y.square()
        function_variance = (self.kernel.psi0() - explained).clamp(min=0)[:, self.targets.pattern]
        return y, function_variance + mean_variance.clamp(min=0) + self.noise


def principal(
    y: Float[Tensor, "n r"], n_latent: int, squares: Float[Tensor, ""]
) -> tuple[Float[Tensor, "n q"], float]:
    """Leading principal components with unit variance, and the unexplained variance share."""
    left, values, _ = torch.linalg.svd(y, full_matrices=False)
    components = min(n_latent, len(values))
    scores = left.new_zeros(len(y), n_latent)
    scores[:, :components] = left[:, :components] * len(y) ** 0.5
    unexplained = float(1 - values[:components].square().sum() / squares)
    return scores, min(max(unexplained, 0.01), 0.99)


def check(Y: Tensor, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        if count < 1:
            raise BadInput(f"There must be at least one {name}, got {count}.")
    if Y.dim() != 2 or len(Y) < 2:
        raise BadInput(f"A latent variable model needs two rows at least, got {tuple(Y.shape)}.")
