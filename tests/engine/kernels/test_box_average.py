"""The averaged kernel: digits, limits, gradients, positive semi-definiteness, weighted sets."""

import random

import mpmath as mp
import pytest
import torch
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    ScaleKernel,
    SpectralMixtureKernel,
)

from scant.errors import BadInput
from scant.kernels.box_average.averaged import AveragedKernel
from scant.kernels.box_average.interval_rbf import NARROW, Interval, eq_average, eq_average_pairs
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import boxes, centroids, join, weighted_points, widen

ONE = torch.tensor(1.0, dtype=torch.float64)


def _exact(p, q, r, s, lengthscale=1.0):
    """C.18, C.20 and C.8 in 400 digits, which bear the cancellation."""
    with mp.workdps(400):
        p, q, r, s = (mp.mpf(v) / mp.mpf(lengthscale) for v in (p, q, r, s))

        def g(t):
            return t * mp.sqrt(mp.pi / 2) * mp.erf(t / mp.sqrt(2)) + mp.exp(-t * t / 2)

        def slope(t):
            return mp.sqrt(mp.pi / 2) * mp.erf(t / mp.sqrt(2))

        if p == q and r == s:
            return mp.exp(-((p - r) ** 2) / 2)
        if p == q:
            return (slope(s - p) - slope(r - p)) / (s - r)
        if r == s:
            return (slope(q - r) - slope(p - r)) / (q - p)
        return (g(q - r) + g(p - s) - g(p - r) - g(q - s)) / ((q - p) * (s - r))


def _pair(rng):
    """Two intervals, 0 or 1e-12 to 1e6 long, inside, across, beside and far from each other."""
    a, b = (0.0 if rng.random() < 0.15 else 10 ** rng.uniform(-12, 6) for _ in range(2))
    far = rng.choice([0.0, (a + b) / 2, abs(a - b) / 2, rng.uniform(0, (a + b) / 2 + 35)])
    far = rng.choice([far, (a + b) / 2 + 10 ** rng.uniform(-12, 1.5)])
    p = rng.choice([0.0, rng.uniform(-3, 3)])
    r = p + a / 2 + far * rng.choice([1, -1]) - b / 2
    return p, p + a, r, r + b


def _intervals(rows):
    X = torch.tensor(rows, dtype=torch.float64)
    return Interval(X[:, 0], X[:, 1]), Interval(X[:, 2], X[:, 3])


@pytest.mark.slow
@pytest.mark.parametrize("lengthscale", [1.0, 0.37, 5e3])
def test_nine_digits_at_every_width_and_distance(lengthscale):
    rng = random.Random(int(lengthscale * 100))
    rows = [tuple(lengthscale * v for v in _pair(rng)) for _ in range(300)]
    x, y = _intervals(rows)
    got = eq_average_pairs(x, y, lengthscale * ONE)
    for row, value in zip(rows, got.tolist()):
        exact = _exact(*row, lengthscale)
        if exact > 1e-290:
            assert abs(value - exact) < 1e-9 * exact, row


@pytest.mark.parametrize("width", [NARROW * (1 - 1e-9), NARROW * (1 + 1e-9), NARROW / 2, 0.1, 1.0])
@pytest.mark.parametrize("distance", [0.0, 0.01, 1.0, 5.0, 20.0, 36.0])
def test_digits_where_one_form_gives_way_to_the_other(width, distance):
    rows = [(0.0, width, distance, distance + other) for other in (0.0, width, 0.5, 40.0)]
    x, y = _intervals(rows)
    for row, value in zip(rows, eq_average_pairs(x, y, ONE).tolist()):
        assert abs(value - _exact(*row)) < 1e-10 * _exact(*row)


def test_all_pairs_are_those_of_the_pairs():
    rng = random.Random(0)
    x, y = _intervals([_pair(rng) for _ in range(12)])
    matrix = eq_average(x, y, ONE)
    for shift in range(12):
        index = (torch.arange(12) + shift) % 12
        pairs = eq_average_pairs(x, y.at(index), ONE)
        torch.testing.assert_close(matrix[torch.arange(12), index], pairs, rtol=1e-13, atol=0)


