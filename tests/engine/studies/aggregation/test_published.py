"""The preset "as published" (Yousefi 2021): what reaches the model, and the settings it needs."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from scant.errors import BadInput
from scant.events import Finished, Progress
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.model import MTGPA
from scant.studies import entry
from scant.studies.aggregation import models
from scant.studies.aggregation.inference import by_laplace
from scant.studies.aggregation.report import OF_GAUSSIAN
from scant.studies.aggregation.simulate import poisson
from scant.studies.aggregation.study import Study
from scant.training.api import fit
from tests.engine.studies import studying
from tests.engine.studies.studying import run, value

CPU = torch.device("cpu")
settings = partial(studying.settings, "aggregation")


def restored(study: Study) -> Study:
    """The study as it comes back from its file."""
    tensors, meta = study.fitted()
    return Study.restore(study.settings, tensors, json.loads(json.dumps(meta)), CPU)


def waves() -> pd.DataFrame:
    """A wave about 5 in boxes and, of another task, in a few shorter ones."""
    x = np.linspace(0, 10, 40)
    wide = pd.DataFrame({"task": "wide", "x_lo": x, "x_hi": x + 2.0, "y": 5 + np.sin(x + 1)})
    few = x[::3]
    short = pd.DataFrame(
        {"task": "short", "x_lo": few, "x_hi": few + 0.5, "y": 5 + np.sin(few + 0.25)}
    )
    return pd.concat([wide, short], ignore_index=True)


def test_the_preset_trains_a_zero_mean_of_full_rank_to_the_last_step() -> None:
    values = {**entry("aggregation").presets["as published"], "max_steps": 50, "n_inducing": 30}
    made = fit("aggregation", **values)
    events = list(made)
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(e, Progress) for e in events) == 50  # patience 0
    model = made.study.model
    assert isinstance(model, MTGPA)
    assert len(model.latents) == 1
    assert np.linalg.matrix_rank(model.prior.matrices()[0].detach().numpy()) == 2
    assert bool((model.prior.offset == 0).all())


def test_an_exact_posterior_with_zero_means_is_that_of_dense_algebra() -> None:
    query = settings(
        inference="exact", constant_mean=False, standardize="each task", max_steps=20,
        hyperparameters="point", stack=False, fine_rows=0,
    )  # fmt: skip
    study = Study(query, waves(), CPU)
    run(study)
    model = study.model
    assert isinstance(model, ExactGP)
    x, y, j = model.supports, model.y, model.task
    with torch.no_grad():
        K = model.prior.covariance(x, j, x, j)
        new = torch.tensor([[3.0, 3.5], [60.0, 60.5]]).double()
        k = model.prior.covariance(new, torch.zeros(2, dtype=torch.long), x, j)
        expected = k @ torch.linalg.solve(K + model.noise()[j].diag(), y)
        assert torch.allclose(model.predict(new, 0).mean, expected, atol=1e-8)
    assert abs(float(expected[0])) > 0.1
    for one in (study, restored(study)):
        assert not one.posterior.model.prior.offset.requires_grad
        far = one.predict(pd.DataFrame({"task": ["short"], "x_lo": [60.0], "x_hi": [60.5]}))
        scale = dict(zip(one.metadata["tasks"], one.metadata["scale"]))
        assert far["mean"][0] == pytest.approx(scale["short"][0], abs=1e-6)  # the data's mean


def test_laplace_is_not_for_zero_means() -> None:
    quick = {"kinds": ["poisson"], "rows": 20, "latents": 100, "summed": True}
    assert by_laplace(settings(inference="auto"), **quick)
    assert not by_laplace(settings(inference="auto", constant_mean=False), **quick)
    with pytest.raises(BadInput, match="constant_mean off"):
        by_laplace(settings(inference="laplace", constant_mean=False), **quick)


@pytest.mark.parametrize("even", [True, False])
def test_inducing_points_lie_on_an_even_grid_where_told(even: bool) -> None:
    where = {"inducing_init": "even grid"} if even else {}
    study = Study(settings(n_inducing=13, **where), waves(), CPU)
    model = models.build(study.data, "eq", torch.Generator().manual_seed(0))
    assert isinstance(model, MTGPA)
    points = model.latents[0].inducing_points.detach().flatten().sort().values
    step = points.diff()
    assert len(points) == 13
    assert bool(torch.allclose(step, step[0].expand(12))) is even
    if even:
        assert (float(points[0]), float(points[-1])) == pytest.approx((0, 12))


def test_counts_are_scored_by_a_gaussian_too_as_the_authors_score_them() -> None:
    query = settings(likelihood="poisson", max_steps=20)
    study = Study(query, poisson.demo(query), CPU)
    report = run(study)
    told, given = study.held_scores.predictive, study.problem.y
    y = study.problem.y_test
    ours = stats.norm.logpdf(y, told.mean, told.std)
    trivial = stats.norm.logpdf(y, given.mean(), given.std())
    assert value(report, OF_GAUSSIAN) == pytest.approx(float((trivial - ours).mean()))
    assert value(report, OF_GAUSSIAN) != pytest.approx(value(report, "SNLP"), abs=1e-3)
