"""Areal data: counts as integrals, people as weights, known errors, covariates, rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Finished
from scant.studies.aggregation import beside
from scant.studies.aggregation.likelihoods import fitting
from scant.studies.aggregation.population import People, people, weighted
from scant.studies.aggregation.settings import FIXED, SUMMED, AggregationSettings
from scant.studies.aggregation.study import Study
from scant.studies.aggregation.table import of
from scant.training.api import fit, restore
from scant.training.prediction import predict_file
from tests.engine.studies.studying import run

shapely = pytest.importorskip("shapely")
pytest.importorskip("pyproj")

CPU = torch.device("cpu")
NEW = {**FIXED, "counts": SUMMED, "known_noise": True, "test_share": 0.0, "polygon_points": 9}


def settings(**values: Any) -> AggregationSettings:
    made = AggregationSettings.parse({**NEW, **values})
    return made


def squares(n: int, step: float = 0.5) -> np.ndarray:
    """n x n squares from 80 degrees west and 34 north on."""
    side = np.arange(n) * step
    x, y = (v.ravel() for v in np.meshgrid(-80 + side, 34 + side))
    return shapely.box(x, y, x + step, y + step)


def marked(shapes: Any) -> list[str]:
    return [f"SRID=4326;{text}" for text in shapely.to_wkt(shapes)]


def centers(shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = shapely.centroid(shapes)
    return shapely.get_x(middle) + 80, shapely.get_y(middle) - 34


def kept(study: Study) -> Any:
    """The study as it comes back from its file."""
    tensors, meta = study.fitted()
    return Study.restore(study.settings, tensors, json.loads(json.dumps(meta)), CPU)


# --- counts -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["poisson", "negative_binomial"])
def cases(request: pytest.FixtureRequest) -> tuple[Study, pd.DataFrame]:
    """Two periods of cases in 49 squares, as many people in each."""
    shapes, rng = squares(7), np.random.default_rng(0)
    x, y = centers(shapes)
    rate = np.exp(-4 + np.sin(2 * x) + 0.5 * y)
    frame = pd.concat(
        pd.DataFrame({
            "task": task, "geometry": marked(shapes), "exposure": 2000.0,
            "y": rng.poisson(2000 * level * rate).astype(float),
        })
        for task, level in (("early", 1.0), ("late", 0.5))
    )  # fmt: skip
    frame = frame.reset_index(drop=True)
    made = settings(likelihood=request.param, n_inducing=30, max_steps=80, polygon_points=36)
    study = Study(made, frame, CPU)
    run(study)
    return study, frame


@pytest.mark.slow
def test_cases_of_parts_add_up_to_those_of_the_whole(cases: tuple[Study, pd.DataFrame]) -> None:
    study, _ = cases
    whole = shapely.box(-79, 35, -77.5, 36.5)
    parts = [shapely.box(-79 + 0.5 * i, 35 + 0.5 * j, -78.5 + 0.5 * i, 35.5 + 0.5 * j)
             for i in range(3) for j in range(3)]  # fmt: skip
    every = [whole, *parts]
    ask = pd.DataFrame({"task": "early", "geometry": marked(every), "exposure": 2000.0})
    ask.loc[0, "exposure"] = 9 * 2000.0
    told = study.predict(ask)
    assert told["mean"][0] == pytest.approx(told["mean"][1:].sum(), rel=0.02)
    assert told["std"][0] < told["std"][1:].sum()
    assert (told["lo95"] == told["lo95"].round()).all()


def test_totals_and_both_periods_are_found(cases: tuple[Study, pd.DataFrame]) -> None:
    study, frame = cases
    told = study.predict(frame.drop(columns="y"))
    for task in ("early", "late"):
        mine = frame["task"] == task
        assert told["mean"][mine].sum() == pytest.approx(frame["y"][mine].sum(), rel=0.05)
        assert np.corrcoef(told["mean"][mine], frame["y"][mine])[0, 1] > 0.8
    again = kept(study).predict(frame.drop(columns="y"))
    pd.testing.assert_frame_equal(again, told)


def test_likelihoods_follow_exposures() -> None:
    few, many = np.array([0.0, 1, 1, 0]), np.array([900.0, 1200, 800, 1000])
    same, people = np.ones(4), np.array([10.0, 20, 30, 40])
    assert fitting(few, same) == "bernoulli"
    assert fitting(few, people) == "poisson"
    assert fitting(many, same) == "gaussian"
    assert fitting(many, people) == "negative_binomial"
    assert fitting(many / 7, people) == "gaussian_rate"
    assert fitting(many / 7, 3 * same) == "gaussian"


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_counts_that_vary_more_than_poisson_are_said_to(spread: float) -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, 80)
    rate = 20 * np.exp(0.3 * np.sin(x))
    if spread:
        rate = rate * rng.gamma(1 / spread, spread, 80)
    frame = pd.DataFrame({"task": "all", "x": x, "y": rng.poisson(rate).astype(float)})
    study = Study(settings(n_inducing=8, lengthscale=3.0, max_steps=60), frame, CPU)
    notes = run(study).notes
    assert any("choose likelihood negative_binomial" in note for note in notes) == bool(spread)


@pytest.mark.slow
def test_rates_per_thousand_become_counts_and_rates_again() -> None:
    shapes, rng = squares(5), np.random.default_rng(1)
    exposure = rng.integers(2000, 9000, 25).astype(float)
    count = rng.poisson(exposure * 0.01 * np.exp(0.5 * np.sin(centers(shapes)[0])))
    frame = pd.DataFrame({"task": "all", "geometry": marked(shapes), "exposure": exposure})
    frame = pd.concat([frame] * 2, ignore_index=True)
    frame["task"] = ["a"] * 25 + ["b"] * 25
    counts, exposures = np.tile(count, 2).astype(float), np.tile(exposure, 2)
    asked, told = frame.copy(), []
    for rate in (True, False):
        own = frame.assign(y=np.round(counts / exposures * 1000, 4) if rate else counts)
        made = settings(rate_per=1000.0 if rate else 0.0, n_inducing=16, max_steps=30)
        study = Study(made, own, CPU)
        assert study.metadata["likelihoods"] == ["poisson", "poisson"]
        report = run(study)
        told.append((study.predict(asked), report.arrays["check"]))
    for column in ("mean", "std", "std_y", "lo95", "hi95"):
        np.testing.assert_allclose(
            told[0][0][column], told[1][0][column] / exposures * 1000, rtol=1e-6
        )
    np.testing.assert_allclose(told[0][1][1], told[1][1][1] / exposures * 1000, atol=2e-4)
    bare = frame.drop(columns="exposure").assign(y=1.5)
    with pytest.raises(BadInput, match="'rate_per' is 1000, so y holds rates, but the table"):
        Study(settings(rate_per=1000.0), bare, CPU)


def test_nobody_exposed_is_said_with_its_row() -> None:
    frame = pd.DataFrame({"task": "all", "x": np.arange(6.0), "y": 1.0, "exposure": 5.0})
    frame.loc[3, "exposure"] = 0.0
    with pytest.raises(
        BadInput, match=r"column 'exposure', row 3: got 0, but a row without exposure"
    ):
        Study(settings(), frame, CPU)


# --- people -------------------------------------------------------------------------------------


def test_points_are_where_people_live() -> None:
    shapes = squares(2, 1.0)
    rng = np.random.default_rng(0)
    places = rng.uniform((-80, 34), (-78, 36), (400, 2))
    places = places[places[:, 0] < -79.2]  # nobody lives in the eastern squares
    number = rng.integers(0, 50, len(places)).astype(float)
    areas = [np.array([[0.0, 0, 1]])] * 4
    made, empty = weighted(shapes, areas, places, number, 16)
    assert empty == 2
    for shape, own in zip(shapes[[0, 2]], (made[0], made[2])):
        inside = shapely.contains_xy(shape, places[:, 0], places[:, 1])
        assert 4 < len(own) <= 16
        assert own[:, 2].sum() == pytest.approx(1)
        middle = (own[:, 2:] * own[:, :2]).sum(0)
        np.testing.assert_allclose(middle, np.average(places[inside], 0, number[inside]))
    np.testing.assert_array_equal(made[1], areas[1])
    first = np.flatnonzero(shapely.contains_xy(shapes[0], *places.T))[:5]
    few, _ = weighted(shapes[:1], areas[:1], places[first], number[first] + 1, 16)
    shares = np.sort(number[first] + 1) / (number[first] + 1).sum()
    np.testing.assert_allclose(np.sort(few[0][:, 2]), shares)


def test_a_task_with_the_population_weighs_the_others() -> None:
    shapes, rng = squares(4), np.random.default_rng(0)
    places = rng.uniform((-80, 34), (-78, 36), (200, 2))
    number = np.exp(3 * (places[:, 0] + 79))  # most live in the east
    field = lambda x: np.sin(2 * x)  # noqa: E731
    inside = [shapely.contains_xy(s, *places.T) for s in shapes]
    y = np.array([np.average(field(places[i, 0]), weights=number[i]) for i in inside])
    frame = pd.concat([
        pd.DataFrame({"task": "rate", "geometry": marked(shapes), "y": y}),
        pd.DataFrame({"task": "people", "geometry": marked(shapely.points(places)), "y": number}),
    ], ignore_index=True)  # fmt: skip
    study = Study(settings(population_task="people", polygon_points=40), frame, CPU)
    run(study)
    assert study.metadata["tasks"] == ["rate"]
    assert [len(study.roles), (study.roles == "train").sum()] == [216, 16]
    assert any("people at 200 places" in note for note in study.notes)
    points = pd.DataFrame({"task": "rate", "geometry": marked(shapely.points(places))})
    error = study.predict(points)["mean"].to_numpy() - field(places[:, 0])
    by_area = Study(settings(polygon_points=40), frame[frame["task"] == "rate"], CPU)
    run(by_area)
    plain = by_area.predict(points)["mean"].to_numpy() - field(places[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(plain**2))
    ask = pd.DataFrame({"task": "rate", "geometry": marked(shapes[:3])})
    pd.testing.assert_frame_equal(kept(study).predict(ask), study.predict(ask))


def test_what_cannot_be_people_is_said() -> None:
    cells, rows = marked(shapely.points([(-80, 34), (-79, 35)])), np.array([2, 3])
    with pytest.raises(BadInput, match="row 3: its population is -4"):
        people(cells, np.array([1.0, -4]), "the table", rows)
    with pytest.raises(BadInput, match="the population of all 2 places is zero"):
        people(cells, np.zeros(2), "the table", rows)
    assert isinstance(people(cells, np.ones(2), "the table", rows), People)
    frame = pd.DataFrame({"task": "a", "geometry": marked(squares(2)), "y": 1.0})
    with pytest.raises(BadInput, match="'population_task' is 'b', but the tasks are a"):
        Study(settings(population_task="b"), frame, CPU)


# --- known errors -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["exact", "variational"])
def test_rows_with_large_errors_count_less_and_errors_widen_what_is_told(inference: str) -> None:
    rng = np.random.default_rng(0)
    x = np.tile(np.linspace(0, 6, 40), 2)
    error = np.repeat([0.05, 1.5], 40)
    y = np.sin(x) + error * rng.standard_normal(80)
    frame = pd.DataFrame({"task": "all", "x": x, "y": y, "y_err": error})
    ask = pd.DataFrame({"task": "all", "x": np.linspace(0.2, 5.8, 30)})
    off = []
    for known in (True, False):
        made = settings(known_noise=known, inference=inference, n_inducing=20, max_steps=100)
        study = Study(made, frame, CPU)
        run(study)
        told = study.predict(ask)
        off.append(np.sqrt(np.mean((told["mean"] - np.sin(ask["x"])) ** 2)))
        assert (study.data.train.data.known is not None) == known
        if known:
            wide = study.predict(ask.assign(y_err=0.7))
            np.testing.assert_allclose(wide["mean"], told["mean"])
            np.testing.assert_allclose(wide["std_y"] ** 2, told["std_y"] ** 2 + 0.49, rtol=1e-6)
            assert ((wide["hi95"] - wide["lo95"]) > 2.7).all()
            pd.testing.assert_frame_equal(kept(study).predict(ask), told)
    assert off[0] < 0.5 * off[1]
    assert off[0] < 0.06


def test_rows_without_an_error_have_the_median_of_their_task() -> None:
    frame = pd.DataFrame({"task": list("aaab"), "x": np.arange(4.0), "y": np.arange(4.0) / 3})
    frame["y_err"] = [1.0, 3.0, np.nan, np.nan]
    found = beside.with_errors(of(frame)).y_err
    np.testing.assert_array_equal(found, [1, 3, 2, np.nan])


def test_rates_of_few_people_are_noisier() -> None:
    rng = np.random.default_rng(0)
    x, exposure = np.linspace(0, 6, 120), rng.choice([20.0, 2000.0], 120)
    y = np.sin(x) + rng.standard_normal(120) * np.sqrt(8 / exposure)
    frame = pd.DataFrame({"task": "all", "x": x, "y": y, "exposure": exposure})
    study = Study(settings(inference="exact", max_steps=60), frame, CPU)
    assert study.metadata["likelihoods"] == ["gaussian_rate"]
    run(study)
    ask = pd.DataFrame({"task": "all", "x": [3.0, 3.0], "exposure": [20.0, 2000.0]})
    told = study.predict(ask)
    assert told["std_noise"][0] == pytest.approx(np.sqrt(8 / 20), rel=0.3)
    assert told["std_noise"][1] < 0.2
    pd.testing.assert_frame_equal(kept(study).predict(ask), told)


# --- covariates ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_attributes_of_a_map_enter_linearly_and_must_be_there_for_predictions(
    tmp_path: Path,
) -> None:
    shapes, rng = squares(6), np.random.default_rng(0)
    x, _ = centers(shapes)
    income = rng.uniform(10, 50, 36)
    value = np.sin(x) + 0.08 * income + 0.05 * rng.standard_normal(36)

    def written(name: str, **columns: np.ndarray) -> Path:
        rows = pd.DataFrame(columns).to_dict(orient="records")
        features = [
            {"type": "Feature", "properties": row, "geometry": json.loads(shapely.to_geojson(s))}
            for row, s in zip(rows, shapes)
        ]
        path = tmp_path / name
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return path

    path = written("map.geojson", y=value, income=income)
    own = {**NEW, "covariates": "income"}
    *_, model, last = fit("aggregation", path, device="cpu", own=False, **own)
    assert isinstance(last, Finished)
    study = restore("aggregation", AggregationSettings.parse(own).values(), model.blob, "cpu")
    predict_file(study, written("new.geojson", income=income + 10), tmp_path / "out.csv")
    told = pd.read_csv(tmp_path / "out.csv")
    slope = (told["mean"] - value).mean() / 10
    assert slope == pytest.approx(0.08, abs=0.01)
    with pytest.raises(BadInput, match="lacks the covariate 'income', which the model needs"):
        predict_file(study, written("bare.geojson", other=income), tmp_path / "none.csv")
    with pytest.raises(BadInput, match="no column 'wealth' for the setting 'covariates'"):
        list(fit("aggregation", path, device="cpu", own=False, **{**own, "covariates": "wealth"}))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_columns_called_covariates_are_no_dimensions(likelihood: str) -> None:
    rng = np.random.default_rng(0)
    x, z = np.linspace(0, 6, 60), rng.normal(3, 2, 60)
    y = np.sin(x) + 0.4 * z
    y = rng.poisson(np.exp(y)).astype(float) if likelihood == "poisson" else y
    frame = pd.DataFrame({"task": "all", "x_lo": x, "x_hi": x + 0.1, "covariate_z": z, "y": y})
    made = settings(likelihood=likelihood, n_inducing=15, max_steps=120)
    study = Study(made, frame, CPU)
    assert study.metadata["dims"] == ["x"]
    run(study)
    ask = frame.drop(columns="y").iloc[:20]
    more = ask.assign(covariate_z=ask["covariate_z"] + 1)
    low, high = study.predict(ask)["mean"], study.predict(more)["mean"]
    step = np.log(high / low) if likelihood == "poisson" else high - low
    np.testing.assert_allclose(step, 0.4, atol=0.08)
    again = kept(study)
    pd.testing.assert_frame_equal(again.predict(ask), study.predict(ask))
    assert len(again.map()) == len(again.posterior.field("all")["mean"])
    box = again.explore("box", task="all", lo=[1.0], hi=[2.0])
    assert np.isfinite(box["moments"]).all()
    with pytest.raises(BadInput, match=r"column 'covariate_z', row 2: the cell is empty"):
        study.predict(ask.assign(covariate_z=np.nan))
    with pytest.raises(BadInput, match="'y' cannot be a covariate"):
        Study(settings(covariates="y"), frame, CPU)


# --- polygons, points and times together ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_districts_over_years_with_stations_at_moments(likelihood: str) -> None:
    shapes, rng = squares(4), np.random.default_rng(0)
    x, _ = centers(shapes)
    stations = rng.uniform((-80, 34), (-78, 36), (40, 2))
    moment = rng.uniform(2000, 2006, 40)

    def field(x: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.sin(2 * x) + 0.5 * np.cos(t - 2000))

    rows = []
    for year in (2000.0, 2002.0, 2004.0):
        at = np.linspace(year, year + 2, 21)
        value = np.mean([field(x, t) for t in at], 0)
        rows.append(pd.DataFrame({
            "task": "district", "geometry": marked(shapes),
            "year_lo": year, "year_hi": year + 2, "y": value,
        }))  # fmt: skip
    rows.append(pd.DataFrame({
        "task": "station", "geometry": marked(shapely.points(stations)),
        "year_lo": moment, "year_hi": moment, "y": field(stations[:, 0] + 80, moment),
    }))  # fmt: skip
    frame = pd.concat(rows, ignore_index=True)
    if likelihood == "poisson":
        frame["y"] = rng.poisson(20 * np.exp(frame["y"])).astype(float)
    made = settings(likelihood=likelihood, n_inducing=60, max_steps=80, polygon_points=4)
    study = Study(made, frame, CPU)
    assert study.metadata["dims"] == ["east", "north", "year"]
    run(study)
    ask = pd.DataFrame({"task": "district", "geometry": marked(shapes)})
    ask = ask.assign(year_lo=2001.0, year_hi=2003.0)
    truth = np.mean([field(x, t) for t in np.linspace(2001, 2003, 21)], 0)
    told = study.predict(ask)["mean"]
    told = np.log(told / 20) if likelihood == "poisson" else told
    assert np.corrcoef(told, truth)[0, 1] > 0.9
    site = pd.DataFrame({
        "task": "station", "geometry": marked([shapely.Point(-79, 35)]),
        "year_lo": [2003.0], "year_hi": [2003.0],
    })  # fmt: skip
    assert np.isfinite(study.predict(site)["mean"][0])
