"""HGP, HGPInd and DHGP: Gaussian processes with a hierarchy of functions (Hensman et al. 2013).

    g_d ~ GP(0, k_g)        f_dr ~ GP(g_d, k_f)                        HGP, HGPInd (Ma 2023, 5.12)
    g ~ GP(0, k_g)          e_d ~ GP(g, k_e)      f_dr ~ GP(e_d, k_f)  DHGP (Ma 2023, 5.39-5.42)
    y = f_dr(x) + noise

HGP regresses outputs separately; HGPInd does so with inducing points and the collapsed bound of
Titsias (2009). DHGP regresses all outputs jointly.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from scant.inference.expectations import LOG_2PI
from scant.kernels.hierarchical import ReplicaKernel, level, prior_variance
from scant.models.replicated.data import Data
from scant.models.replicated.exact import ReplicaGP, pack

SHARED, OWN = 0.8, 0.3  # initial prior variances, for values with unit variance
SPREAD = 0.2  # standard deviation of log initial values between restarts


def start(
    value: float, generator: torch.Generator | None, batch: int = 1
) -> Float[Tensor, " {batch}"]:
    """Initial value, perturbed if there is a generator."""
    if generator is None:
        return torch.full((batch,), value, dtype=torch.float64)
    scatter = torch.randn(batch, generator=generator, dtype=torch.float64)
    return value * torch.exp(SPREAD * scatter)


class HGP(ReplicaGP):
    """Exact two-level hierarchical GP with separate hyperparameters for each output."""

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator | None = None,
        *,
        kernel_shared: str | Kernel = "matern32",
        kernel_replica: str | Kernel = "matern32",
        **others: Any,
    ) -> HGP:
        """Build a model with initial hyperparameters.

        Args:
            data: Standardized data.
            generator: Perturbs the initial values; None uses the defaults.
            kernel_shared: Kernel k_g, one of `scant.kernels.hierarchical.SHAPES`, or any GPyTorch
                kernel.
            kernel_replica: Kernel k_f, likewise.
            others: Further arguments of the class.
        """
        d = data.n_outputs
        levels = [
            level(shape, start(value, generator, d), start(1.0, generator, d), batch=d)
            for shape, value in ((kernel_shared, SHARED), (kernel_replica, OWN))
        ]
        return cls(ReplicaKernel(*levels), data, ("replica",), **others)


class HGPInd(HGP):
    """Sparse HGP with M_X inducing points (x, replica) per output.

    Inducing points are initialized by greedy selection of the rows with the largest conditional
    variance, which fixes their replicas; their inputs are then learned. With one inducing point at
    every row it equals HGP.
    """

    inducing_labels: Tensor
    inducing_real: Tensor

    def __init__(
        self,
        kernel: nn.Module,
        data: Data,
        labels: tuple[str, ...],
        noise: str = "shared",
        inducing_inputs: int = 12,
    ) -> None:
        super().__init__(kernel, data, labels, noise)
        points = self.observed()[0]
        with torch.no_grad():
            K = self.kernel(points).to_dense()
        rows, real = greedy(K, self.packed.real, inducing_inputs)
        inducing = points.gather(1, rows.unsqueeze(-1).expand(*rows.shape, points.shape[-1]))
        self.inducing = nn.Parameter(inducing[..., 0].clone())
        self.register_buffer("inducing_labels", inducing[..., 1:].clone())
        self.register_buffer("inducing_real", real)

    def _inducing_points(self) -> Float[Tensor, "b k c"]:
        return torch.cat([self.inducing.unsqueeze(-1), self.inducing_labels], dim=-1)

    def _whitened(
        self, lower: Float[Tensor, "b k k"], points: Float[Tensor, "b m c"]
    ) -> Float[Tensor, "b k m"]:
        """L^-1 k(Z, x): covariances of whitened inducing variables with f at points."""
        K = self.kernel(self._inducing_points(), points).to_dense()
        K = K * self.inducing_real.unsqueeze(-1)
        return torch.linalg.solve_triangular(lower, K, upper=False)

    def _inducing_factor(self) -> Float[Tensor, "b k k"]:
        real = self.inducing_real
        K = self.kernel(self._inducing_points()).to_dense()
        K = K * (real.unsqueeze(1) & real.unsqueeze(2)) + (~real).to(K).diag_embed()
        return psd_safe_cholesky(K)

    def _solve(self) -> Any:
        """Factors of K_uu and of the whitened precision of q(u), projected y, and L^-1 k(Z, X)."""
        points, y, noise = self.observed()
        lower = self._inducing_factor()
        weights = self._whitened(lower, points) * self.packed.real.unsqueeze(1)
        scaled = weights / noise.unsqueeze(1).sqrt()
        eye = torch.eye(scaled.shape[1]).to(scaled)
        precision = psd_safe_cholesky(eye + scaled @ scaled.mT)
        rhs = (scaled @ (y / noise.sqrt()).unsqueeze(-1)).squeeze(-1)
        projected = torch.linalg.solve_triangular(precision, rhs.unsqueeze(-1), upper=False)
        return lower, precision, projected, weights

    def log_density(self) -> Float[Tensor, ""]:
        """Collapsed lower bound on ln p(y), in nats (Titsias 2009, equation 9)."""
        points, y, noise = self.observed()
        _, precision, projected, weights = self._solve()
        squares = (y.square() / noise).sum() - projected.square().sum()
        log_det = noise.log().sum() + 2 * precision.diagonal(dim1=1, dim2=2).log().sum()
        residual_variance = self.kernel(
            points, diag=True
        ) * self.packed.real - weights.square().sum(1)
        return -0.5 * (log_det + squares + (residual_variance / noise).sum()) + self._within()

    def _factors(
        self, solution: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b g k"], Float[Tensor, "b l k"]]:
        lower, precision, projected, _ = solution
        prior = self._whitened(lower, points)
        weights = torch.linalg.solve_triangular(precision, prior, upper=False)
        return (weights * projected).sum(1), prior, weights


class DHGP(ReplicaGP):
    """Exact three-level hierarchical GP over all outputs jointly.

    `log_density` exploits shared inputs of replicas if that reduces the cost (`reduced`).
    """

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator | None = None,
        *,
        kernel_shared: str | Kernel = "matern32",
        kernel_replica: str | Kernel = "matern32",
        noise: str = "shared",
    ) -> DHGP:
        """Build a model; `kernel_shared` is for both upper levels (see `HGP.build`)."""
        levels = [
            level(shape, float(start(value, generator)), float(start(1.0, generator)))
            for shape, value in (
                (kernel_shared, SHARED / 2),
                (kernel_shared, SHARED / 2),
                (kernel_replica, OWN),
            )
        ]
        return cls(ReplicaKernel(*levels), data, ("output", "replica"), noise)

    def _condition(self, data: Data) -> None:
        super()._condition(data)
        places, self.place = torch.stack([data.x, data.output.to(data.x)], 1).unique(
            dim=0, return_inverse=True
        )
        self.places = places  # distinct pairs of input and output
        _, leaf = torch.stack([data.output, data.replica], 1).unique(dim=0, return_inverse=True)
        self.leaves = pack(leaf, int(leaf.max()) + 1)

    def log_density(self) -> Float[Tensor, ""]:
        """ln p(y) of the model's data, in nats."""
        repeated = len(self.places) < 0.8 * len(self.data.y)
        return self.reduced() if repeated else super().log_density()

    def reduced(self) -> Float[Tensor, ""]:
        """ln p(y) at a cost cubic in the number of distinct pairs (x, output), not of rows.

        Replicas are independent given e_d, so y has the covariance C = B + E K E': B is block
        diagonal over replicas, K is the covariance of the upper levels at distinct pairs, and E
        assigns rows to pairs. With P = E' B^-1 E, a sum over replicas, and P = L L',

            |C| = |B| |A|    and    C^-1 = B^-1 - B^-1 E L^-T (I - A^-1) L^-1 E' B^-1

        where A = I + L' K L. This is the reduction from (D N R)^3 to (D N)^3 of Ma 2023, section
        5.4, there for replicas with equal inputs; here only some inputs need be shared.
        """
        at, real = self.leaves
        data, count = self.data, len(self.places)
        K_replica = self.kernel.levels[-1](data.x[at].unsqueeze(-1)).to_dense()
        noise = torch.where(real, self.noise[data.output[at]], torch.ones_like(data.x[at]))
        B = K_replica * (real.unsqueeze(1) & real.unsqueeze(2)) + noise.diag_embed()
        lower = psd_safe_cholesky(B)
        y = (data.y[at] * real).unsqueeze(-1)
        solved = torch.cholesky_solve(y, lower).squeeze(-1)
        # Padded rows are assigned to an additional pair, which is then dropped.
        pair = torch.where(real, self.place[at], count)
        P = _gather(torch.cholesky_inverse(lower), pair, count + 1)[:-1, :-1]
        projected = (
            torch.zeros(count + 1).to(solved).index_add(0, pair.ravel(), solved.ravel())[:-1]
        )
        L = psd_safe_cholesky(P)
        K = ReplicaKernel(*self.kernel.levels[:-1])(self.places).to_dense()
        A_factor = psd_safe_cholesky(torch.eye(count).to(P) + L.T @ K @ L)
        whitened = torch.linalg.solve_triangular(L, projected.unsqueeze(1), upper=False)
        A_whitened = torch.linalg.solve_triangular(A_factor, whitened, upper=False)
        squares = (
            (y.squeeze(-1) * solved).sum() - whitened.square().sum() + A_whitened.square().sum()
        )
        diagonals = (lower.diagonal(dim1=1, dim2=2), A_factor.diagonal())
        log_det = sum(2 * d.log().sum() for d in diagonals)
        return -0.5 * (squares + log_det + len(data.y) * LOG_2PI)

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs' curves e_d at one x."""
        top, middle = (float(prior_variance(level)) for level in self.kernel.levels[:2])
        return top + middle * torch.eye(self.outputs).to(next(self.parameters()))


