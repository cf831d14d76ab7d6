"""A GP averaged over its hyperparameters, against plain importance sampling of their prior."""

import math

import numpy as np
import pytest
import torch

from scant.models.marginal_gp import JITTER, NOISE, SIGNAL, SLOPE, WIDTH, MarginalGP


def _wave(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = np.linspace(-1.5, 1.5, n)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


def _covariance(a: np.ndarray, b: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Of 1-d inputs, for one draw of logarithms, written out."""
    r = math.sqrt(5) * np.abs(a[:, None] - b) / math.exp(theta[3])
    wave = math.exp(2 * theta[1]) * (1 + r + r**2 / 3) * np.exp(-r)
    return wave + math.exp(2 * theta[2]) * a[:, None] * b + 1


@pytest.mark.slow
def test_moments_are_those_of_the_posterior_of_the_hyperparameters() -> None:
    x, y = _wave(10)
    asked = np.array([-2.0, -0.4, 0.1, 1.0, 2.5])
    prior = np.array([NOISE, SIGNAL, SLOPE, WIDTH])
    draws = np.log(prior[:, 0]) + prior[:, 1] * np.random.default_rng(0).normal(size=(20_000, 4))
    evidence, means, squares = [], [], []
    for theta in draws:
        root = np.linalg.cholesky(
            _covariance(x[:, 0], x[:, 0], theta)
            + (math.exp(2 * theta[0]) + JITTER) * np.eye(len(x))
        )
        white = np.linalg.solve(root, y)
        seen = np.linalg.solve(root, _covariance(x[:, 0], asked, theta))
        mean = seen.T @ white
        own = math.exp(2 * theta[1]) + math.exp(2 * theta[2]) * asked**2 + 1
        evidence.append(-0.5 * white @ white - np.log(root.diagonal()).sum())
        means.append(mean)
        squares.append(own - (seen**2).sum(0) + mean**2)
    weight = np.exp(np.array(evidence) - max(evidence))
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 200, "enough draws count"
    mean = weight @ np.array(means)
    variance = weight @ np.array(squares) - mean**2

    found, spread = MarginalGP.of(x, y).ask(asked[:, None])

    assert np.abs(found - mean) == pytest.approx(0, abs=0.1)
    assert spread**0.5 == pytest.approx(variance**0.5, rel=0.25)


def test_the_same_rows_give_the_same_bits_and_what_is_stored_is_read() -> None:
    x, y = _wave(12)
    first, again = MarginalGP.of(x, y), MarginalGP.of(x, y)
    read = MarginalGP.read(first.tensors())
    for other in (again, read):
        assert torch.equal(first.theta, other.theta)
        for one, two in zip(first.ask(x), other.ask(x)):
            assert np.array_equal(one, two)


def test_many_inputs_share_a_lengthscale_and_a_line_is_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 25))
    y = x[:, 0] + 0.05 * rng.normal(size=40)
    model = MarginalGP.of(x, y / y.std())
    assert model.theta.shape[1] == 4
    far = np.zeros((2, 25))
    far[:, 0] = -3, 3
    low, high = model.ask(far)[0]
    assert high - low > 2, "a line goes on outside the rows"
