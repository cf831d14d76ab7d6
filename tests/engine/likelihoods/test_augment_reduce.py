"""Augment and reduce: a bound, an unbiased sum inside it, exact gradients, and no overflow."""

import itertools
import math

import pytest
import torch

from scant.likelihoods import augment_reduce


def _functions(classes=6, functions=3, n=4, seed=0, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    mixing, mean = scale * draw(classes, functions), draw(n, functions)
    label = torch.arange(n) % classes
    return mixing, mean, draw(n, functions).square(), label


def _bound(mixing, mean, variance, label, covariance):
    found = augment_reduce.exponents(
        mixing[None], mixing[label][None], mean[None], variance[None], covariance
    )[0]
    own = torch.nn.functional.one_hot(label, len(mixing)).bool()
    return augment_reduce.bound(found.masked_fill(own, -math.inf))


def _expected(mixing, mean, variance, label, covariance, draws=200_000):
    """E[log softmax] and its standard error, by draws of u, or of independent f."""
    g = torch.Generator().manual_seed(1)
    if covariance == "kept":
        noise = torch.randn(draws, *mean.shape, generator=g, dtype=torch.float64)
        f = (mean + variance.sqrt() * noise) @ mixing.T
    else:
        noise = torch.randn(draws, len(mean), len(mixing), generator=g, dtype=torch.float64)
        f = mean @ mixing.T + (variance @ mixing.square().T).sqrt() * noise
    value = f.log_softmax(-1)[:, torch.arange(len(label)), label]
    return value.mean(0), value.std(0) / draws**0.5


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_it_is_below_the_expected_log_softmax(covariance, scale):
    case = _functions(scale=scale)
    exact, error = _expected(*case, covariance)
    assert bool((exact - _bound(*case, covariance) > -4 * error).all())


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_without_variance_it_is_the_log_softmax(covariance):
    mixing, mean, variance, label = _functions()
    got = _bound(mixing, mean, 0 * variance, label, covariance)
    expected = (mean @ mixing.T).log_softmax(-1)[torch.arange(len(label)), label]
    torch.testing.assert_close(got, expected)


def test_what_classes_have_in_common_cancels_only_where_covariances_are_kept():
    mixing, mean, variance, label = _functions()
    same = mixing + torch.tensor([5.0, 0, 0]).double()  # one more function that all share
    kept = [_bound(m, mean, variance, label, "kept") for m in (mixing, same)]
    dropped = [_bound(m, mean, variance, label, "dropped") for m in (mixing, same)]
    torch.testing.assert_close(*kept)
    assert bool((dropped[1] < dropped[0]).all())


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_drawn_classes_have_the_exponents_that_they_have_among_all(covariance):
    mixing, mean, variance, label = _functions()
    among_all = augment_reduce.exponents(
        mixing[None], mixing[label][None], mean[None], variance[None], covariance
    )[0]
    drawn = torch.tensor([[1, 2], [5, 0], [3, 4], [2, 2]])
    rows = mixing[torch.cat([label.unsqueeze(1), drawn], 1)]
    found = augment_reduce.sampled_exponents(rows, mean, variance, covariance)
    torch.testing.assert_close(found, among_all.gather(1, drawn))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_sum_of_drawn_classes_is_unbiased(count):
    """Over all subsets, the estimate inside the logarithm averages to the full sum."""
    mixing, mean, variance, label = _functions(n=1)
    found = augment_reduce.exponents(
        mixing[None], mixing[label][None], mean[None], variance[None]
    ).flatten()
    others = [c for c in range(6) if c != int(label)]
    estimates = [
        5 / count * found[list(subset)].exp().sum()
        for subset in itertools.combinations(others, count)
    ]
    torch.testing.assert_close(torch.stack(estimates).mean(), found[others].exp().sum())
    # The function turns exactly these estimates into bounds, on average above that of all classes.
    factor = torch.tensor([5 / count]).double().log()
    bounds = [
        augment_reduce.bound(found[list(s)][None], factor).item()
        for s in itertools.combinations(others, count)
    ]
    assert bounds == pytest.approx([-math.log1p(e.item()) for e in estimates])
    assert sum(bounds) / len(bounds) > augment_reduce.bound(found[others]).item()


def test_every_subset_is_drawn_equally_often_and_each_output_has_its_own_factor():
    g = torch.Generator().manual_seed(0)
    sizes, label = torch.tensor([3, 6]).repeat(6000), torch.tensor([2, 1]).repeat(6000)
    for count, subsets in ((1, (2, 5)), (2, (1, 10)), (4, (1, 5))):
        drawn, log_factor = augment_reduce.sample(label, sizes, count, 6, g)
        for of, (c, total) in enumerate(zip((3, 6), subsets)):
            sets = [tuple(sorted(v for v in row if v >= 0)) for row in drawn[of::2].tolist()]
            kinds = set(sets)
            assert len(kinds) == total
            assert all(len(set(s)) == len(s) == min(count, c - 1) for s in kinds)
            assert not any(label[of].item() in s or max(s) >= c for s in kinds)
            often = [sets.count(k) for k in kinds]
            assert max(often) - min(often) < 6 * (6000 / total) ** 0.5 + 1
            assert log_factor[of].item() == pytest.approx(math.log((c - 1) / min(count, c - 1)))


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_gradients_are_those_of_the_naive_form(covariance):
    mixing, mean, variance, label = _functions()

    def naive(mixing, mean, variance):
        total = []
        for i, y in enumerate(label.tolist()):
            p = 0.0
            for c in range(len(mixing)):
                if c != y:
                    a, b = mixing[c], mixing[y]
                    weight = (a - b).square() if covariance == "kept" else a**2 + b**2
                    p = p + torch.exp((a - b) @ mean[i] + 0.5 * weight @ variance[i])
            total.append(-torch.log(1 + p))
        return torch.stack(total)

    inputs = [v.clone().requires_grad_() for v in (mixing, mean, variance)]
    got, expected = _bound(*inputs, label, covariance), naive(*inputs)
    torch.testing.assert_close(got, expected)
    for a, b in zip(
        torch.autograd.grad(got.sum(), inputs), torch.autograd.grad(expected.sum(), inputs)
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_huge_functions_stay_finite(covariance):
    """Functions of 1e3 either way: the naive exponential would overflow."""
    mixing = torch.tensor([[1.0], [-1.0], [0.5]]).double().requires_grad_()
    mean = torch.tensor([[1e3], [-1e3]]).double().requires_grad_()
    variance = torch.tensor([[1.0], [1e3]]).double().requires_grad_()
    got = _bound(mixing, mean, variance, torch.tensor([0, 0]), covariance)
    got.sum().backward()
    assert got[0].item() == pytest.approx(0, abs=1e-9)
    assert got[1].item() < -2e3
    for part in (got, mixing.grad, mean.grad, variance.grad):
        assert bool(part.isfinite().all())
