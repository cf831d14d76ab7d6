"""The matrices of an EQ kernel, against one by one, and their gradients against differences."""

import pytest
import torch

from scant.inference import psi
from scant.inference.expectations import expected_kernel, expected_product_sum, log_kernel
from scant.inference.psi import eq_matrices


def _case(n=6, m=4, q=3):
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    leaves = [draw(n, q), 0.1 + draw(n, q).abs(), draw(m, q), draw(q).exp(), draw(1)[0]]
    return [leaf.requires_grad_() for leaf in leaves], draw(n, 3).abs()


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kept", [0, 1 << 22])
def test_matrices_and_their_gradients(columns, kept, monkeypatch):
    monkeypatch.setattr(psi, "KEPT", kept)
    monkeypatch.setattr(psi, "BLOCK", 20)  # two rows
    leaves, weights = _case()
    weights = weights[:, :columns]
    mean, variance, Z, precision, level = leaves
    k, one, two = eq_matrices(*leaves, weights)
    height, at = level.exp(), (mean, variance, Z, precision)
    torch.testing.assert_close(k, height * log_kernel(Z, Z, precision).exp())
    torch.testing.assert_close(one, height * expected_kernel(*at))
    torch.testing.assert_close(two, height**2 * expected_product_sum(*at, weights))
    assert torch.autograd.gradcheck(lambda *p: eq_matrices(*p, weights), leaves)
