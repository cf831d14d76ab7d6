"""The aggregation study: what it makes of a table, and what it answers once it is fitted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from scant.events import Progress, Report
from scant.studies.aggregation import mean_rate, reproduce
from scant.studies.aggregation.classes import latent_functions
from scant.studies.aggregation.inference import ranks
from scant.studies.aggregation.metadata import cells
from scant.studies.aggregation.simulate import fertility, particulates, poisson
from scant.studies.aggregation.study import Study
from scant.training.api import Fit, fit, restore
from scant.training.loop import train
from tests.engine.studies import studying
from tests.engine.studies.studying import gathered, run, value

CPU = torch.device("cpu")
settings = partial(studying.settings, "aggregation")


@pytest.fixture(scope="module")
def births() -> pd.DataFrame:
    return fertility.demo(settings())


@pytest.fixture(scope="module", params=["variational", "exact"])
def fitted(births: pd.DataFrame, request: pytest.FixtureRequest) -> tuple[Study, Report]:
    exact = {"max_steps": 40, "patience": 60} if request.param == "exact" else {"max_steps": 150}
    study = Study(settings(inference=request.param, **exact), births, CPU)
    return study, run(study)


def test_few_fine_rows_are_learnt_from_and_all_coarse_ones(births: pd.DataFrame) -> None:
    study = Study(settings(fine_rows=17), births, CPU)
    train = study.data.train
    tasks = np.array(train.observed.tasks)[train.observed.task[train.rows]]
    assert (tasks == "first births").sum() == 17
    assert (tasks == "first births 5x5").sum() == 104
    assert not (train.rows & train.observed.test).any()
    assert study.metadata["scarce"] == "first births"


def test_a_task_left_out_is_unknown_to_the_model(births: pd.DataFrame) -> None:
    study = Study(settings(leave_out="first births 5x5"), births, CPU)
    assert study.metadata["tasks"] == ["first births"]
    assert int(study.data.train.data.task.max()) == 0
    assert any("first births 5x5" in note for note in study.notes)


def test_likelihoods_follow_the_values() -> None:
    counts = Study(settings(), poisson.demo(settings()), CPU)
    assert counts.metadata["likelihoods"] == ["poisson", "poisson"]
    query = settings(likelihoods="support 2=gaussian")
    assert Study(query, poisson.demo(query), CPU).metadata["likelihoods"] == ["poisson", "gaussian"]
    table = pd.DataFrame({"task": "rain", "x": np.arange(30.0), "y": np.arange(30) % 2.0})
    assert Study(settings(), table, CPU).metadata["likelihoods"] == ["bernoulli"]
    large = table.assign(y=1000.0 + table["x"])  # flows of a river, as whole numbers
    assert Study(settings(), large, CPU).metadata["likelihoods"] == ["gaussian"]


def test_instruments_with_scales_of_their_own_are_scaled_apart(births: pd.DataFrame) -> None:
    together = Study(settings(), births, CPU)
    assert len({factor for _, factor in together.metadata["scale"]}) == 1
    apart = particulates.demo(settings())
    apart.loc[apart["task"] == "counter", "y"] *= 40
    assert len({factor for _, factor in Study(settings(), apart, CPU).metadata["scale"]}) == 2


def test_cells_cover_the_data_and_know_the_truth(births: pd.DataFrame) -> None:
    study = Study(settings(), births, CPU)
    ages, years = study.metadata["edges"]
    assert (ages[0], ages[-1], years[0], years[-1]) == (15, 55, 1944, 2010)
    lo, hi = cells([np.array(ages), np.array(years)])
    truth = np.array(study.metadata["truth"])
    whole = births[births["task"] == "first births"]
    first = whole[(whole["age_lo"] == lo[7, 0]) & (whole["year_lo"] == lo[7, 1])]
    assert truth[7] == pytest.approx(first["truth"].iloc[0])
    assert np.allclose(hi - lo, 1)


@pytest.mark.slow
def test_coarse_averages_help_and_the_bands_hold(fitted: tuple[Study, Report]) -> None:
    _, report = fitted
    ours = value(report, "SMSE")
    alone = value(report, "SMSE", "area-to-point kriging, this task alone")
    assert ours < 0.7 * alone
    assert value(report, "SNLP") < value(report, "SNLP", "area-to-point kriging, this task alone")
    assert 88 <= value(report, "coverage of the 95% interval") <= 99.5
    assert value(report, "observed averages inside their 95% interval") > 85


def test_the_average_over_a_box_agrees_with_prediction_and_cells(
    fitted: tuple[Study, Report],
) -> None:
    study, report = fitted
    query = study.explore("box", lo=[30, 1970], hi=[20, 1960])  # upside down is no matter
    row = {"task": "first births", "age_lo": 20, "age_hi": 30, "year_lo": 1960, "year_hi": 1970}
    told = study.predict(pd.DataFrame([row]))
    assert query["moments"] == pytest.approx(told[["mean", "std", "std_y"]].iloc[0].to_numpy())
    lo, hi = cells([np.array(e) for e in study.metadata["edges"]])
    inside = ((lo >= [20, 1960]) & (hi <= [30, 1970])).all(1)
    assert inside.sum() == 100
    assert report.arrays["mean"][inside].mean() == pytest.approx(query["moments"][0], rel=1e-4)
    # The average is better known than its parts.
    assert query["moments"][1] < report.arrays["std_f"][inside].mean()
    area = np.trapezoid(query["density"], query["grid"])
    assert area == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_the_curve_over_fine_rows_falls_and_is_lower_with_all_tasks(
    fitted: tuple[Study, Report],
) -> None:
    result = fitted[0].explore("scarcity")
    together, alone = result["smse"][:, 0]
    assert together[0] < 0.5 * alone[0]
    assert alone[-1] < alone[0]
    assert abs(together[-1] - alone[-1]) < 0.05


@pytest.mark.slow
def test_training_on_with_fewer_fine_rows_agrees_with_the_exact_posterior(
    fitted: tuple[Study, Report],
) -> None:
    study, _ = fitted
    before = {k: v.clone() for k, v in study.model.state_dict().items()}
    whole = study.explore("scarcity")
    place = list(whole["n"]).index(20)
    results = [study.explore("retrain", n=20, repeat=repeat)["smse"] for repeat in range(3)]
    together, alone = np.array(results).mean(0)
    assert together < 0.7 * alone
    assert together == pytest.approx(whole["smse"][0, 0, place], abs=0.1)
    again = study.explore("retrain", n=20, repeat=0)
    assert np.array_equal(again["smse"], results[0])
    assert all(torch.equal(v, before[k]) for k, v in study.model.state_dict().items())


@pytest.mark.parametrize(
    ("values", "exact"),
    [
        ({}, True),
        ({"inference": "variational"}, False),
        ({"batch_size": 30}, False),
        ({"likelihood": "heteroscedastic"}, False),
        ({"kernel": "matern32"}, False),
        ({"fine_rows": 1640}, False),
        ({"fine_rows": 1640, "inference": "exact"}, True),
    ],
)
def test_inference_is_exact_where_it_can_be_and_is_quick(
    births: pd.DataFrame, values: dict[str, Any], exact: bool
) -> None:
    study = Study(settings(**{"inference": "auto", **values}), births, CPU)
    assert (study.data.inference == "exact") is exact
    assert any("Inference is exact" in note for note in study.notes) is exact


@pytest.mark.slow
def test_minibatches_stop_by_the_bound_on_all_rows(births: pd.DataFrame) -> None:
    study = Study(settings(batch_size=30, max_steps=60), births, CPU)
    scores = [e.score for e in train(study) if isinstance(e, Progress)]
    assert len(set(scores)) == 3  # taken anew every 25 steps


@pytest.mark.slow
def test_values_in_one_dimension_and_points_are_taken() -> None:
    x = np.linspace(0, 10, 40)
    table = pd.DataFrame({"task": "level", "x": x, "y": np.sin(x)})
    values = settings(n_inducing=20).values()
    *_, model, last = fit("aggregation", table, device="cpu", **values)
    assert len(last.report.arrays["test_y"]) == 8  # a fifth of the rows, as nothing is marked
    assert next(m.value for m in last.report.metrics if m.name == "SMSE") < 0.1
    assert len(last.report.arrays["mean"]) == 100
    study = restore("aggregation", values, model.blob, "cpu")
    query = study.predict(pd.DataFrame({"task": "level", "x_lo": [1.0], "x_hi": [2.0]}))
    assert query["mean"].iloc[0] == pytest.approx(np.cos(1) - np.cos(2), abs=0.05)


@pytest.mark.slow
def test_every_published_experiment_is_run_and_stands_beside_its_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def briefly(study: str, table: pd.DataFrame, **values: Any) -> Fit:
        return fit(study, table, device="cpu", **{**values, "max_steps": 2, "n_inducing": 8})

    monkeypatch.setattr(reproduce, "COUNTS", (50,))
    result = gathered("aggregation", reproduce.reproduce(quick=True, data=None, fit=briefly))
    assert result["published"].isna().all()  # printed scores are of the publication's data
    births = result[result["experiment"] == "births, 50 cells"]
    assert {"with 5x5 boxes", "with 2x2 boxes", "cells alone"} <= set(births["method"])
    for rival in ("ICM on centroids", "dependent GPs on centroids"):
        assert births["method"].str.startswith(rival).any()
    orders = result[result["experiment"] == "four outputs, 200 cells"]
    assert {"one noise", "noise varies"} <= set(orders["method"])
    assert np.isfinite(result["ours"]).all()


@pytest.mark.parametrize(
    ("asked", "tasks", "classes", "found"),
    [
        (0, 1, (), 1),
        (0, 2, (), 1),
        (0, 5, (), 3),
        (4, 2, (), 4),
        (0, 3, (4,), 4),
        (0, 2, (9, 5), 8),
    ],
)
def test_more_tasks_share_more_functions(
    asked: int, tasks: int, classes: tuple[int, ...], found: int
) -> None:
    """Two numeric tasks have one function, a task of C classes has C - 1, all tasks at most 8."""
    categorical = {f"task {i}": [0.0] * n for i, n in enumerate(classes)}
    metadata = {"tasks": [f"task {i}" for i in range(tasks)], "classes": categorical}
    assert ranks(settings(n_latent=asked, rank=2), latent_functions(metadata)) == (2,) * found


def test_a_task_of_three_rows_is_not_scored_and_the_report_says_why() -> None:
    x = np.linspace(0, 10, 40)
    many = pd.DataFrame({"task": "dense", "x_lo": x, "x_hi": x + 2.0, "y": np.sin(x)})
    few = pd.DataFrame({"task": "scarce", "x_lo": [1.0, 5.0, 8.0], "x_hi": [1.5, 5.5, 8.5]})
    table = pd.concat([many, few.assign(y=[0.5, -0.9, 0.8])])
    *_, last = fit("aggregation", table, own=True, settings=settings(max_steps=5, scarce="scarce"))
    assert not [m for m in last.report.metrics if m.name in ("SMSE", "RMSE")]
    assert any("Task 'scarce' has 3 rows, all used for training" in n for n in last.report.notes)


MEAN, STD = np.array([0.02, 0.3, 0.9]), np.array([0.01, 0.1, 0.05])


def distribution(kind: str, mean: float, std: float) -> stats.rv_continuous:
    if kind == "gaussian":
        return stats.norm(mean, std)
    if kind == "poisson":
        s = np.sqrt(np.log1p((std / mean) ** 2))
        return stats.lognorm(s, scale=mean * np.exp(-s * s / 2))
    total = mean * (1 - mean) / std**2 - 1
    return stats.beta(mean * total, (1 - mean) * total)


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "bernoulli"])
def test_quantiles_and_exceedance_are_those_of_the_distribution(kind: str) -> None:
    p = np.array([0.025, 0.5, 0.975])
    made = mean_rate.quantiles(kind, MEAN, STD, p)
    above = mean_rate.exceedance(kind, MEAN, STD, 0.25)
    for i, (mean, std) in enumerate(zip(MEAN, STD)):
        own = distribution(kind, mean, std)
        assert own.mean() == pytest.approx(mean)
        assert own.std() == pytest.approx(std)
        np.testing.assert_allclose(made[:, i], own.ppf(p), rtol=1e-6)
        assert above[i] == pytest.approx(own.sf(0.25), abs=1e-9)
    low, high = mean_rate.interval(kind, MEAN, STD)
    np.testing.assert_allclose([low, high], made[[0, 2]])
    grid = np.linspace(*mean_rate.quantiles(kind, MEAN[1:2], STD[1:2], np.array([0.01, 0.99])), 400)
    density = mean_rate.density(kind, float(MEAN[1]), float(STD[1]), grid[:, 0])
    expected = distribution(kind, float(MEAN[1]), float(STD[1])).pdf(grid[:, 0])
    np.testing.assert_allclose(density[2:-2], expected[2:-2], rtol=0.02, atol=0.01)


def test_a_certain_value_exceeds_or_does_not() -> None:
    for kind in ("gaussian", "poisson", "bernoulli"):
        made = mean_rate.exceedance(kind, np.array([0.2, 0.4]), np.zeros(2), 0.3)
        np.testing.assert_allclose(made, [0, 1], atol=1e-9)
    assert mean_rate.exceedance("poisson", np.array([0.2]), np.array([5.0]), 0.0) == 1
