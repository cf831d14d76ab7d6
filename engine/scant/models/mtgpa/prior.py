"""The linear model of coregionalisation over averages: the prior of MTGPA.

    f_j(v) = |v| offset_j + sum_q sum_i a^i_{j,q} u^i_q(v),    u^i_q ~ GP(0, k_q averaged over v)

(Yousefi 2021, 5.8-5.9), i = 1..R_q, so that cov(f_j(v), f_j'(v')) = sum_q B_q[j, j'] k_q(v, v')
with B_q = sum_i a^i_q a^i_q'. |v| is the sum of the support's weights: one for an average. The
publication has no offsets: a constant added to a function is added to each of its averages. Nor has
it covariates z of supports: where there are some, z' b_j is added, with coefficients
b_j ~ N(0, COEFFICIENT^2 I) of each function.
"""

from __future__ import annotations

from collections.abc import Sequence
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

COEFFICIENT = 2.0  # prior deviation of coefficients, of covariates and values of unit variance


class Data(NamedTuple):
    """Observations of all tasks, one a row.

    `supports` are rows as `scant.kernels.box_average.support` describes them, `task` counts from
    0, `exposure`
    multiplies the rate of counts (of a `gaussian_rate` it is the denominator) and is 1 where not
    given; `known` is the variance of known noise, which Gaussian tasks have beside what they learn.
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
    """Functions j at supports x, row by row or all pairs of rows.

    The last `covariates` columns of x are no part of the support: each function has a linear mean
    in them.
    """

    covariates = 0

    def split(
        self, x: Float[Tensor, "n c"]
    ) -> tuple[Float[Tensor, "n c2"], Float[Tensor, "n p"] | None]:
        """Supports, and the covariates beside them."""
        if not self.covariates:
            return x, None
        return x[:, : -self.covariates], x[:, -self.covariates :]

    def forward(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> MultivariateNormal:
        """Of function j at support x in each row."""
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
        """Of the functions j1 at x1 with the functions j2 at x2; a tensor of the caller's own."""
        raise NotImplementedError


class Coregionalisation(Prior):
    """The prior of J functions on Q kernels.

    Args:
        dimensions: d of the space that the supports lie in.
        functions: J.
        ranks: R_q of each kernel; their number is Q.
        shape: Of the kernels, as in `IntervalKernel`.
        kernels: Q kernels of GPyTorch in place of these, over points (they are averaged over
            supports by quadrature) or over supports. Their start values stay as given.
        covariates: How many columns behind those of a support enter linearly.
        alike: The number of first dimensions that share a lengthscale, as in `IntervalKernel`.

    `mixing` holds the a, one row a latent function, `kernel_of` says which kernel a row has.
    Kernels have unit variance: theirs is contained in `mixing`.

    Raises:
        BadInput: A rank below one, or not as many ranks as kernels.
    """

    kernel_of: Tensor
    kernels: Sequence[SupportKernel]

    def __init__(
        self,
        dimensions: int,
        functions: int,
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        kernels: Sequence[Kernel] | None = None,
        covariates: int = 0,
        alike: int = 1,
    ) -> None:
        super().__init__()
        self.covariates = covariates
        if not ranks or min(ranks) < 1:
            raise BadInput(f"Every latent function needs a rank of at least 1, got {list(ranks)}.")
        if kernels is None:
            # Steps of a logarithm are relative, whatever the unit of the inputs.
            kernels = [
                IntervalKernel(
                    dimensions,
                    shape,
                    alike=alike,
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
        """The coregionalisation matrices B_q."""
        return torch.stack([a.T @ a for a in self._rows()])

    def lengthscales(self) -> Float[Tensor, "q d"]:
        """In the units of the inputs; NaN of a kernel that has none."""
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
        """The mixing of the latent functions of each kernel."""
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
        """Start values: all functions alike but for their scales; kernels from long to short.

        Kernels that were given keep their own.
        """
        self.offset.copy_(offset)
        rows = len(self.mixing)
        share = torch.ones(self.mixing.shape, dtype=torch.float64)
        if rows > 1:  # else nothing would ever tell one latent function from another
            share += 0.5 * torch.randn(share.shape, generator=generator, dtype=torch.float64)
        self.mixing.copy_(share.to(scale) * scale / rows**0.5)
        for q, kernel in enumerate(self.kernels):
            if isinstance(kernel, IntervalKernel):
                kernel.lengthscale = lengthscale * 0.5**q

    @torch.no_grad()
    def refine(self, lengthscale: Float[Tensor, " d"], shorter: float, share: float) -> None:
        """Make kernels after the first shorter and smaller, from one to the next."""
        self.mixing *= share ** self.kernel_of.to(self.mixing).unsqueeze(1)
        for q, kernel in enumerate(self.kernels):
            if isinstance(kernel, IntervalKernel):
                kernel.lengthscale = lengthscale * shorter**q


def mass(x: Float[Tensor, "n c"], dimensions: int) -> Float[Tensor, " n"]:
    """Sums of the weights of supports: one for an average."""
    weight = pieces(x, dimensions).weight
    return x.new_ones(len(x)) if weight is None else weight.sum(1)
