"""BGPLVM: the Bayesian GP latent variable model, with the optimal q(U) in closed form.

Titsias and Lawrence (2010); Yousefi (2021), 3.12-3.21. Outputs y_d(x) = f_d(x) + noise with
f_d ~ GP(0, k), positions x ~ N(0, I) that are not known, q(X) Gaussian with diagonal covariances,
and inducing inputs Z. SCLVM (`sclvm`) is the same with a kernel over (x, class).

    generator = torch.Generator().manual_seed(seed)
    model = BGPLVM.build(Y, 5, 50, generator)
    trainer = GPLVMTrainer(model)              # scant.models.gplvm.training
    elbo = trainer.step()                        # as often as wanted
    model.infer(Y_new).mean

It is a model of GPyTorch: `model(x)` is the posterior of the outputs' functions at known positions.
Any kernel with the psi statistics of `ClassPrivateKernel` can take its place.

The cost of a step does not depend on the number of outputs where they have no missing values
(`collapsed_bound`). On a CPU the same seed gives the same run, bit by bit.
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
from scant.models.gplvm.latent_inference import LatentPosterior, place
from scant.models.hyperprior import log_hyperprior

JITTER = 1e-6  # of the kernel's variance
START_STD = 0.3
ROWS, CERTAIN_ROWS = 16, 4096  # decoded at once, and where their positions are certain


class BGPLVM(TargetModel):
    """See the module.

    Args:
        targets: The outputs.
        kernel: Over (position, class).
        mean: Means of q(X) to start from.
        label: Class of each row.
        inducing: Z.
        inducing_label: Class of each.
        noise: Variance to start from, on the outputs' scale.
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
        self._known: tuple[Tensor, Posterior] | None = None

    @classmethod
    def build(
        cls,
        Y: Float[Tensor, "n d"],
        n_latent: int,
        inducing: int,
        generator: torch.Generator,
        rank: int | None = None,
    ) -> BGPLVM:
        """A model that starts from the principal components of the outputs.

        Args:
            Y: Outputs, NaN where missing.
            n_latent: Q; the relevance of those that are not needed falls to zero.
            inducing: M.
            generator: A CPU generator, for k-means among the positions.
            rank: See `Targets.of`.

        Raises:
            BadInput: A number below one, or outputs without values.
        """
        check(Y, {"latent dimension": n_latent, "inducing input": inducing})
        targets = Targets.of(Y.double(), rank)
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
        """The posterior of all outputs' functions at positions of a class.

        Nothing of k x k is made before it is asked for. q(U) is that of the present parameters,
        and no gradient goes to them.
        """
        W, spread = self.posterior()
        labels = torch.full((len(x),), label).to(self.label)
        cross = self.kernel.covariance(x, labels, self.inducing, self.inducing_label).detach()
        own = self.kernel(torch.cat([x, labels.unsqueeze(1).to(x)], 1))
        learned = [own - MatmulLinearOperator(cross @ part, cross.T) for part in spread]
        return self.outputs(cross @ W, learned)

    def statistics(self, variance: Float[Tensor, "n q"] | None = None) -> Statistics:
        """What the bound needs of all rows; `variance` is that of q(X), where it is at hand."""
        targets, variance = self.targets, self._variance() if variance is None else variance
        psi0 = self.kernel.psi0()  # of one row (3.18)
        args = self.mean, variance, self.label, self.inducing, self.inducing_label
        # (3.19-3.20)
        K, psi1, psi2 = self.kernel.matrices(*args, targets.masks, JITTER)
        with collect_numerical_warnings(self.notes):
            lower = psd_safe_cholesky(K.detach())
        return Statistics(K, lower, psi0, psi1.T @ targets.y, psi2, self.noise)

    def bound(self) -> Float[Tensor, ""]:
        """The bound on ln p(Y) (3.25), in nats of Y as given."""
        variance = self._variance()
        # KL(q(X) || p(X))
        squares = (self.mean.square() + variance).sum() - variance.numel()
        divergence = 0.5 * squares - self.log_std.sum()
        # (3.25): the sum of 3.26 over the outputs, less the divergence
        return collapsed(self.statistics(variance), self.targets) - divergence

    def _variance(self) -> Float[Tensor, "n q"]:
        return (2 * self.log_std).exp()

    def elbo(self) -> Float[Tensor, ""]:
        """`bound` and registered priors; NaN where kernel matrices have no factor."""
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
        """k between rows at the means of q(X).

        Args:
            rows: Which, all by default (n^2 numbers).
        """
        rows = torch.arange(len(self.label)) if rows is None else rows
        at = self.mean[rows], self.label[rows]
        return self.kernel.covariance(*at, *at)

    @torch.no_grad()
    def posterior(self) -> Posterior:
        """q(U) at the present parameters, worked out once for each."""
        here = torch.cat([p.detach().flatten() for p in self.parameters()])
        if self._known is None or not torch.equal(self._known[0], here):
            self._known = here, optimal_posterior(self.statistics(), self.targets)
        return self._known[1]

    @torch.no_grad()
    def infer(
        self, Y: Float[Tensor, "k d"], restarts: int = 2, steps: int = 50, label: int = 0
    ) -> LatentPosterior:
        """q(x*) of new rows, and the bound on ln p(y*) of each.

        Args:
            Y: Outputs, NaN where missing.
            restarts: Nearest training rows to start from.
            steps: At most; rows leave when they gain no more.
            label: Class under which to place them.

        Raises:
            BadInput: Another number of outputs than was learned from, or an unknown class.
        """
        if not bool((self.label == label).any()):
            raise BadInput(f"No row of class {label} was learned from.")
        return place(self, Y.to(self.mean.dtype), label, max(restarts, 1), steps)

    @torch.no_grad()
    def decode(
        self,
        mean: Float[Tensor, "k q"],
        std: Float[Tensor, "k q"] | None = None,
        label: int = 0,
    ) -> tuple[Float[Tensor, "k d"], Float[Tensor, "k d"]]:
        """Mean and variance, noise included, of the outputs at latent positions.

        Args:
            mean: Positions, or the means of q(x).
            std: Standard deviations of q(x); without, positions are known exactly.
            label: Their class.
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
        """Moments of a few rows (Titsias and Lawrence 2010, 28-29)."""
        W, spread = self.posterior()
        labels = torch.full((len(mean),), label).to(self.label)
        args = (mean, variance, labels, self.inducing, self.inducing_label)
        psi1 = self.kernel.psi1(*args)
        y = psi1 @ W
        if certain:
            explained = torch.einsum("ki,pij,kj->kp", psi1, spread, psi1)
            more = torch.zeros_like(y)
        else:
            psi2 = self.kernel.psi2(*args, torch.eye(len(mean)).to(mean))
            explained = torch.einsum("kij,pij->kp", psi2, spread)
            more = ((psi2 @ W) * W).sum(1) - y.square()
        least = (self.kernel.psi0() - explained).clamp(min=0)[:, self.targets.pattern]
        return y, least + more.clamp(min=0) + self.noise


def principal(
    y: Float[Tensor, "n r"], n_latent: int, squares: Float[Tensor, ""]
) -> tuple[Float[Tensor, "n q"], float]:
    """Leading principal components of unit variance, and what they leave of the variance."""
    left, values, _ = torch.linalg.svd(y, full_matrices=False)
    kept = min(n_latent, len(values))
    scores = left.new_zeros(len(y), n_latent)
    scores[:, :kept] = left[:, :kept] * len(y) ** 0.5
    share = float(1 - values[:kept].square().sum() / squares)
    return scores, min(max(share, 0.01), 0.99)


def check(Y: Tensor, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        if count < 1:
            raise BadInput(f"There must be at least one {name}, got {count}.")
    if Y.dim() != 2 or len(Y) < 2:
        raise BadInput(f"A latent variable model needs two rows at least, got {tuple(Y.shape)}.")
