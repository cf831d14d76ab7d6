"""Priors that favor flat maps: densities by the logarithm, their medians, and where they act."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import weighted_points
from scant.models.hyperprior import log_hyperprior
from scant.models.mtgpa.hyperpriors import (
    ALIKE,
    LARGE,
    SHARE,
    AlikeDeviations,
    ShortLengthscale,
    favor_flat_maps,
)
from scant.models.mtgpa.initialization import inducing_points
from scant.models.mtgpa.prior import Coregionalisation


@pytest.mark.parametrize(
    ("prior", "at", "below"),
    [(ShortLengthscale(3.0), 3.0, 0.5), (AlikeDeviations(1.5, 0.3), 1.5, 0.99)],
)
def test_densities_add_up_and_have_their_quantile(
    prior: torch.nn.Module, at: float, below: float
) -> None:
    log = torch.linspace(-12, 14, 2_601, dtype=torch.float64)
    each = torch.stack([prior.log_prob(one) for one in log.exp().unsqueeze(1)]).ravel()
    density = each.exp() * (log[1] - log[0])
    assert float(density.sum()) == pytest.approx(1, abs=1e-3)
    assert float(density[log.exp() < at].sum()) == pytest.approx(below, abs=5e-3)


def test_both_act_on_a_prior_and_pull_towards_a_flat_map() -> None:
    prior = Coregionalisation(3, 2, (2,), alike=2)
    generator = torch.Generator().manual_seed(0)
    ones = torch.ones(2, dtype=torch.float64)
    wide = torch.tensor([4.0, 4.0, 7.0], dtype=torch.float64)
    prior.start(0 * ones, ones, wide, generator)
    assert log_hyperprior(prior) == 0
    favor_flat_maps(prior, 100.0, [0, 1])
    value = log_hyperprior(prior)
    spread = prior.matrices().sum(0).diagonal().sqrt()
    expected = ShortLengthscale(SHARE * 100).log_prob(torch.tensor(4.0))
    expected = expected + AlikeDeviations(LARGE, ALIKE).log_prob(spread)
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    value.backward()
    assert float(prior.kernels[0].raw_lengthscale.grad[0, 0]) > 0  # longer than 4 of 100
    assert float(prior.kernels[0].raw_lengthscale.grad[0, 1]) == 0  # time has none
    assert float((prior.mixing * prior.mixing.grad).sum()) < 0  # smaller


def test_tasks_vary_alike() -> None:
    prior = AlikeDeviations(LARGE, ALIKE)
    same, other = (torch.tensor(pair) for pair in ([0.4, 0.4], [0.8, 0.2]))
    gap = np.log(2) / ALIKE  # of each, in deviations
    assert float(prior.log_prob(same) - prior.log_prob(other)) == pytest.approx(gap**2, rel=1e-5)


def test_dimensions_of_a_map_share_a_lengthscale() -> None:
    kernel = IntervalKernel(3, alike=2).double()
    kernel.lengthscale = torch.tensor([2.0, 8.0, 5.0])
    np.testing.assert_allclose(kernel.lengthscale.detach(), [[4.0, 4.0, 5.0]])
    assert kernel.raw_lengthscale.numel() == 2
    apart = IntervalKernel(3).double()
    apart.lengthscale = torch.tensor([4.0, 4.0, 5.0])
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(kernel.forward(x, x), apart.forward(x, x))
    turned = x[:, [1, 0, 2]]
    torch.testing.assert_close(kernel.forward(x, x), kernel.forward(turned, turned))
    kernel.forward(x, x)[0, 1].backward()
    assert kernel.raw_lengthscale.grad is not None


def test_inducing_points_inside_supports_are_their_own_points() -> None:
    generator = torch.Generator().manual_seed(2)
    points = torch.rand(6, 4, 2, generator=generator, dtype=torch.float64)
    points[:, 3] = points[:, 0]  # as padding lies
    supports = weighted_points(points)
    all_of_them = inducing_points(supports, 2, 50, "inside", generator)
    assert all_of_them.shape == (18, 2)
    apart = torch.cdist(points.flatten(0, 1), all_of_them).amin(1)
    assert float(apart.max()) == 0
    assert inducing_points(supports, 2, 5, "inside", generator).shape == (5, 2)
