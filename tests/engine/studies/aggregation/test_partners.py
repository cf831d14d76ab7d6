"""Growing models, widths of the scarce task's intervals, boxes of other sizes, older runs."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import scant
from scant.ensemble import describe
from scant.events import Fitted
from scant.inference.exact import left_out
from scant.kernels.box_average.support import boxes
from scant.models.anchored_gp import AnchoredGP
from scant.models.mtgpa.baselines import baseline
from scant.models.mtgpa.exact import ExactGP
from scant.studies.aggregation import models
from scant.studies.aggregation.partners import NAMES, OTHERS, PARTNERS, Average
from scant.studies.aggregation.predictive import predictive
from scant.studies.aggregation.settings import FIXED
from scant.training.api import Fit, restore

pytestmark = pytest.mark.slow


def noise(n: int = 80) -> pd.DataFrame:
    """Boxes of one size, whose values depend on nothing."""
    lo = np.arange(n, dtype=float)
    y = np.random.default_rng(1).normal(10, 2, n)
    return pd.DataFrame({"task": "all", "x_lo": lo, "x_hi": lo + 1, "y": y})


@pytest.fixture(scope="module")
def fitted() -> tuple[Fit, list[object]]:
    run = scant.fit("aggregation", noise(), device="cpu", own=False, max_steps=8)
    return run, list(run)


def test_noise_is_said_to_be_noise(fitted: tuple[Fit, list[object]]) -> None:
    run, events = fitted
    ensemble = run.study.average.ensemble
    assert sum(ensemble.weights.values()) == pytest.approx(1)
    assert len(ensemble.shape.coefficients) == 3  # constant, level and place
    assert describe(ensemble, "MTGPA") == events[-1].report.limits[0]  # type: ignore[attr-defined]
    predicted = run.study.predict(noise().drop(columns="y"))
    assert ((predicted["mean"] - 10) ** 2).mean() < 0.35**2 * 2**2


def test_the_mixture_has_the_moments_that_are_told(fitted: tuple[Fit, list[object]]) -> None:
    run, _ = fitted
    posterior = run.study.posterior
    lo = torch.tensor([[3.0], [20.5]]).double()
    supports = boxes(lo, lo + 1)
    parts = run.study.average.combine(supports, run.study.model.mixture(supports, 0).predictive())
    assert parts.weights.sum(1) == pytest.approx(1)
    told, std, new = posterior.moments(supports, 0)
    scale = posterior.scale[0]
    assert told == pytest.approx(scale.offset + scale.factor * parts.mean)
    assert new**2 == pytest.approx(scale.factor**2 * parts.variance)
    assert (std < new).all()
    y = np.array([11.0, 8.0])
    scaled = ((y - scale.offset) / scale.factor)[:, None]
    each = norm.pdf(scaled, parts.means, parts.variances**0.5) / scale.factor
    density = (parts.weights * each).sum(1)
    assert np.exp(predictive(posterior, supports, 0).log_prob(y)) == pytest.approx(density)


def test_a_box_of_another_size_is_asked_of_the_model_alone(
    fitted: tuple[Fit, list[object]],
) -> None:
    run, _ = fitted
    wide = boxes(torch.zeros(1, 1).double(), torch.full((1, 1), 9.0).double())
    posterior = run.study.posterior
    alone = run.study.model.predict(wide, 0).mean
    told = posterior.scale[0].offset + posterior.scale[0].factor * float(alone)
    assert posterior.moments(wide, 0)[0] == pytest.approx(told)


def test_a_restored_stack_predicts_the_same(fitted: tuple[Fit, list[object]]) -> None:
    run, events = fitted
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    again = restore("aggregation", run.study.settings.values(), blob, "cpu")
    table = noise(10).drop(columns="y")
    pd.testing.assert_frame_equal(run.study.predict(table), again.predict(table))


def test_what_is_said_of_rows_left_out_is_that_of_the_others() -> None:
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(6, 6, generator=generator).double()
    K, y = A @ A.T + torch.eye(6).double(), torch.randn(6, generator=generator).double()
    error, variance = left_out(K, y)
    for i in range(6):
        rest = [j for j in range(6) if j != i]
        solved = torch.linalg.solve(K[rest][:, rest], K[rest, i])
        assert float(error[i]) == pytest.approx(float(y[i] - solved @ y[rest]))
        assert float(variance[i]) == pytest.approx(float(K[i, i] - solved @ K[rest, i]))


def two_scales(n: int = 120) -> pd.DataFrame:
    """A task in cells and one in boxes, of a function that is coarse and fine."""
    rng = np.random.default_rng(0)
    x = np.arange(float(n))
    y = np.sin(x / 25) + 0.4 * np.sin(x / 2) + 0.05 * rng.standard_normal(n)
    fine = pd.DataFrame({"task": "cell", "x_lo": x, "x_hi": x + 1, "y": y})
    fine["split"] = np.where(rng.permutation(n) < 50, "train", "test")
    lo = x[::6]
    boxes = {"task": "box", "x_lo": lo, "x_hi": lo + 6, "y": y.reshape(-1, 6).mean(1)}
    return pd.concat([fine, pd.DataFrame(boxes).assign(split="train")], ignore_index=True)


@pytest.fixture(scope="module")
def several() -> tuple[Fit, list[object]]:
    run = scant.fit("aggregation", two_scales(), device="cpu", own=False, max_steps=40)
    return run, list(run)


def test_functions_may_be_added(several: tuple[Fit, list[object]]) -> None:
    run, events = several
    study = run.study
    assert study.stages == 3
    assert study.settings.n_latent == len(study.model.prior.kernels) in (1, 2, 3)
    assert "n_latent" in study.metadata["chosen"]
    assert study.model.prior.lengthscales().min() < 6  # what is fine is found
    smse = next(m.value for m in events[-1].report.metrics if m.name == "SMSE")  # type: ignore[attr-defined]
    assert smse < 0.1


def test_an_average_of_an_older_run_predicts_the_same(
    several: tuple[Fit, list[object]],
) -> None:
    run, _ = several
    average, data = run.study.average, run.study.data.train.data
    other = baseline("dependent", data, 1, torch.Generator().manual_seed(0))
    x, y = average.frame.standardized(data.supports), data.y.numpy()
    gps = {name: AnchoredGP.fit(shape, x, y) for name, shape in PARTNERS.items()}
    others = dict(zip(OTHERS, (run.study.model, other)))
    ensemble = dataclasses.replace(average.ensemble, weights=dict.fromkeys(NAMES, 1 / 7))
    older = dataclasses.replace(average, ensemble=ensemble, others=others, gps=gps)
    again = Average.from_meta(
        older.tensors(),
        json.loads(json.dumps(older.meta())),
        lambda _, own: models.exact_from_state(own, "eq", ["gaussian"] * 2),
    )
    assert again is not None
    lo = torch.linspace(0, 100, 7).double().unsqueeze(1)
    supports = boxes(lo, lo + 1)
    told = run.study.model.mixture(supports, average.task).predictive()
    mine, theirs = (made.combine(supports, told) for made in (older, again))
    np.testing.assert_array_equal(mine.means, theirs.means)
    np.testing.assert_array_equal(mine.variances, theirs.variances)
    assert "an average" in describe(again.ensemble, "MTGPA")


def test_a_restored_grown_model_predicts_the_same(several: tuple[Fit, list[object]]) -> None:
    run, events = several
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    restored = restore("aggregation", run.study.settings.values(), blob, "cpu")
    table = two_scales().drop(columns="y")
    pd.testing.assert_frame_equal(run.study.predict(table), restored.predict(table))
    assert run.study.average.ensemble == restored.posterior.average.ensemble


def test_the_published_settings_take_one_model_at_its_optimum() -> None:
    values = {**FIXED, "max_steps": 5}
    run = scant.fit("aggregation", two_scales(), device="cpu", own=False, **values)
    list(run)
    assert (type(run.study.model), run.study.average, run.study.stages) == (ExactGP, None, 1)
