"""Kernels of replicas, and of classes that share a space."""

from __future__ import annotations

import math

import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel

from scant.errors import BadInput
from scant.kernels.hierarchical import SHAPES, ReplicaKernel, level
from scant.kernels.shared_private import FLAT, NOTHING, ClassPrivateKernel


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


N, M, CLASSES, SAMPLES = 6, 7, 3, 100_000


def _case(shared=2, private=2, classes=CLASSES):
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    kernel = ClassPrivateKernel(shared, private, classes)
    for p in kernel.parameters():
        p.data += 0.3 * draw(*p.shape, 1).squeeze(-1)
    q = shared + private
    label, Z_class = torch.arange(N) % classes, torch.arange(M) % classes
    return kernel, draw(N, q), 0.1 + 0.4 * draw(N, q).abs(), label, draw(M, q), Z_class, g


SPACES = [(2, 2), (3, 0), (0, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "private"), SPACES)
@torch.no_grad()
def test_psi_statistics_agree_with_monte_carlo(shared, private):
    kernel, mean, variance, label, Z, Z_class, g = _case(shared, private)
    noise = torch.randn(SAMPLES, *mean.shape, generator=g, dtype=torch.float64)
    x = (mean + variance.sqrt() * noise).view(-1, mean.shape[1])
    k = kernel.covariance(x, label.repeat(SAMPLES), Z, Z_class).view(SAMPLES, N, M)
    kk = torch.einsum("sni,snj->snij", k, k)

    def away(got, samples):
        return float(((got - samples.mean(0)).abs() / (samples.std(0) / SAMPLES**0.5 + 1e-5)).max())

    args = (mean, variance, label, Z, Z_class)
    assert away(kernel.psi1(*args), k) < 5
    assert away(kernel.psi2(*args, torch.eye(N).double()), kk) < 5
    torch.testing.assert_close(
        kernel.psi0().expand(N), kernel.covariance(mean, label, mean, label).diagonal()
    )


@pytest.mark.parametrize(("shared", "private"), SPACES)
def test_sums_and_products_agree_with_each_row(shared, private):
    kernel, mean, variance, label, Z, Z_class, g = _case(shared, private)
    args = (mean, variance, label, Z, Z_class)
    each = kernel.psi2(*args, torch.eye(N).double())
    weights = torch.rand(N, 2, generator=g, dtype=torch.float64)
    torch.testing.assert_close(
        kernel.psi2(*args, weights), torch.einsum("nw,nij->wij", weights, each)
    )
    matrix = torch.randn(M, M, generator=g, dtype=torch.float64)
    matrix = matrix + matrix.T
    torch.testing.assert_close(
        kernel.psi2_dot(*args, matrix), torch.einsum("nij,ij->n", each, matrix)
    )


@pytest.mark.parametrize(("shared", "private"), SPACES)
def test_slopes_of_psi1_are_its_derivatives(shared, private):
    kernel, mean, variance, label, Z, Z_class, _ = _case(shared, private)
    slope = kernel.psi1_slope(mean, variance, label, Z, Z_class)
    J = torch.func.jacrev(lambda m: kernel.psi1(m, variance, label, Z, Z_class).sum(0))(mean)
    torch.testing.assert_close(slope, J.permute(1, 2, 0))


def test_classes_meet_in_the_shared_space_alone():
    kernel, mean, _, label, _, _, _ = _case()
    shared, private = kernel.parts(mean, label, mean, label)
    other = label.unsqueeze(1) != label
    assert bool((private[other] == 0).all())
    assert bool((private[~other] > 0).all())
    assert bool((shared > 0).all())
    torch.testing.assert_close(kernel.covariance(mean, label, mean, label), shared + private)
    assert bool((torch.linalg.eigvalsh(shared + private) > -1e-12).all())


@pytest.mark.slow
def test_gradients_are_those_of_finite_differences():
    kernel, mean, variance, label, Z, Z_class, _ = _case()
    names = [name for name, _ in kernel.named_parameters()]
    leaves = [t.clone().requires_grad_() for t in (mean, variance, Z)]
    leaves += [p.detach().clone().requires_grad_() for p in kernel.parameters()]
    weights, matrix = torch.ones(N, 1).double(), torch.eye(M).double() + 0.1

    def both(m, v, z, *values):
        for name, value in zip(names, values):
            part, _, own = name.partition(".")
            inside = getattr(kernel, part)
            inside._parameters.pop(own, None)
            setattr(inside, own, value)
        args = (m, v, label, z, Z_class)
        return kernel.psi2(*args, weights), kernel.psi2_dot(*args, matrix), kernel.psi1(*args)

    assert torch.autograd.gradcheck(both, leaves)


@pytest.mark.parametrize("numbers", [(0, 0, 1), (2, -1, 1), (2, 2, 0)])
def test_a_space_that_is_none_is_said(numbers):
    with pytest.raises(BadInput, match="use one dimension"):
        ClassPrivateKernel(*numbers)


def test_a_dimension_along_which_nothing_varies_stays_finite():
    """An optimizer lengthens such a lengthscale without end, since nothing speaks against it."""
    kernel, mean, variance, label, Z, Z_class, _ = _case()
    with torch.no_grad():
        kernel.private.log_lengthscale.fill_(400.0)
        kernel.shared.log_variance.fill_(-800.0)
    total = kernel.psi1(mean, variance, label, Z, Z_class).sum() + kernel.psi0().sum()
    gradient = torch.autograd.grad(total, [kernel.private.log_lengthscale])[0]
    assert torch.isfinite(total)
    assert torch.isfinite(gradient).all()
    # At the bounds of `shared_private`, k_s is 0, and k_p its variance within a class.
    assert kernel.private.precision.tolist() == pytest.approx([math.exp(-2 * FLAT)] * 2)
    assert kernel.shared.variance.item() == pytest.approx(math.exp(-NOTHING))
    same_class = int((label.unsqueeze(1) == Z_class).sum())
    expected = kernel.private.variance.item() * (same_class + 1)
    assert total.item() == pytest.approx(expected, rel=1e-9)
