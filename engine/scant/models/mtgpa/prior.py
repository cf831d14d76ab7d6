"""The prior of MTGPA: a linear model of coregionalization over averages.

    f_j(v) = |v| offset_j + sum_q sum_i a^i_{j,q} u^i_q(v),    u^i_q ~ GP(0, k_q averaged over v)

(Yousefi 2021, 5.8-5.9), i = 1..R_q, so that cov(f_j(v), f_j'(v')) = sum_q B_q[j, j'] k_q(v, v')
with B_q = sum_i a^i_q a^i_q'. |v| is the sum of the support's weights: one for an average. Offsets
are not in the publication, nor are covariates z of supports, for which z' b_j is added to f_j with
coefficients b_j ~ N(0, COEFFICIENT^2 I).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.models import GP
from jaxtyping import Float, Int
from linear_operator import to_linear_operator
from torch import Tensor, nn

from scant.errors import BadInput
from scant.kernels.box_average.averaged import AveragedKernel, SupportKernel
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import pieces

COEFFICIENT = 2.0  # prior deviation of coefficients, for covariates and y with unit variance


class Data(NamedTuple):
    """Observations of all tasks, one per row.

    Attributes:
        supports: Rows in the format of `scant.kernels.box_average.support`.
        y: Observed values.
        task: Task of each row, numbered from 0.
        exposure: Multiplier of the rate of counts, or denominator of a `gaussian_rate`; default 1.
        known: Variance of fixed noise of Gaussian tasks, in addition to the learned noise.
    """

    supports: Float[Tensor, "n c"]
    y: Float[Tensor, " n"]
    task: Int[Tensor, " n"]
    exposure: Float[Tensor, " n"] | None = None
    known: Float[Tensor, " n"] | None = None

    def of_task(self, task: int) -> Data:
        return self.at((self.task == task).nonzero().squeeze(1))

    def at(self, rows: Int[Tensor, " m"]) -> Data:
        exposure, known = (v if v is None else v[rows] for v in (self.exposure, self.known))
        return Data(self.supports[rows], self.y[rows], self.task[rows], exposure, known)

    def exposures(self) -> Float[Tensor, " n"]:
        return torch.ones_like(self.y) if self.exposure is None else self.exposure


class Prior(GP):
    """Base of priors over functions j at supports x.

    The last `covariates` columns of x are not part of the support; each function has a linear mean
    in them.
    """

    covariates = 0

    def split(
        self, x: Float[Tensor, "n c"]
    ) -> tuple[Float[Tensor, "n c2"], Float[Tensor, "n p"] | None]:
        """Split rows into supports and covariates (None if there are none)."""
        if not self.covariates:
            return x, None
        return x[:, : -self.covariates], x[:, -self.covariates :]

    def forward(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> MultivariateNormal:
        """Joint prior of function j at support x for each row."""
        return MultivariateNormal(self.mean(x, j), to_linear_operator(self.covariance(x, j, x, j)))

    def mean(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        raise NotImplementedError

    def variance(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        raise NotImplementedError

    def covariance(
        self,
        x1: Float[Tensor, "n c1"],
        j1: Int[Tensor, " n"],
        x2: Float[Tensor, "m c2"],
        j2: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        """Covariances of functions j1 at x1 with j2 at x2, as a new tensor."""
        raise NotImplementedError


class Coregionalization(Prior):
    """Linear model of coregionalization: J functions that mix latent functions of Q kernels.

    `mixing` has the coefficients a, one row per latent function, and `kernel_of` the kernel of each
    row. Kernels have unit variance; `mixing` contains the scale.

    Args:
        dimensions: Dimension d of the input space.
        functions: Number J of functions.
        ranks: R_q of each of the Q kernels.
        shape: Kernel, as in `IntervalKernel`.
        kernels: Q GPyTorch kernels that replace `shape`, over points (averaged over supports by
            quadrature) or over supports, with their current parameters.
        covariates: Number of columns after those of a support that enter linearly.
        n_isotropic: Number of leading dimensions that share a lengthscale.

    Raises:
        BadInput: A rank is below one, or the numbers of ranks and kernels differ.
    """

    kernel_of: Tensor
    mixing: Tensor
    kernels: Sequence[SupportKernel]

    def __init__(
        self,
        dimensions: int,
        functions: int,
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        kernels: Sequence[Kernel] | None = None,
        covariates: int = 0,
        n_isotropic: int = 1,
    ) -> None:
        super().__init__()
        self.covariates = covariates
        if not ranks or min(ranks) < 1:
            raise BadInput(f"Every latent function needs a rank of at least 1, got {list(ranks)}.")
        if kernels is None:
            # Steps in log lengthscales do not depend on the unit of the inputs.
            kernels = [
                IntervalKernel(
                    dimensions,
                    shape,
                    n_isotropic=n_isotropic,
                    lengthscale_constraint=Positive(torch.exp, torch.log),
                )
                for _ in ranks
            ]
        if len(kernels) != len(ranks):
            raise BadInput(f"Each kernel needs a rank; got {len(kernels)} and {list(ranks)}.")
        self.dimensions = dimensions
        self.kernels = nn.ModuleList(  # type: ignore[assignment]
            k if isinstance(k, SupportKernel) else AveragedKernel(k, dimensions) for k in kernels
        )
        self.register_parameter("mixing", nn.Parameter(torch.zeros(sum(ranks), functions)))
        self.register_parameter("offset", nn.Parameter(torch.zeros(functions)))
        owners = torch.repeat_interleave(torch.arange(len(ranks)), torch.tensor(ranks))
        self.register_buffer("kernel_of", owners)
        self.double()

    def matrices(self) -> Float[Tensor, "q j j"]:
        """Coregionalization matrices B_q."""
        return torch.stack([a.T @ a for a in self._rows()])

    def lengthscales(self) -> Float[Tensor, "q d"]:
        """Lengthscales in the units of the inputs; NaN for kernels without any."""
        return torch.cat([kernel.lengthscale.to(self.mixing) for kernel in self.kernels])

    def mean(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Prior means of function j at support x, row by row."""
        return self.offset[j] * mass(self.split(x)[0], self.dimensions)

    def covariance(
        self,
        x1: Float[Tensor, "n c1"],
        j1: Int[Tensor, " n"],
        x2: Float[Tensor, "m c2"],
        j2: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        """Prior covariances of the functions j1 at x1 with the functions j2 at x2."""
        (x1, z1), (x2, z2) = self.split(x1), self.split(x2)
        terms = [
            (a[:, j1].T @ a[:, j2]) * kernel.forward(x1, x2)  # B_q o k_q, by 5.9 and 5.7
            for a, kernel in zip(self._rows(), self.kernels)
        ]
        if z1 is not None and z2 is not None:
            terms.append((j1.unsqueeze(1) == j2) * (COEFFICIENT**2 * z1 @ z2.T))
        return sum(terms[1:], start=terms[0])

    def variance(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Prior variances of function j at support x, row by row."""
        x, z = self.split(x)
        terms = [
            a[:, j].square().sum(0) * kernel.forward(x, x, diag=True)
            for a, kernel in zip(self._rows(), self.kernels)
        ]
        if z is not None:
            terms.append(COEFFICIENT**2 * z.square().sum(1))
        return sum(terms[1:], start=terms[0])

    def _rows(self) -> list[Float[Tensor, "r j"]]:
        """Rows of `mixing` for each kernel."""
        return [self.mixing[self.kernel_of == q] for q in range(len(self.kernels))]

    def learn_lengthscales(self, learn: bool) -> None:
        for kernel in self.kernels:
            kernel.requires_grad_(learn)

    @torch.no_grad()
    def start(
        self,
        offset: Float[Tensor, " j"],
        scale: Float[Tensor, " j"],
        lengthscale: Float[Tensor, " d"],
        generator: torch.Generator,
    ) -> None:
        """Set initial values: equal functions up to scale, kernels from long to short lengthscales.

        Given kernels keep their parameters.
        """
        self.offset.copy_(offset)
        rows = len(self.mixing)
        share = torch.ones(self.mixing.shape, dtype=torch.float64)
        if rows > 1:  # break the symmetry between latent functions
            share += 0.5 * torch.randn(share.shape, generator=generator, dtype=torch.float64)
        self.mixing.copy_(share.to(scale) * scale / rows**0.5)
        for q, kernel in enumerate(self.kernels):
            if isinstance(kernel, IntervalKernel):
                kernel.lengthscale = lengthscale * 0.5**q

    def extend(self, rank: int) -> None:
        """Add a kernel of this rank like the last one, with zero coefficients."""
        rows = self.mixing.new_zeros(rank, self.mixing.shape[1])
        self.mixing = nn.Parameter(torch.cat([self.mixing.detach(), rows]))
        owner = torch.full_like(self.kernel_of[:1], len(self.kernels)).expand(rank)
        self.kernel_of = torch.cat([self.kernel_of, owner])
        self.kernels.append(deepcopy(self.kernels[-1]))  # type: ignore[attr-defined]

    @torch.no_grad()
    def start_last(
        self, lengthscale: Float[Tensor, " d"], share: float, generator: torch.Generator
    ) -> None:
        """Set initial values of the last kernel.

        Args:
            lengthscale: Its lengthscales.
            share: Its deviation, as a share of that of the latent function with the largest one.
            generator: A CPU generator, which breaks the symmetry between its latent functions.
        """
        own = self.kernel_of == len(self.kernels) - 1
        largest = self.mixing[~own][self.mixing[~own].square().sum(1).argmax()]
        start = largest.expand(int(own.sum()), -1)
        if len(start) > 1:
            noise = torch.randn(start.shape, generator=generator, dtype=torch.float64)
            start = start * (1 + 0.5 * noise).to(start)
        self.mixing[own] = share * start
        self.kernels[-1].lengthscale = lengthscale


def mass(x: Float[Tensor, "n c"], dimensions: int) -> Float[Tensor, " n"]:
    """Sum of the weights of each support, |v|: one for an average."""
    weight = pieces(x, dimensions).weight
    return x.new_ones(len(x)) if weight is None else weight.sum(1)