def test_intervals_that_repeat_change_nothing():
    """A grid's few intervals are computed once; with a gradient asked for, each by itself."""
    places = torch.arange(300, dtype=torch.float64)
    lower, width = places % 7, torch.tensor([0.0, 1e-3, 1.0]).double()[(places // 7).long() % 3]
    cells = boxes(lower.unsqueeze(1), (lower + width).unsqueeze(1))
    Z = places[:90].unsqueeze(1) / 30
    kernel = IntervalKernel(1).double()
    by_hand = cells.clone().requires_grad_()
    slopes = []
    for x in (cells, by_hand):
        K = kernel(x, Z).to_dense()
        slopes.append((K, *torch.autograd.grad(K.sin().sum(), kernel.raw_lengthscale)))
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-13, atol=0)
    torch.testing.assert_close(kernel(cells).to_dense(), kernel(by_hand).to_dense())


def _cells(n, d, g, width=1.0):
    lower = 4 * torch.rand(n, d, generator=g, dtype=torch.float64)
    return boxes(lower, lower + width * torch.rand(n, d, generator=g, dtype=torch.float64))


def test_points_are_the_kernels_of_gpytorch():
    g = torch.Generator().manual_seed(0)
    X, Y = (torch.rand(6, 3, generator=g, dtype=torch.float64) for _ in range(2))
    lengthscale = torch.tensor([[0.3, 1.0, 2.0]], dtype=torch.float64)
    known = {"eq": RBFKernel(ard_num_dims=3)}
    known |= {f"matern{int(2 * nu)}2": MaternKernel(nu, ard_num_dims=3) for nu in (0.5, 1.5, 2.5)}
    for shape, kernel in known.items():
        kernel.double().lengthscale = lengthscale
        ours = IntervalKernel(3, shape).double()
        ours.lengthscale = lengthscale
        torch.testing.assert_close(ours(X, Y).to_dense(), kernel(X, Y).to_dense())
        torch.testing.assert_close(ours(boxes(X, X), Y).to_dense(), kernel(X, Y).to_dense())
        torch.testing.assert_close(ours(X, diag=True), torch.ones(6, dtype=torch.float64))


def test_a_width_that_goes_to_zero_ends_at_the_point():
    kernel = IntervalKernel(2).double()
    X = torch.tensor([[0.2, 0.7]], dtype=torch.float64)
    Z = torch.tensor([[0.0, 1.5]], dtype=torch.float64)
    at_point = kernel(X, Z).to_dense().item()
    for width in (1e-3, 1e-6, 1e-9, 1e-12):
        near = kernel(boxes(X - width / 2, X + width / 2), Z).to_dense().item()
        assert near == pytest.approx(at_point, rel=width**2 + 1e-13)


@pytest.mark.parametrize("shape", ["matern12", "matern32", "matern52"])
def test_matern_averages_are_those_of_a_fine_grid(shape):
    kernel = IntervalKernel(2, shape).double()
    kernel.lengthscale = torch.tensor([[0.8, 1.3]], dtype=torch.float64)
    x = torch.tensor([[0.0, 0.0, 1.0, 0.5]], dtype=torch.float64)
    y = torch.tensor([[1.5, 0.2, 1.8, 1.0], [0.0, 0.0, 1.0, 0.5]], dtype=torch.float64)
    steps = (torch.arange(40, dtype=torch.float64) + 0.5) / 40
    fine = torch.cartesian_prod(steps, steps)
    sets = [box[None, :2] + fine * (box[2:] - box[:2]) for box in torch.cat([x, y])]
    sets = weighted_points(torch.stack(sets))
    expected = kernel(sets[:1], sets[1:]).to_dense()
    got = kernel(x, y).to_dense()
    torch.testing.assert_close(got[:, :1], expected[:, :1], rtol=1e-4, atol=0)
    # With itself, the cusp at the origin is felt by the grids of nodes.
    torch.testing.assert_close(got[:, 1:], expected[:, 1:], rtol=1e-2, atol=0)


@pytest.mark.parametrize("shape", ["eq", "matern12", "matern32", "matern52"])
def test_positive_semi_definite_over_mixed_supports(shape):
    g = torch.Generator().manual_seed(1)
    wide, thin = _cells(15, 2, g, width=3.0), _cells(10, 2, g, width=1e-3)
    points = 4 * torch.rand(10, 2, generator=g, dtype=torch.float64)
    bags = weighted_points(4 * torch.rand(5, 3, 2, generator=g, dtype=torch.float64))
    X = join([wide, thin, points, bags], 2)
    K = IntervalKernel(2, shape, nodes=4).double()(X).to_dense()
    torch.testing.assert_close(K, K.T)
    assert torch.linalg.eigvalsh(K).min().item() > -1e-12


def test_a_weighted_set_is_the_sum_of_its_pieces():
    g = torch.Generator().manual_seed(2)
    kernel = IntervalKernel(2).double()
    points = torch.rand(4, 5, 2, generator=g, dtype=torch.float64)
    weight = torch.rand(4, 5, generator=g, dtype=torch.float64)
    Z = _cells(3, 2, g)
    each = kernel(points.flatten(0, 1), Z).to_dense().view(4, 5, 3)
    bags = weighted_points(points, weight)
    torch.testing.assert_close(kernel(bags, Z).to_dense(), (weight[..., None] * each).sum(1))
    torch.testing.assert_close(kernel(bags).to_dense().diagonal(), kernel(bags, diag=True))
    # Two halves of a box, weighted by their areas, are the box.
    halves = torch.tensor([[0.0, 0.0, 0.3, 1.0, 0.3, 0.3, 0.0, 1.0, 1.0, 0.7]]).double()
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).double()
    torch.testing.assert_close(kernel(halves, Z).to_dense(), kernel(whole, Z).to_dense())
    torch.testing.assert_close(kernel(halves, diag=True), kernel(whole, diag=True))
    torch.testing.assert_close(centroids(halves, 2), centroids(whole, 2))
    torch.testing.assert_close(
        kernel(widen(whole, 2, 10), Z).to_dense(), kernel(whole, Z).to_dense()
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["eq", "matern32"])
def test_gradients_are_those_of_differences(shape):
    g = torch.Generator().manual_seed(3)
    kernel = IntervalKernel(2, shape, nodes=3).double()
    wide, thin = _cells(3, 2, g), _cells(2, 2, g, width=1e-3)
    Z = 4 * torch.rand(2, 2, generator=g, dtype=torch.float64)
    X = torch.cat([wide, thin, widen(Z, 2, 4)]).requires_grad_()
    raw = kernel.raw_lengthscale  # moved in place, as gradcheck moves all its inputs
    assert torch.autograd.gradcheck(lambda X, _: kernel(X).to_dense(), (X, raw))
    assert torch.autograd.gradcheck(lambda X, _: kernel(X, diag=True), (X, raw))


