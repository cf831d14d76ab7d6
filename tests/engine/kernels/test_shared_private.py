"""The class-private kernel and its psi statistics, against sampling and plain sums."""

import pytest
import torch

from scant.errors import BadInput
from scant.kernels.shared_private import ClassPrivateKernel

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
    assert kernel.private.precision.min() > 0
    assert kernel.shared.variance > 0
