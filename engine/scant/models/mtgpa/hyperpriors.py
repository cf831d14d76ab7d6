"""Priors of maps of rates: penalized complexity, as INLA has it (Simpson et al. 2017), and tasks
that vary alike.

Maps of counts are often a few dozens of areas, whose likelihood is about as content with a short
lengthscale and large deviations as with a flat map. Logarithmic rates of related tasks vary about
alike, so that one which is known in a few large areas need not tell alone how much it varies.
Densities are by the logarithm of what they are of, in which it is learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.priors import Prior as GPyTorchPrior
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.prior import Coregionalisation

SHARE = 0.2  # of the extent, below which a map's lengthscale lies with probability 0.5
LARGE = 1.0  # deviation of a logarithmic rate that is exceeded with probability 0.01
ALIKE = (
    0.1  # deviation of the logarithms of tasks' deviations about their mean; areal models have 0
)


class ShortLengthscale(GPyTorchPrior):
    """1 / lengthscale is exponential (Fuglstad et al. 2019, in two dimensions).

    Args:
        median: Of the lengthscale.
    """

    def __init__(self, median: float) -> None:
        torch.nn.Module.__init__(self)
        self.rate = math.log(2) * median

    def log_prob(self, lengthscale: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return math.log(self.rate) - lengthscale.log() - self.rate / lengthscale


class AlikeDeviations(GPyTorchPrior):
    """The geometric mean of deviations is exponential, their ratios to it are log-normal.

    Args:
        large: What the mean exceeds with probability 0.01.
        alike: Deviation of the logarithms of the ratios.
    """

    def __init__(self, large: float, alike: float) -> None:
        torch.nn.Module.__init__(self)
        self.rate = math.log(100) / large
        self.alike = alike

    def log_prob(self, deviations: Float[Tensor, " j"]) -> Float[Tensor, ""]:
        log = deviations.log()
        mean = log.mean()
        apart = -0.5 * ((log - mean) / self.alike).square().sum()
        return math.log(self.rate) + mean - self.rate * mean.exp() + apart


def favor_flat_maps(prior: Coregionalisation, extent: float, functions: Sequence[int]) -> None:
    """Register both on the map's lengthscale of each kernel and on the functions' deviations.

    Args:
        prior: Its first dimensions are those of a map, whose lengthscale they share.
        extent: Of the data on the map, in the unit of its dimensions.
        functions: Those that are logarithmic rates.
    """
    for kernel in prior.kernels:
        kernel.register_prior(
            "short_lengthscale",
            ShortLengthscale(SHARE * extent),
            lambda kernel: kernel.lengthscale[:, 0],
        )
    of_rates = list(functions)
    prior.register_prior(
        "alike_deviations",
        AlikeDeviations(LARGE, ALIKE),
        lambda prior: (prior.matrices().sum(0).diagonal()[of_rates] + 1e-12).sqrt(),
    )