def test_gradients_where_edges_meet():
    """Cells of a grid share edges; there a maximum or an absolute value has no slope of its own."""
    rows = [(0, 1, 1, 2), (0, 1, 0, 1), (0, 1, 0, 3), (0, 3, 1, 3), (0, 2, 0.5, 1.5), (0, 1, 2, 2)]
    rows += [(0, 2, 1, 1), (0, 1, 1, 1), (1, 1, 1, 1), (0, 1e-13, 0, 1e-13), (0, 1e-13, 0, 4)]
    X = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    lengthscale = ONE.clone().requires_grad_()
    value = eq_average_pairs(Interval(X[:, 0], X[:, 1]), Interval(X[:, 2], X[:, 3]), lengthscale)
    by_edge, by_scale = torch.autograd.grad(value.sum(), (X, lengthscale))
    total = 0.0
    for row, slopes in zip(rows, by_edge.tolist()):
        with mp.workdps(200):
            total += mp.diff(lambda s, row=row: _exact(*row, s), 1)
        if row[0] == row[1] or row[2] == row[3] or row[1] < 1e-6:
            assert all(abs(s) < 10 for s in slopes)
            continue
        for i, slope in enumerate(slopes):
            with mp.workdps(200):
                exact = mp.diff(lambda e, row=row, i=i: _exact(*row[:i], e, *row[i + 1 :]), row[i])
            assert slope == pytest.approx(float(exact), rel=1e-9, abs=1e-12), (row, i)
    assert float(by_scale) == pytest.approx(float(total), rel=1e-9)


