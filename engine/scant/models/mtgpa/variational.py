"""q(u) of latent functions that share a kernel, on GPyTorch's whitened variational strategy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    NaturalVariationalDistribution,
    VariationalStrategy,
)
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.errors import BadInput
from scant.kernels.box_average.averaged import SupportKernel
from scant.kernels.box_average.support import alike

Factors = tuple[Tensor, Tensor, Tensor, Tensor]  # K_uu, L^-1, and q(u)'s root and mean
JITTER = 1e-8  # on K_uu, of unit variance; GPyTorch warns when a Cholesky factor needs more


class _Posterior(torch.autograd.Function):
    """Means of R functions, and what the inducing variables change of their variances.

    With A = L^-1 K_xu', L L' = K_uu, and q(u) whitened, of mean m and covariance S by its root:
    A' m, and the diagonal of A' (S - I) A (5.11). By hand, since the products with A that are made
    on the way forward serve on the way back, where K_uu and its factor then take products of
    m x m matrices alone.
    """

    @staticmethod
    def forward(
        ctx: Any, K: Tensor, inverse: Tensor, cross: Tensor, root: Tensor, mean: Tensor
    ) -> tuple[Tensor, Tensor]:
        A = inverse @ cross.T
        middle = root @ root.mT
        middle.diagonal(dim1=-2, dim2=-1).sub_(1)
        product = middle @ A
        ctx.save_for_backward(inverse, A, root, middle, product, mean)
        return mean @ A, (product * A).sum(-2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, Tensor, Tensor]:
        inverse, A, root, middle, product, mean = ctx.saved_tensors
        by_mean, by_variance = grads[0], grads[1].unsqueeze(-2)
        to_middle = (A * by_variance) @ A.T
        to_mean = by_mean @ A.T
        to_A = (product * (2 * by_variance)).sum(0).addmm_(mean.T, by_mean)
        # A to_A', of which only products of m x m matrices are left
        inner = (to_middle @ (2 * middle)).sum(0).addmm_(to_mean.T, mean).triu_()
        inner.diagonal().mul_(0.5)
        to_K = inverse.T @ inner @ inverse
        to_K = (to_K + to_K.T).mul_(-0.5)
        return to_K, None, to_A.T @ inverse, to_middle @ (2 * root), to_mean


class _Blocks(torch.autograd.Function):
    """The same of sets of k points each, with what is changed of all covariances within a set.

    A is held as its transpose here, so that the rows of a set lie beside each other.
    """

    @staticmethod
    def forward(
        ctx: Any, K: Tensor, inverse: Tensor, cross: Tensor, root: Tensor, mean: Tensor, k: int
    ) -> tuple[Tensor, Tensor]:
        A = cross @ inverse.T
        middle = root @ root.mT
        middle.diagonal(dim1=-2, dim2=-1).sub_(1)
        product = A @ middle
        ctx.save_for_backward(inverse, A, root, middle, product, mean)
        sets = A.unflatten(0, (-1, k))
        return mean @ A.T, product.unflatten(1, (-1, k)) @ sets.mT

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inverse, A, root, middle, product, mean = ctx.saved_tensors
        by_mean, by_block = grads[0], grads[1] + grads[1].mT
        k = by_block.shape[-1]
        to_A, to_middle = by_mean.T @ mean, torch.empty_like(root)
        for r, block in enumerate(by_block):
            to_A += (block @ product[r].unflatten(0, (-1, k))).flatten(0, 1)
            to_middle[r] = A.T @ (block @ A.unflatten(0, (-1, k))).flatten(0, 1)
        inner = (to_middle @ middle).sum(0).addmm_((by_mean @ A).T, mean).triu_()
        inner.diagonal().mul_(0.5)
        to_K = inverse.T @ inner @ inverse
        to_K = (to_K + to_K.T).mul_(-0.5)
        return to_K, None, to_A @ inverse, to_middle @ root, by_mean @ A, None


class _Prior:
    """A zero-mean GP as a strategy wants it; the kernel belongs to the coregionalisation."""

    def __init__(self, kernel: SupportKernel) -> None:
        self.kernel = kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))


class Latent(VariationalStrategy):
    """R latent functions of one kernel, seen at supports, with inducing variables at supports.

    Called, it is GPyTorch's; what a step needs is computed by the dense algebra of `moments` and
    `kl_divergence`. Through GPyTorch's lazy layers a step of Adam (two tasks, 740 rows, 100
    inducing points) is 3,700 operations and takes twice as long.

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
        kernel: SupportKernel,
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
        self._held: Factors | None = None

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
        _, _, root, mean = self._held or self._factors()
        log_det = 2 * root.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        squares = root.square().sum((-2, -1)) + mean.square().sum(-1)
        return 0.5 * (squares - self.inducing_points.shape[0] - log_det)

    def moments(self, x: Float[Tensor, "n c"]) -> tuple[Float[Tensor, "r n"], Float[Tensor, "r n"]]:
        """Means and variances of each function at the supports x (5.11 with a = 1)."""
        K, inverse, root, mean = self._held or self._factors()
        kernel = self.model.kernel
        cross = kernel.forward(x, self.inducing_points)
        means, change = _Posterior.apply(K, inverse, cross, root, mean)
        return means, (kernel.forward(x, x, diag=True) + self.jitter_val + change).clamp(min=0)

    def blocks(
        self, points: Float[Tensor, "n k d"]
    ) -> tuple[Float[Tensor, "r n k"], Float[Tensor, "r n k k"]]:
        """Means of each function at sets of points, and covariances within each set."""
        K, inverse, root, mean = self._held or self._factors()
        kernel, k = self.model.kernel, points.shape[1]
        cross = kernel.forward(points.flatten(0, 1), self.inducing_points)
        means, change = _Blocks.apply(K, inverse, cross, root, mean, k)
        jitter = self.jitter_val * torch.eye(k, dtype=K.dtype, device=K.device)
        return means.unflatten(1, (-1, k)), kernel.within(points) + jitter + change

    def _factors(self) -> Factors:
        Z, q = self.inducing_points, self._variational_distribution
        K = self.model.kernel.forward(Z, Z)
        eye = torch.eye(len(Z), dtype=K.dtype, device=K.device)
        lower = psd_safe_cholesky(K.detach() + self.jitter_val * eye)
        inverse = torch.linalg.solve_triangular(lower, eye, upper=False)
        if isinstance(q, CholeskyVariationalDistribution):
            return K, inverse, q.chol_variational_covar.tril(), q.variational_mean
        found = q()
        return K, inverse, found.lazy_covariance_matrix.cholesky().to_dense(), found.mean

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the factors are made once; parameters stay as they are."""
        self._held = self._factors()
        try:
            yield
        finally:
            self._held = None

    def forward(self, x: Tensor, inducing_points: Tensor, *args: Any, **kwargs: Any) -> Any:
        """GPyTorch stacks the two, so they are written in the same form first."""
        x, inducing_points = alike([x, inducing_points], self.model.kernel.dimensions)
        return super().forward(x, inducing_points, *args, **kwargs)
