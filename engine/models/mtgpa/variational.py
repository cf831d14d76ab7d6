"""q(u) of latent functions that share a kernel, on GPyTorch's whitened variational strategy."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    NaturalVariationalDistribution,
    VariationalStrategy,
)
from jaxtyping import Float
from scant.errors import BadInput
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import alike
from torch import Tensor, nn

JITTER = 1e-8  # on K_uu, of unit variance; GPyTorch warns when a Cholesky factor needs more


class _Prior:
    """A zero-mean GP as a strategy wants it; the kernel belongs to the coregionalisation."""

    def __init__(self, kernel: IntervalKernel) -> None:
        self.kernel = kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))


class Latent(VariationalStrategy):
    """R latent functions of one kernel, seen at supports, with inducing variables at supports.

    `LMCVariationalStrategy` mixes the n x n covariances of all rows, but the bound needs only their
    diagonals; `MTGPA` mixes those.

    Args:
        kernel: Shared by the functions, and not owned.
        inducing: Points, or supports of any form, of the inducing variables.
        rank: R.
        natural: Hold q(u) in natural parameters, for natural gradients.
        learn: Learn where the inducing points lie.

    Raises:
        BadInput: Supports that are not points were to be learned.
    """

    def __init__(
        self,
        kernel: IntervalKernel,
        inducing: Float[Tensor, "m c"],
        rank: int = 1,
        natural: bool = False,
        learn: bool = False,
    ) -> None:
        if learn and inducing.shape[1] != kernel.dimensions:
            raise BadInput("Inducing points can be learned; boxes and sets of points stay fixed.")
        family = NaturalVariationalDistribution if natural else CholeskyVariationalDistribution
        q = family(len(inducing), batch_shape=torch.Size([rank]))
        super().__init__(_Prior(kernel), inducing, q, learn, jitter_val=JITTER)  # type: ignore[arg-type]
        # q(u) starts as p(u), as made; GPyTorch would add noise of the global generator.
        self.variational_params_initialized.fill_(1)
        self.rank = rank

    def variational_parameters(self) -> list[nn.Parameter]:
        return list(self._variational_distribution.parameters())

    @torch.no_grad()
    def natural_step(self, rate: float) -> None:
        """Along the natural gradient, which GPyTorch's distribution gives in place of the gradient.

        Where a likelihood is not log-concave a step can leave the positive definite matrices; it
        is halved until it does not.
        """
        vector, matrix = self.variational_parameters()
        if vector.grad is None or matrix.grad is None or not bool(matrix.grad.isfinite().all()):
            return
        while True:
            precision = -2 * (matrix - rate * matrix.grad)
            if not int(torch.linalg.cholesky_ex(precision).info.max()):
                break
            rate /= 2
        matrix.sub_(matrix.grad, alpha=rate)
        vector.sub_(vector.grad, alpha=rate)

    def kl_divergence(self) -> Float[Tensor, " r"]:
        """KL(q(u) || p(u)) of each function; whitened, p(u) is a standard Gaussian."""
        q = self.variational_distribution
        lower = q.lazy_covariance_matrix.cholesky().to_dense()
        log_det = 2 * lower.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        squares = lower.square().sum((-2, -1)) + q.mean.square().sum(-1)
        return 0.5 * (squares - self.inducing_points.shape[0] - log_det)

    def moments(self, x: Float[Tensor, "n c"]) -> tuple[Float[Tensor, "r n"], Float[Tensor, "r n"]]:
        """Means and variances of each function at the supports x (5.11 with a = 1)."""
        q = self(x)  # (5.11), whitened
        variance = q.lazy_covariance_matrix.diagonal(dim1=-2, dim2=-1)
        shape = (self.rank, len(x))
        return q.mean.expand(shape), variance.expand(shape).clamp(min=0)

    def forget(self) -> None:
        """Drop the cached factors, which belong to other parameters."""
        self._clear_cache()

    def forward(self, x: Tensor, inducing_points: Tensor, *args: Any, **kwargs: Any) -> Any:
        """GPyTorch stacks the two, so they are written in the same form first."""
        x, inducing_points = alike([x, inducing_points], self.model.kernel.dimensions)
        return super().forward(x, inducing_points, *args, **kwargs)