@pytest.mark.parametrize("shape", ["eq", "matern12", "matern52"])
def test_gradients_are_finite_everywhere(shape):
    widths = [0.0, 1e-300, 1e-12, 1e-3, NARROW, 1.0, 1e6]
    places = [0.0, 1e-12, 1.0, 50.0, 1e6]
    edges = torch.tensor([[p, p + w] for p in places for w in widths], dtype=torch.float64)
    edges.requires_grad_()
    kernel = IntervalKernel(1, shape, nodes=2).double()
    (kernel(edges).to_dense().sum() + kernel(edges, diag=True).sum()).backward()
    assert bool(edges.grad.isfinite().all())
    assert bool(kernel.raw_lengthscale.grad.isfinite().all())


def test_bad_supports_are_named():
    low, high = torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]])
    with pytest.raises(BadInput, match="Box 1"):
        boxes(low, high)
    with pytest.raises(BadInput, match="columns"):
        IntervalKernel(2)(torch.zeros(1, 3)).to_dense()
    with pytest.raises(BadInput, match="weight"):
        weighted_points(torch.full((1, 2, 1), torch.nan))
    with pytest.raises(BadInput, match="unknown"):
        IntervalKernel(1, "cubic")


def _own_kernels():
    return [
        ScaleKernel(PeriodicKernel()) + LinearKernel(),
        RBFKernel(ard_num_dims=2) * PolynomialKernel(power=2),
        SpectralMixtureKernel(num_mixtures=2, ard_num_dims=2),
    ]


@pytest.mark.parametrize("base", _own_kernels(), ids=lambda k: type(k).__name__)
def test_a_kernel_of_the_users_own_is_averaged(base):
    """Against Monte Carlo averages over two boxes and a bag of points; of any form of rows."""
    kernel = AveragedKernel(base.double(), 2, nodes=10)
    g = torch.Generator().manual_seed(0)
    lower = torch.tensor([[0.2, -0.5], [0.4, 0.3]], dtype=torch.float64)
    side = torch.tensor([[0.7, 0.4], [0.3, 0.9]], dtype=torch.float64)
    bag = torch.tensor([[[0.1, 0.2], [0.9, -0.3], [0.5, 0.5]]], dtype=torch.float64)
    x = join([boxes(lower, lower + side), weighted_points(bag)], 2)
    drawn = [
        a + s * torch.rand(12_000, 2, generator=g, dtype=torch.float64) for a, s in zip(lower, side)
    ]
    drawn.append(bag[0].repeat(4000, 1))
    with torch.no_grad():
        found = kernel(x).to_dense()
        mixed = torch.randperm(12_000, generator=g)
        expected = [[base(a, b[mixed], diag=True).mean() for b in drawn] for a in drawn]
        expected = torch.tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(found, expected, atol=0.03, rtol=0.03)
        torch.testing.assert_close(kernel(x, diag=True), found.diagonal())
        assert torch.linalg.eigvalsh(found).min().item() > -1e-10
        torch.testing.assert_close(kernel(lower).to_dense(), base(lower).to_dense())


def test_a_matern_kernel_of_gpytorch_is_the_one_by_name():
    ours, theirs = IntervalKernel(2, "matern32").double(), MaternKernel(nu=1.5, ard_num_dims=2)
    theirs = AveragedKernel(theirs.double(), 2)
    ours.lengthscale = theirs.base_kernel.lengthscale = torch.tensor([[0.8, 1.7]]).double()
    lower = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = boxes(lower, lower + 0.5)
    torch.testing.assert_close(ours(x).to_dense(), theirs(x).to_dense())
    torch.testing.assert_close(theirs.lengthscale, ours.lengthscale)
    assert AveragedKernel(LinearKernel(), 2).lengthscale.isnan().all()


def test_cells_of_a_grid_with_themselves_are_as_with_others():
    """By the symmetry of averages over the same supports, gradients too."""
    side = torch.arange(12, dtype=torch.float64) * torch.tensor([[1.0], [0.02]])
    lower = torch.cartesian_prod(*side)
    x = boxes(lower, lower + torch.tensor([1.0, 0.02]).double())
    kernel, weight = IntervalKernel(2).double(), _weights(len(x))
    found = []
    for other in (x, torch.cat([x, x[:1]])):
        kernel.zero_grad()
        K = kernel.forward(x, other)[:, : len(x)]
        (K * weight).sum().backward()
        found.append((K.detach(), kernel.raw_lengthscale.grad.clone()))
    torch.testing.assert_close(found[0], found[1])


def _weights(n):
    return torch.randn(n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
