"""q(u) of latent functions with a common kernel, based on GPyTorch's whitened strategy."""

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
from scant.kernels.box_average.support import same_form

Factors = tuple[Tensor, Tensor, Tensor, Tensor]  # K_uu, L^-1, root and mean of q(u)
JITTER = 1e-8  # on K_uu, of unit variance; GPyTorch warns when a Cholesky factor needs more


class _Posterior(torch.autograd.Function):
    """Posterior means of R functions, and the change of their variances by q(u).

    With A = L^-1 K_ux, L L' = K_uu, and whitened q(u) with mean m and covariance S = root root':
    A' m, and the diagonal of A' (S - I) A (5.11). The explicit gradient reuses the products with A,
    so that the backward pass for K_uu needs only products of m x m matrices.
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
        grad_mean, grad_variance = grads[0], grads[1].unsqueeze(-2)
        d_middle = (A * grad_variance) @ A.T
        d_mean = grad_mean @ A.T
        d_A = (product * (2 * grad_variance)).sum(0).addmm_(mean.T, grad_mean)
        # A d_A', which reduces to products of m x m matrices
        inner = (d_middle @ (2 * middle)).sum(0).addmm_(d_mean.T, mean).triu_()
        inner.diagonal().mul_(0.5)
        d_K = inverse.T @ inner @ inverse
        d_K = (d_K + d_K.T).mul_(-0.5)
        return d_K, None, d_A.T @ inverse, d_middle @ (2 * root), d_mean


class _Blocks(torch.autograd.Function):
    """`_Posterior` for sets of k points, with the change of all covariances within each set.

    A is transposed here, so that the rows of a set are contiguous.
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
        grad_mean, grad_block = grads[0], grads[1] + grads[1].mT
        k = grad_block.shape[-1]
        d_A, d_middle = grad_mean.T @ mean, torch.empty_like(root)
        for r, block in enumerate(grad_block):
            d_A += (block @ product[r].unflatten(0, (-1, k))).flatten(0, 1)
            d_middle[r] = A.T @ (block @ A.unflatten(0, (-1, k))).flatten(0, 1)
        inner = (d_middle @ middle).sum(0).addmm_((grad_mean @ A).T, mean).triu_()
        inner.diagonal().mul_(0.5)
        d_K = inverse.T @ inner @ inverse
        d_K = (d_K + d_K.T).mul_(-0.5)
        return d_K, None, d_A @ inverse, d_middle @ root, grad_mean @ A, None


class _Prior:
    """Zero-mean GP for GPyTorch's strategy; the kernel belongs to the coregionalization."""

    def __init__(self, kernel: SupportKernel) -> None:
        self.kernel = kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))


class Latent(VariationalStrategy):
    """R latent functions with one kernel at supports, with inducing variables at supports.

    Calling it uses GPyTorch's strategy. Training steps use the dense algebra of `moments` and
    `kl_divergence`: with GPyTorch's lazy layers an Adam step (two tasks, 740 rows, 100 inducing
    points) has 3,700 operations and takes twice as long.

    `LMCVariationalStrategy` mixes n x n covariances of all rows; `MTGPA` only mixes the diagonals
    that the bound needs.

    Args:
        kernel: Kernel shared by the functions, registered elsewhere.
        inducing: Points, or supports of any form, of the inducing variables.
        rank: Number R of functions.
        natural: True to store q(u) in natural parameters, for natural gradients.
        learn: True to learn the inducing points.

    Raises:
        BadInput: `learn` is set for supports that are not points.
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
        # q(u) starts as p(u); GPyTorch would add noise from the global generator.
        self.variational_params_initialized.fill_(1)
        self.rank = rank
        self._held: Factors | None = None

    def variational_parameters(self) -> list[nn.Parameter]:
        return list(self._variational_distribution.parameters())

    @torch.no_grad()
    def natural_step(self, rate: float) -> None:
        """Natural gradient step, with the gradients of GPyTorch's natural distribution.

        If the likelihood is not log-concave, the step is halved until the precision is positive
        definite.
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
        """KL(q(u) || p(u)) of each function, whitened, with standard normal p(u)."""
        _, _, root, mean = self._held or self._factors()
        log_det = 2 * root.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        squares = root.square().sum((-2, -1)) + mean.square().sum(-1)
        return 0.5 * (squares - self.inducing_points.shape[0] - log_det)

    def moments(self, x: Float[Tensor, "n c"]) -> tuple[Float[Tensor, "r n"], Float[Tensor, "r n"]]:
        """Means and variances of each function at supports x (5.11 with a = 1)."""
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
        distribution = q()
        return (
            K,
            inverse,
            distribution.lazy_covariance_matrix.cholesky().to_dense(),
            distribution.mean,
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Context in which the factors are computed once; parameters must not change."""
        self._held = self._factors()
        try:
            yield
        finally:
            self._held = None

    def forward(self, x: Tensor, inducing_points: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Convert both inputs to the same form of support, since GPyTorch concatenates them."""
        x, inducing_points = same_form([x, inducing_points], self.model.kernel.dimensions)
        return super().forward(x, inducing_points, *args, **kwargs)
