"""Leaving one out in closed form is what leaving one out is, and chooses what fits."""

from __future__ import annotations

import numpy as np
import pytest

from scant.models.left_out import ExactGP, Form, Indicators, Similarity, chosen

RNG = np.random.default_rng(0)
VIEWS = [RNG.normal(size=(30, 2)), RNG.normal(size=(30, 3))]
Y = np.sin(2 * VIEWS[0][:, :1]) + 0.1 * RNG.normal(size=(30, 1))
FORMS = [
    Form("linear", 1.0, 0.0, False, 0.1),
    Form("rbf", 0.6, 0.0, True, 0.01),
    Form("matern", 0.6, 0.3, False, 0.1),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.shape)
def test_a_left_out_row_is_predicted_as_by_a_fit_without_it(form: Form) -> None:
    gp = ExactGP(form, VIEWS, Y)
    K = Similarity.matrix(form, gp.similarity.parts(VIEWS, VIEWS))
    rest = np.arange(30) != 7
    A = K[np.ix_(rest, rest)] + form.noise * np.eye(29)
    centered = Y - Y.mean(0)
    mean, variance = gp.left_out
    by_hand = K[7, rest] @ np.linalg.solve(A, centered[rest]) + Y.mean(0)
    np.testing.assert_allclose(mean[7], by_hand)
    own = K[7, 7] + form.noise - K[7, rest] @ np.linalg.solve(A, K[rest, 7])
    np.testing.assert_allclose(variance[7], own)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.shape)
def test_predictions_are_those_of_dense_algebra(form: Form) -> None:
    gp = ExactGP(form, VIEWS, Y)
    new = [v[:4] + 0.1 for v in VIEWS]
    A = Similarity.matrix(form, gp.similarity.parts(VIEWS, VIEWS)) + form.noise * np.eye(30)
    k = Similarity.matrix(form, gp.similarity.parts(new, VIEWS))
    prior = Similarity.matrix(form, gp.similarity.parts(new, new)).diagonal()
    mean, variance = gp.ask(new)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(A, Y - Y.mean(0)) + Y.mean(0))
    by_hand = prior - (k * np.linalg.solve(A, k.T).T).sum(1) + form.noise
    np.testing.assert_allclose(variance, gp.height * by_hand, rtol=1e-8)


def test_the_kernel_that_fits_is_chosen() -> None:
    x = np.random.default_rng(1).normal(size=(80, 2))
    bent = np.sin(3 * x[:, :1])
    straight = x @ np.array([[1.0], [2.0]])
    assert chosen([([x], bent)]).shape != "linear"
    assert chosen([([x], straight)], linear=True).shape == "linear"
    line = ExactGP(chosen([([x], straight)], linear=True), [x], straight)
    np.testing.assert_allclose(line.ask([x + 1])[0], (x + 1) @ [[1.0], [2.0]], atol=0.01)


def test_classes_that_a_circle_parts_are_told_apart_with_probabilities() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2))
    label = ((x**2).sum(1) + 0.3 * rng.normal(size=300) > 1.4).astype(int)
    form = chosen([([x[:200]], np.eye(2)[label[:200]])])
    p = Indicators.of(form, [x[:200]], label[:200], 2).ask([x[200:]])
    np.testing.assert_allclose(p.sum(1), 1)
    assert (p.argmax(1) == label[200:]).mean() > 0.85
    assert np.log(p[np.arange(100), label[200:]]).mean() > -0.4
    assert p.min() >= 1 / 201 / 2  # nothing is ruled out by 200 rows
