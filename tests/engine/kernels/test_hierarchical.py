"""Hierarchical kernels: their definition, batches, and the levels they are made of."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel

from scant.errors import BadInput
from scant.kernels.hierarchical import SHAPES, ReplicaKernel, level


def rows(n: int = 25, labels: int = 2, seed: int = 0) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=made, dtype=torch.float64)
    return torch.cat([x, torch.randint(0, 3, (n, labels), generator=made).double()], dim=1)


def test_two_levels_are_the_publications_definition() -> None:
    g, f = level("rbf", 0.7, 1.3), level("matern32", 0.4, 0.6)
    points = rows(labels=1)
    K = ReplicaKernel(g, f)(points).to_dense()
    x, r = points[:, :1], points[:, 1]
    for i in range(0, 25, 5):
        for j in range(25):
            expected = 0.7 * torch.exp(-0.5 * ((x[i] - x[j]) / 1.3).square())
            if r[i] == r[j]:
                scaled = 3**0.5 * (x[i] - x[j]).abs() / 0.6
                expected = expected + 0.4 * (1 + scaled) * torch.exp(-scaled)
            assert K[i, j].item() == pytest.approx(expected.item(), abs=1e-7)


def test_a_narrower_level_is_shared_only_within_the_wider_one() -> None:
    K = ReplicaKernel(level("rbf", 1.0), level("rbf", 0.5), level("rbf", 0.25))
    # The same replica number in another output is another replica.
    points = torch.tensor([[0.0, 0, 0], [0.0, 0, 0], [0.0, 0, 1], [0.0, 1, 0]]).double()
    row = K(points).to_dense()[0].tolist()
    assert row == pytest.approx([1.75, 1.75, 1.5, 1.0])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [2, 3])
def test_matrices_are_positive_semi_definite_and_their_diagonals_agree(
    shape: str, levels: int
) -> None:
    kernel = ReplicaKernel(*(level(shape, 1.0 / (i + 1), 1.0 - 0.3 * i) for i in range(levels)))
    points = rows(40, levels - 1)
    K = kernel(points).to_dense()
    assert torch.linalg.eigvalsh(K).min() > -1e-10
    assert torch.allclose(K, K.T, atol=1e-7)
    assert torch.allclose(kernel(points, diag=True), K.diagonal())
    assert torch.allclose(kernel(points[:7], points[7:]).to_dense(), K[:7, 7:], atol=1e-7)


def test_any_kernel_of_gpytorch_may_be_a_level() -> None:
    periodic = ScaleKernel(PeriodicKernel()).double()
    points = rows(10, 1)
    K = ReplicaKernel(periodic, RBFKernel().double())(points).to_dense()
    same = points[:, 1:] == points[:, 1]
    x = points[:, :1]
    expected = periodic(x).to_dense() + same * RBFKernel().double()(x).to_dense()
    assert torch.allclose(K, expected)


def test_a_batch_is_as_many_hierarchies() -> None:
    variances = torch.tensor([0.5, 2.0]).double()
    batch = ReplicaKernel(level("rbf", variances, batch=2), level("rbf", 1.0, variances, batch=2))
    assert batch.batch_shape == torch.Size([2])
    points = torch.stack([rows(8, 1, seed) for seed in (1, 2)])
    K = batch(points).to_dense()
    for b, v in enumerate(variances.tolist()):
        alone = ReplicaKernel(level("rbf", v), level("rbf", 1.0, v))
        assert torch.allclose(K[b], alone(points[b]).to_dense())


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(BadInput, match="'cubic' is unknown; use one of"):
        level("cubic")
    with pytest.raises(BadInput, match="one level at least"):
        ReplicaKernel()
