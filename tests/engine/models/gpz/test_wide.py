"""GPz of many columns: integrals over what a row lacks alone, and models of a projection."""

from __future__ import annotations

import pytest
import torch

from scant.models.gpz import input_density, uncertain_inputs
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.completion import completed
from scant.models.gpz.input_density import Mixture, fill, log_density, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction

D, M, SAMPLES = 4, 6, 60_000


def _rows(n: int = 200, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Generator]:
    g = torch.Generator().manual_seed(seed)
    mix = torch.randn(D, D, generator=g, dtype=torch.float64)
    X = torch.randn(n, D, generator=g, dtype=torch.float64) @ mix
    return X, torch.sin(X[:, 0]) + 0.5 * X[:, 1], g


def _with_gaps(X: torch.Tensor, g: torch.Generator, share: float = 0.3) -> torch.Tensor:
    gone = torch.rand(X.shape, generator=g) < share
    gone[:, 0] &= ~gone.all(1)
    return torch.where(gone, torch.nan, X)


def _fitted(covariance: str, joint: bool = True) -> tuple[GPz, torch.Tensor]:
    X, y, g = _rows()
    model = GPz(D, M, covariance, True, joint)
    model.init_from_data(X, y, g)
    with torch.no_grad():  # a noise that varies, and widths of their own
        model.v += 0.2 * torch.randn(M, generator=g, dtype=torch.float64)
        model.gamma *= 1 + 0.1 * torch.randn(model.gamma.shape, generator=g, dtype=torch.float64)
    model.fit_posterior(X, y)
    return model, _with_gaps(X[:40], g)


def _as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (input_density, uncertain_inputs):
        monkeypatch.setattr(module, "MAX_DENSE_INPUTS", 0)


@pytest.mark.parametrize("covariance", ["GL", "GD", "VD", "GC", "VC"])
@pytest.mark.parametrize("joint", [False, True])
def test_predictions_equal_those_by_forms_of_all_inputs(
    covariance: str, joint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = _fitted(covariance, joint)
    narrow = model.predict_components(rows)
    _as_wide(monkeypatch)
    wide = model.predict_components(rows)
    for name, value in vars(narrow).items():
        torch.testing.assert_close(getattr(wide, name), value, rtol=1e-6, atol=1e-9)


def test_densities_and_fillings_equal_those_of_few_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _, g = _rows(300)
    gaps = _with_gaps(X, g)
    results = []
    for _ in range(2):
        one = single_gaussian(gaps)
        several = input_density.spread_mixture(gaps[gaps.isnan().sum(1) < 3], 1)
        density = log_density(several, gaps).sort()[0]
        results.append([*one, *several, fill(gaps, one), density])
        _as_wide(monkeypatch)
    for narrow, wide in zip(*results):
        torch.testing.assert_close(wide, narrow, rtol=1e-7, atol=1e-9)


def test_completed_rows_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = _fitted("VD")
    mixture = Mixture(model.mixture_log_weights, model.mixture_means, model.mixture_precisions)

    def joint() -> torch.Tensor:
        out = torch.empty(len(rows), len(mixture.log_weights), dtype=rows.dtype)
        for some in completed(*mixture, rows):
            out[some.rows] = some.log_joint
        return out

    whole = joint()
    monkeypatch.setattr("scant.models.gpz.completion.BLOCK", 1)
    torch.testing.assert_close(joint(), whole)


@pytest.mark.parametrize("covariance", ["GD", "VD", "VC"])
def test_a_model_of_a_projection_equals_sampling_what_is_missing(covariance: str) -> None:
    X, y, g = _rows()
    T = torch.randn(2, D, generator=g, dtype=torch.float64)
    inner = GPz(2, M, covariance)
    inner.init_from_data(X @ T.T, y, g)
    inner.fit_posterior(X @ T.T, y)
    model = in_coordinates(inner, T)
    gaussian = single_gaussian(X)
    for name, value in gaussian._asdict().items():
        setattr(model, f"mixture_{name}", value)
    _same(model.predict(X), inner.predict(X @ T.T), 1e-9)
    row = X[:1].clone()
    row[0, 1:] = torch.nan
    observed = ~row[0].isnan()
    slope, offset, spread = (part[0] for part in gaussian.conditional(observed))
    root = torch.linalg.cholesky(spread + 1e-14 * torch.eye(D).double())
    draws = slope @ row[0, observed] + offset
    draws = draws + torch.randn(SAMPLES, D, generator=g, dtype=torch.float64) @ root.T
    got, sampled = model.predict(row), inner.predict(draws @ T.T)
    error = sampled.mean.std() / SAMPLES**0.5
    assert abs(got.mean[0] - sampled.mean.mean()) < 5 * error
    torch.testing.assert_close(got.input_variance[0], sampled.mean.var(), rtol=0.05, atol=1e-9)
    expected = sampled.model_variance.mean()
    torch.testing.assert_close(got.model_variance[0], expected, rtol=0.05, atol=1e-9)


def test_noise_of_the_inputs_is_that_of_their_projection() -> None:
    X, y, g = _rows()
    T = torch.randn(2, D, generator=g, dtype=torch.float64)
    inner = GPz(2, M, "VD")
    inner.init_from_data(X @ T.T, y, g)
    inner.fit_posterior(X @ T.T, y)
    noise = torch.full_like(X, 0.1)
    wide = in_coordinates(inner, T).predict(X[:5], noise[:5])
    covariance = (T * 0.1) @ T.T
    _same(wide, inner.predict(X[:5] @ T.T, covariance.expand(5, 2, 2)), 1e-7)


def _same(a: GPzPrediction, b: GPzPrediction, tolerance: float) -> None:
    for name, value in vars(a).items():
        torch.testing.assert_close(value, getattr(b, name), rtol=tolerance, atol=tolerance)