def _gather(
    blocks: Float[Tensor, "b m m"], index: Int[Tensor, "b m"], count: int
) -> Float[Tensor, "c c"]:
    """Sum blocks into a c x c matrix at the given row and column indices."""
    at = index.unsqueeze(2) * count + index.unsqueeze(1)
    total = torch.zeros(count * count).to(blocks).index_add(0, at.ravel(), blocks.ravel())
    return total.view(count, count)


def greedy(
    K: Float[Tensor, "b m m"], real: Tensor, count: int
) -> tuple[Int[Tensor, "b k"], Tensor]:
    """Greedily select rows of each group by their conditional variance.

    This is a partial pivoted Cholesky factorization (Burt, Rasmussen and van der Wilk 2020).

    Args:
        K: Covariance of each group's rows.
        real: Mask of rows that are not padding.
        count: Number of rows to select, at most the size of the largest group.

    Returns:
        Indices of the rows, and a mask of those that are not padding.
    """
    groups, m = real.shape
    batch = torch.arange(groups, device=K.device)
    variance = torch.where(real, K.diagonal(dim1=1, dim2=2), -math.inf)
    factors = K.new_zeros(groups, m, 0)
    selected = []
    for _ in range(min(count, m)):
        pick = variance.argmax(1)
        selected.append(pick)
        column = K[batch, :, pick] - (factors @ factors[batch, pick].unsqueeze(-1)).squeeze(-1)
        column = column / variance[batch, pick].clamp(min=1e-12).sqrt().unsqueeze(1)
        factors = torch.cat([factors, column.unsqueeze(-1)], dim=-1)
        variance = variance - column.square()
        variance[batch, pick] = -math.inf
    sizes = real.sum(1, keepdim=True)
    return torch.stack(selected, 1), torch.arange(len(selected), device=K.device) < sizes
