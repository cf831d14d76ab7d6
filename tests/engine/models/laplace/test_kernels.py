"""The linear part of the classifiers' kernel: against its formula, and logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.laplace.kernels import LinearAndRBF


def rows(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("ard", [False, True])
def test_it_is_the_sum_of_its_parts(ard: bool) -> None:
    kernel, a, b = LinearAndRBF(3, ard), rows(5), rows(4, 1)
    inner = kernel.curved.base_kernel
    inner.lengthscale = torch.tensor([[0.5, 1.0, 2.0]]) if ard else 0.7
    kernel.curved.outputscale = 2.0
    with torch.no_grad():
        kernel.raw_slope.fill_(np.log(0.3))
        kernel.raw_constant.fill_(np.log(1.7))
        away = (a[:, None] - b) / inner.lengthscale.double()
        exact = 2 * (-0.5 * away.square().sum(2)).exp() + 0.3 / 3 * a @ b.T + 1.7
        torch.testing.assert_close(kernel(a, b).to_dense(), exact)
        torch.testing.assert_close(kernel(a, diag=True), kernel(a, a).to_dense().diagonal())


def test_alone_it_is_logistic_regression() -> None:
    x, new = rows(80), rows(40, 1)
    y = (x[:, 0] - 0.5 * x[:, 1] + 0.5 * rows(80, 2)[:, 0] > 0.2).long()
    model = LaplaceGPC.build(x, y, linear=True)
    with torch.no_grad():
        model.kernel.curved.raw_outputscale.fill_(-30.0)
        model.kernel.raw_slope.fill_(np.log(3 * 2.0))  # weights have variance 2
        model.kernel.raw_constant.fill_(np.log(1e6))
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(model.latent(new)[0], theirs.decision_function(new), atol=1e-2)


def test_its_parts_are_learned_and_held_by_the_prior() -> None:
    x = rows(60)
    y = (x[:, 0] > 0).long()  # told apart without an error
    model = LaplaceGPC.build(x, y, prior=Prior(), linear=True)
    before = float(model.elbo().detach())
    model.fit(50)
    assert float(model.elbo().detach()) > before
    assert 3 < float(model.kernel.slope.detach()) < 1e3
    again = model.refit(x[:40], y[:40])
    assert isinstance(again.kernel, LinearAndRBF)
    assert torch.equal(again.kernel.slope, model.kernel.slope)
