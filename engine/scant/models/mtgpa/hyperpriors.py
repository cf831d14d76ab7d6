"""Hyperpriors for maps of rates: penalized complexity (Simpson et al. 2017) and similar variances.

Maps of counts often have a few dozen areas, whose likelihood hardly distinguishes a flat map from
one with a short lengthscale and large deviations. Log rates of related tasks have similar
deviations, which helps tasks that are observed in few large areas. Densities are with respect to
the logarithms, in which the parameters are learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.priors import Prior as GPyTorchPrior
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.prior import Coregionalization

SHARE = 0.2  # prior median of a map's lengthscale, as a share of the extent
LARGE = 1.0  # deviation of a log rate that is exceeded with probability 0.01
ALIKE = 0.1  # prior deviation of tasks' log deviations from their mean; areal models have 0


class ShortLengthscale(GPyTorchPrior):
    """Prior with exponential 1 / lengthscale (Fuglstad et al. 2019, in two dimensions).

    Args:
        median: Prior median of the lengthscale.
    """

    def __init__(self, median: float) -> None:
        torch.nn.Module.__init__(self)
        self.rate = math.log(2) * median

    def log_prob(self, lengthscale: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return math.log(self.rate) - lengthscale.log() - self.rate / lengthscale


class AlikeDeviations(GPyTorchPrior):
    """Prior with an exponential geometric mean of deviations and log-normal ratios to it.

    Args:
        large: Value that the mean exceeds with probability 0.01.
        ratio_deviation: Standard deviation of the log ratios.
    """

    def __init__(self, large: float, ratio_deviation: float) -> None:
        torch.nn.Module.__init__(self)
        self.rate = math.log(100) / large
        self.ratio_deviation = ratio_deviation

    def log_prob(self, deviations: Float[Tensor, " j"]) -> Float[Tensor, ""]:
        log = deviations.log()
        mean = log.mean()
        log_ratios = -0.5 * ((log - mean) / self.ratio_deviation).square().sum()
        return math.log(self.rate) + mean - self.rate * mean.exp() + log_ratios


def favor_flat_maps(prior: Coregionalization, extent: float, functions: Sequence[int]) -> None:
    """Register hyperpriors on each kernel's map lengthscale and on the functions' deviations.

    Args:
        prior: Prior whose leading dimensions are those of a map and share a lengthscale.
        extent: Extent of the data on the map, in the unit of its dimensions.
        functions: Indices of the functions that are log rates.
    """
    for kernel in prior.kernels:
        kernel.register_prior(
            "short_lengthscale",
            ShortLengthscale(SHARE * extent),
            lambda kernel: kernel.lengthscale[:, 0],
        )
    rates = list(functions)
    prior.register_prior(
        "alike_deviations",
        AlikeDeviations(LARGE, ALIKE),
        lambda prior: (prior.matrices().sum(0).diagonal()[rates] + 1e-12).sqrt(),
    )
