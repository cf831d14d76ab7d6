"""HGP, HGPInd and DHGP: Gaussian processes with a hierarchy of functions (Hensman et al. 2013).

    g_d ~ GP(0, k_g)        f_dr ~ GP(g_d, k_f)                        HGP, HGPInd (Ma 2023, 5.12)
    g ~ GP(0, k_g)          e_d ~ GP(g, k_e)      f_dr ~ GP(e_d, k_f)  DHGP (Ma 2023, 5.39-5.42)
    y = f_dr(x) + noise

HGP regresses each output by itself; HGPInd does so through inducing points, with the collapsed
bound of Titsias (2009), optimal q(u) and all. DHGP regresses all outputs together.
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

SHARED, OWN = 0.8, 0.3  # prior variances to start from, of values with variance 1
SPREAD = 0.2  # deviation of the logarithms of starting values from one restart to another


def start(
    value: float, generator: torch.Generator | None, batch: int = 1
) -> Float[Tensor, " {batch}"]:
    """A starting value, scattered a little where there is a generator."""
    if generator is None:
        return torch.full((batch,), value, dtype=torch.float64)
    scatter = torch.randn(batch, generator=generator, dtype=torch.float64)
    return value * torch.exp(SPREAD * scatter)


class HGP(ReplicaGP):
    """A two-level hierarchy for each output, with hyperparameters of its own; exact."""

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
        """A model at its starting values.

        Args:
            data: Standardized.
            generator: Scatters the starting values; None: they are the usual ones.
            kernel_shared: k_g, one of `scant.kernels.hierarchical.SHAPES`, or any of GPyTorch's.
            kernel_replica: k_f, likewise.
        """
        d = data.n_outputs
        levels = [
            level(shape, start(value, generator, d), start(1.0, generator, d), batch=d)
            for shape, value in ((kernel_shared, SHARED), (kernel_replica, OWN))
        ]
        return cls(ReplicaKernel(*levels), data, ("replica",), **others)


class HGPInd(HGP):
    """HGP through M_X inducing points an output, at inputs and replicas of its own.

    Which replicas they belong to is settled at the start, where rows are taken for inducing points
    one after another, each the one that those before it leave most uncertain; their inputs are then
    learnt. With as many as rows, and inputs unmoved, it is HGP.
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
        chosen, real = greedy(K, self.packed.real, inducing_inputs)
        inducing = points.gather(1, chosen.unsqueeze(-1).expand(*chosen.shape, points.shape[-1]))
        self.inducing = nn.Parameter(inducing[..., 0].clone())
        self.register_buffer("inducing_labels", inducing[..., 1:].clone())
        self.register_buffer("inducing_real", real)

    def _inducing_points(self) -> Float[Tensor, "b k c"]:
        return torch.cat([self.inducing.unsqueeze(-1), self.inducing_labels], dim=-1)

    def _whitened(
        self, lower: Float[Tensor, "b k k"], points: Float[Tensor, "b m c"]
    ) -> Float[Tensor, "b k m"]:
        """Covariances with the inducing variables, these made independent with variance 1."""
        K = self.kernel(self._inducing_points(), points).to_dense()
        K = K * self.inducing_real.unsqueeze(-1)
        return torch.linalg.solve_triangular(lower, K, upper=False)

    def _inducing_factor(self) -> Float[Tensor, "b k k"]:
        real = self.inducing_real
        K = self.kernel(self._inducing_points()).to_dense()
        K = K * (real.unsqueeze(1) & real.unsqueeze(2)) + (~real).to(K).diag_embed()
        return psd_safe_cholesky(K)

    def _known(self) -> Any:
        """Factors of K_uu and of q(u)'s whitened precision, and the whitened mean's half."""
        points, y, noise = self.observed()
        lower = self._inducing_factor()
        weights = self._whitened(lower, points) * self.packed.real.unsqueeze(1)
        scaled = weights / noise.unsqueeze(1).sqrt()
        eye = torch.eye(scaled.shape[1]).to(scaled)
        precision = psd_safe_cholesky(eye + scaled @ scaled.mT)
        right = (scaled @ (y / noise.sqrt()).unsqueeze(-1)).squeeze(-1)
        half = torch.linalg.solve_triangular(precision, right.unsqueeze(-1), upper=False)
        return lower, precision, half, weights

    def log_density(self) -> Float[Tensor, ""]:
        """The collapsed bound on ln p(y), in nats (Titsias 2009, equation 9)."""
        points, y, noise = self.observed()
        _, precision, half, weights = self._known()
        squares = (y.square() / noise).sum() - half.square().sum()
        log_det = noise.log().sum() + 2 * precision.diagonal(dim1=1, dim2=2).log().sum()
        lost = self.kernel(points, diag=True) * self.packed.real - weights.square().sum(1)
        return -0.5 * (log_det + squares + (lost / noise).sum()) + self._within()

    def _factors(
        self, known: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b g k"], Float[Tensor, "b l k"]]:
        lower, precision, half, _ = known
        prior = self._whitened(lower, points)
        weights = torch.linalg.solve_triangular(precision, prior, upper=False)
        return (weights * half).sum(1), prior, weights


class DHGP(ReplicaGP):
    """A three-level hierarchy of all outputs together; exact.

    `log_density` makes use of what replicas have in common wherever that pays (`reduced`).
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
        """A model at its starting values; `kernel_shared` is of both upper levels (see HGP)."""
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
        """ln p(y) in nats, of the rows it is conditioned on."""
        few = len(self.places) < 0.8 * len(self.data.y)
        return self.reduced() if few else super().log_density()

    def reduced(self) -> Float[Tensor, ""]:
        """ln p(y) at the cost of the distinct pairs of input and output, not of all rows.

        Given e_d, replicas are independent, so that y's covariance is C = B + E K E': B has a
        block for each replica, K is the covariance of the upper levels at distinct places, and E
        says at which of them a row lies. With P = E' B^-1 E, a sum over replicas, and P = L L',

            |C| = |B| |A|    and    C^-1 = B^-1 - B^-1 E L^-T (I - A^-1) L^-1 E' B^-1

        where A = I + L' K L. This is the reduction from (D N R)^3 to (D N)^3 of Ma 2023, section
        5.4, there for replicas that share their inputs; here they may share some.
        """
        at, real = self.leaves
        data, count = self.data, len(self.places)
        own = self.kernel.levels[-1](data.x[at].unsqueeze(-1)).to_dense()
        noise = torch.where(real, self.noise[data.output[at]], torch.ones_like(data.x[at]))
        block = own * (real.unsqueeze(1) & real.unsqueeze(2)) + noise.diag_embed()
        lower = psd_safe_cholesky(block)
        y = (data.y[at] * real).unsqueeze(-1)
        solved = torch.cholesky_solve(y, lower).squeeze(-1)
        # Padded rows are gathered at a place of their own, which is then left out.
        place = torch.where(real, self.place[at], count)
        P = _gather(torch.cholesky_inverse(lower), place, count + 1)[:-1, :-1]
        pulled = torch.zeros(count + 1).to(solved).index_add(0, place.ravel(), solved.ravel())[:-1]
        root = psd_safe_cholesky(P)
        above = ReplicaKernel(*self.kernel.levels[:-1])(self.places).to_dense()
        factor = psd_safe_cholesky(torch.eye(count).to(P) + root.T @ above @ root)
        whole = torch.linalg.solve_triangular(root, pulled.unsqueeze(1), upper=False)
        half = torch.linalg.solve_triangular(factor, whole, upper=False)
        squares = (y.squeeze(-1) * solved).sum() - whole.square().sum() + half.square().sum()
        diagonals = (lower.diagonal(dim1=1, dim2=2), factor.diagonal())
        log_det = sum(2 * d.log().sum() for d in diagonals)
        return -0.5 * (squares + log_det + len(data.y) * LOG_2PI)

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs' own curves e_d at one x."""
        top, middle = (float(prior_variance(level)) for level in self.kernel.levels[:2])
        return top + middle * torch.eye(self.outputs).to(next(self.parameters()))


def _gather(
    blocks: Float[Tensor, "b m m"], place: Int[Tensor, "b m"], count: int
) -> Float[Tensor, "c c"]:
    """Blocks added up where their rows and columns lie."""
    at = place.unsqueeze(2) * count + place.unsqueeze(1)
    total = torch.zeros(count * count).to(blocks).index_add(0, at.ravel(), blocks.ravel())
    return total.view(count, count)


def greedy(
    K: Float[Tensor, "b m m"], real: Tensor, count: int
) -> tuple[Int[Tensor, "b k"], Tensor]:
    """Rows of each group chosen one after another by the variance that those before leave.

    A partial Cholesky factorization with pivoting (Burt, Rasmussen and van der Wilk 2020).

    Args:
        K: Covariance of each group's rows.
        real: Which rows are not padding.
        count: How many to choose; fewer where no group has as many rows.

    Returns:
        The rows, and which of these are not padding.
    """
    groups, m = real.shape
    each = torch.arange(groups, device=K.device)
    left = torch.where(real, K.diagonal(dim1=1, dim2=2), -math.inf)
    factors = K.new_zeros(groups, m, 0)
    chosen = []
    for _ in range(min(count, m)):
        pick = left.argmax(1)
        chosen.append(pick)
        column = K[each, :, pick] - (factors @ factors[each, pick].unsqueeze(-1)).squeeze(-1)
        column = column / left[each, pick].clamp(min=1e-12).sqrt().unsqueeze(1)
        factors = torch.cat([factors, column.unsqueeze(-1)], dim=-1)
        left = left - column.square()
        left[each, pick] = -math.inf
    sizes = real.sum(1, keepdim=True)
    return torch.stack(chosen, 1), torch.arange(len(chosen), device=K.device) < sizes
