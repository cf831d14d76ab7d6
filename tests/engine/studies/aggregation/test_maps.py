"""Maps of a run: what travels to the page, any polygon, parts against totals, files."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Snapshot, Started
from scant.studies.aggregation import map_layers, map_shapes, mean_rate
from scant.studies.aggregation.maps import MOST_LIVE, polygon, posterior
from scant.studies.aggregation.settings import FIXED, AggregationSettings
from scant.studies.aggregation.study import Study
from scant.tables.read import read_table
from scant.training.api import fit, restore
from scant.training.downloads import predict_own
from scant.training.prediction import predict_file
from tests.engine.studies.aggregation.test_polygons import averages, geojson, mark
from tests.engine.studies.studying import run as run_of

shapely = pytest.importorskip("shapely")
pytest.importorskip("pyproj")

CPU = torch.device("cpu")
SETTINGS = {**FIXED, "max_steps": 30, "n_inducing": 30, "test_share": 0.2, "fine_rows": 0}


def cells(columns: int = 6, rows: int = 4) -> np.ndarray:
    """A grid of half degrees, one with a hole, one of two islands."""
    made = [
        shapely.box(x, y, x + 0.5, y + 0.5)
        for y in 34 + 0.5 * np.arange(rows)
        for x in -80 + 0.5 * np.arange(columns)
    ]
    made[1] = made[1] - shapely.box(-79.3, 34.2, -79.2, 34.3)
    made[4] = made[4] - shapely.box(-77.9, 33.9, -77.8, 34.6)
    return np.array(made)


def counts(shapes: np.ndarray, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    exposure = rng.integers(2000, 9000, len(shapes)).astype(float)
    rate = 0.004 * np.exp(0.5 * averages(shapes))
    return {"y": rng.poisson(exposure * rate).astype(float), "exposure": exposure}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], Any, Path]:
    """Deaths by cell, fitted: study, metadata, report, folder."""
    folder = tmp_path_factory.mktemp("map")
    shapes = cells()
    path = geojson(folder / "deaths.geojson", shapes, **counts(shapes))
    events = list(fit("aggregation", path, device="cpu", own=False, **SETTINGS))
    (started,) = [e for e in events if isinstance(e, Started)]
    *_, model, last = events
    shown = [e for e in events if isinstance(e, Snapshot)][-1]
    assert shown.arrays["map_mean"].shape == (24,)
    study = restore("aggregation", AggregationSettings.parse(SETTINGS).values(), model.blob, "cpu")
    return study, dict(started.metadata), last.report, folder


# --- what travels ---------------------------------------------------------------------------------


def test_the_shapes_of_all_rows_travel_with_names_rates_and_holes(run: Any) -> None:
    _, metadata, report, _ = run
    (layer,) = map_layers.layers(json.loads(json.dumps(metadata)))
    assert layer.places[:2] == ["p0", "p1"]
    assert layer.kind == "poisson"
    assert layer.test.sum() == 5
    own = counts(cells())
    np.testing.assert_allclose(layer.y, own["y"] / own["exposure"], rtol=1e-5)
    train = ~layer.test
    overall = own["y"][train].sum() / own["exposure"][train].sum()
    assert layer.threshold == pytest.approx(overall, rel=1e-3)
    drawn = map_layers.outlines(metadata)
    assert [len(drawn[i]) for i in (0, 1, 4)] == [1, 1, 2]  # polygons
    assert [len(drawn[i][0]) for i in (0, 1, 4)] == [1, 2, 1]  # rings
    areas = shapely.area(map_layers.polygons_of(metadata, range(24))) / 1e6
    np.testing.assert_allclose(areas, metadata["map"]["areas"], rtol=5e-3)
    assert metadata["edges"] == []
    assert layer.of(report.arrays["map_mean"]).shape == (24,)


def test_the_posterior_is_that_of_a_prediction_with_an_exposure_of_one(run: Any) -> None:
    study, metadata, report, _ = run
    table = pd.DataFrame({"task": "all", "geometry": list(map(mark, cells()))})
    told = study.predict(table)
    np.testing.assert_allclose(report.arrays["map_mean"], told["mean"], rtol=1e-6)
    np.testing.assert_allclose(report.arrays["map_std"], told["std"], rtol=1e-6)
    (layer,) = map_layers.layers(metadata)
    moments = told["mean"].to_numpy(), told["std"].to_numpy()
    above = mean_rate.exceedance("poisson", *moments, layer.threshold)
    np.testing.assert_allclose(told["exceedance"], above)
    more = study.predict(table.assign(exposure=500.0))
    np.testing.assert_allclose(more["exceedance"], above, rtol=1e-6)
    np.testing.assert_allclose(more["mean"], 500 * told["mean"])


def test_two_tasks_and_two_times_are_layers_of_the_same_shapes() -> None:
    shapes = cells(3, 2)
    rows = [
        {"task": task, "geometry": mark(s), "y": float(i), "year_lo": year, "year_hi": year + 5}
        for task in ("coarse", "fine")
        for year in (1990.0, 2000.0)
        for i, s in enumerate(shapes)
    ]
    settings = AggregationSettings.parse({**SETTINGS, "scarce": "fine", "test_share": 0.0})
    study = Study(settings, pd.DataFrame(rows), CPU)
    layers = map_layers.layers(study.metadata)
    assert [one.name for one in layers] == [
        f"{task}, year {a} to {a + 5}" for task in ("fine", "coarse") for a in (2000, 1990)
    ]
    assert [one.start for one in layers] == [0, 6, 12, 18]
    assert all(one.shape.tolist() == list(range(6)) for one in layers)
    assert len(study.metadata["map"]["shapes"]) == 6
    assert study.data.on_map.task.tolist() == [1] * 12 + [0] * 12
    assert study.data.on_map.lo[0, 2] == 2000


def test_many_vertices_are_thinned_and_neighbors_go_on_sharing_their_borders() -> None:
    turn = np.linspace(0, 2 * np.pi, 20_001)
    edge = np.column_stack([0.3 * np.sin(40 * turn), turn - np.pi]) * 1e5
    left = shapely.Polygon([*edge, (-1e6, 4e5), (-1e6, -4e5)])
    right = shapely.Polygon([*edge, (1e6, 4e5), (1e6, -4e5)])
    made, _, unit = map_shapes._on_grid(shapely, np.array([left, right]), np.zeros(2, int))
    vertices = [len(rings[0][0]) for (rings,) in made]
    assert sum(vertices) <= map_shapes._VERTICES
    borders = [{(x, y) for x, y in zip(*rings[0])} for (rings,) in made]
    shared = borders[0] & borders[1]
    assert len(shared) >= min(vertices) - 4
    assert 0 < unit < 1000


def test_points_beside_polygons_are_dots_and_slivers_stay_visible() -> None:
    shapes = np.array([shapely.box(0, 0, 1e5, 1e5), shapely.Point(5e4, 5e4),
                       shapely.box(2e5, 0, 2e5 + 0.1, 0.1)])  # fmt: skip
    made, *_ = map_shapes._on_grid(shapely, shapes, np.zeros(3, int))
    assert len(made[1][0][0][0]) == 8
    assert all(len(shape[0][0][0]) >= 3 for shape in made)


def test_a_snapshot_of_many_polygons_is_of_their_centers(run: Any) -> None:
    *_, folder = run
    table = read_table(folder / "deaths.geojson", study_table()).frame
    made = Study(AggregationSettings.parse(SETTINGS), table, CPU)
    made.start_restart(0, 0, None)
    exact = posterior(made.posterior, made.data.on_map)
    many = made.data.on_map.at(np.tile(np.arange(24), MOST_LIVE // 24))
    quick = posterior(made.posterior, many, live=True)
    np.testing.assert_allclose(quick["map_mean"][:24], exact["map_mean"], rtol=0.2)
    assert posterior(made.posterior, None)["map_mean"].shape == (0,)
    assert posterior(made.posterior, replace(many, inside=None))["map_std"].shape == (0,)


def study_table() -> Any:
    from scant.studies.aggregation.entry import ENTRY

    return ENTRY.table


# --- any polygon ----------------------------------------------------------------------------------


def test_a_typed_and_a_drawn_polygon_are_answered_as_predicted(run: Any) -> None:
    study, *_ = run
    typed = study.explore("polygon", text="-79, 34.5, -78.5, 35", threshold=0.004)
    shape = shapely.box(-79, 34.5, -78.5, 35)
    told = study.predict(pd.DataFrame({"task": ["all"], "geometry": [mark(shape)]})).iloc[0]
    expected = told[["mean", "std", "std_y"]].to_numpy(float)
    np.testing.assert_allclose(typed["moments"], expected, rtol=1e-6)
    assert typed["area"][0] == pytest.approx(2530, rel=0.02)
    assert typed["outside"][0] == pytest.approx(0)
    assert 0 < typed["exceedance"][0] < 1
    low, high = typed["interval"]
    inside = (typed["grid"] > low) & (typed["grid"] < high)
    step = np.diff(typed["grid"])[0]
    assert (typed["density"][inside] * step).sum() == pytest.approx(0.95, abs=0.02)
    x, y = typed["outline"][:, :-1]
    drawn = study.explore("polygon", x=x[:-1].tolist(), y=y[:-1].tolist())
    np.testing.assert_allclose(drawn["moments"], typed["moments"], rtol=1e-6)
    assert np.isnan(drawn["exceedance"][0])
    as_text = study.explore("polygon", text=shapely.to_wkt(shape))
    np.testing.assert_allclose(as_text["moments"], typed["moments"], rtol=1e-6)
    far = study.explore("polygon", text="-70,34,-69,35")
    assert far["outside"][0] == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"text": "-79, 34"}, "2 numbers where a box needs four"),
        ({"text": "-78, 34, -79, 35"}, "west below east"),
        ({"text": "POLYGON ((0 0, 1"}, "not a geometry"),
        ({"text": "POINT (-79 35)"}, "no area"),
        ({"x": [0.0, 1.0], "y": [0.0, 1.0]}, "three corners"),
        ({"text": "-79,34,-78,35", "task": "births"}, "no task 'births'"),
    ],
)
def test_no_polygon_is_one_sentence(run: Any, query: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        run[0].explore("polygon", **query)
    assert "\n" not in str(caught.value)


# --- parts and totals, files ----------------------------------------------------------------------


def quarters(shapes: np.ndarray) -> np.ndarray:
    """Each cell cut in four."""
    made = []
    for shape in shapes:
        west, south, east, north = shapely.bounds(shape)
        x, y = (west + east) / 2, (south + north) / 2
        corners = [
            (west, south, x, y),
            (x, south, east, y),
            (west, y, x, north),
            (x, y, east, north),
        ]
        made += [shapely.intersection(shape, shapely.box(*c)) for c in corners]
    return np.array(made)


def test_predicted_parts_add_up_to_the_observed_totals(run: Any) -> None:
    study, metadata, _, folder = run
    shapes, own = cells(), counts(cells())
    parts = quarters(shapes)
    exposure = np.repeat(own["exposure"] / 4, 4)
    path = geojson(folder / "parts.geojson", parts, exposure=exposure)
    (folder / "out").mkdir(exist_ok=True)
    made = predict_file(study, path, folder / "out" / "parts.geojson")
    (layer,) = map_layers.layers(metadata)
    train = np.flatnonzero(~layer.test)
    told = made.totals.set_index("place").loc[[layer.places[i] for i in train]]
    assert (told["parts"] == 4).all()
    np.testing.assert_allclose(told["observed"], own["y"][train], rtol=1e-4)
    features = json.loads((folder / "out" / "parts.geojson").read_text())["features"]
    mean = np.array([f["properties"]["mean"] for f in features]).reshape(-1, 4).sum(1)
    np.testing.assert_allclose(told["predicted"], mean[train], rtol=1e-6)
    assert (told["std"] < told["std_y"]).all()
    z = (told["observed"] - told["predicted"]) / told["std_y"]
    assert told["inside95"].tolist() == (z.abs() <= 1.96).astype(int).tolist()
    assert told["inside95"].mean() > 0.8
    assert made.notes[0].startswith("Parts against totals: 76 rows make up 19 observed polygons")
    beside = pd.read_csv(folder / "out" / "parts.totals.csv")
    np.testing.assert_allclose(beside["predicted"], made.totals["predicted"])


def test_the_deviation_of_a_sum_is_that_of_the_whole(run: Any) -> None:
    study, _, _, folder = run
    shapes = cells()
    path = geojson(folder / "areas.geojson", quarters(shapes))
    made = predict_file(study, path, folder / "areas_out.geojson")
    table = pd.DataFrame({"task": "all", "geometry": list(map(mark, shapes))})
    whole = study.predict(table).assign(place=[f"p{i}" for i in range(24)])
    both = made.totals.merge(whole, on="place", suffixes=("", "_whole"))
    np.testing.assert_allclose(both["predicted"], both["mean"], rtol=0.02)
    np.testing.assert_allclose(both["std"], both["std_whole"], rtol=0.05)


def test_rows_that_are_no_parts_have_no_totals(run: Any) -> None:
    study, _, _, folder = run
    path = geojson(folder / "across.geojson", np.array([shapely.box(-79.7, 34.2, -79.2, 34.7)]))
    assert predict_file(study, path, folder / "across_out.geojson").totals is None


def test_predictions_come_as_geopackage_and_geojson_with_every_column(run: Any) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    study, _, _, folder = run
    made = predict_file(study, folder / "deaths.geojson", folder / "told.gpkg")
    _, table = pyogrio.raw.read_arrow(made.path)
    columns = {"place", "y", "exposure", "mean", "std", "lo95", "hi95", "exceedance", "outside"}
    assert columns <= set(table.column_names)
    found = shapely.from_wkb(table.column("geom").to_numpy())
    assert shapely.equals_exact(found, cells(), 1e-6, normalize=True).all()
    assert "probability that the average over the row's polygon" in made.dictionary.read_text()
    predict_file(study, folder / "deaths.geojson", folder / "told.csv")
    assert pd.read_csv(folder / "told.csv")["geometry"].str.startswith("SRID=4326;").all()


def test_the_download_of_a_run_holds_maps(run: Any) -> None:
    study, _, _, folder = run
    frame = read_table(folder / "deaths.geojson", study_table()).frame
    stored = BytesIO()
    frame.to_parquet(stored, index=False)
    made = zipfile.ZipFile(BytesIO(predict_own(study, "upload:x", stored.getvalue())))
    features = json.loads(made.read("predictions.geojson"))["features"]
    assert len(features) == 24
    assert {"mean", "exceedance", "role", "y"} <= set(features[0]["properties"])
    assert features[1]["geometry"]["type"] == "Polygon"
    assert len(features[1]["geometry"]["coordinates"]) == 2


def test_a_notebook_draws_the_maps_with_holes_and_islands(run: Any) -> None:
    hv = pytest.importorskip("holoviews")
    from scant.training.figures import figures

    _, metadata, report, _ = run
    drawn = figures("aggregation", report, metadata, ())
    titles = [t for t in drawn if isinstance(drawn[t], hv.Polygons)]
    assert titles[:3] == ["Observed", "Posterior mean", "Width of the 95% interval"]
    assert titles[3].startswith("Probability of more than 0.00")
    mean = drawn["Posterior mean"]
    np.testing.assert_allclose(
        mean.dimension_values("mean", expanded=False), report.arrays["map_mean"]
    )
    renderer = hv.render(mean).renderers[0]
    assert type(renderer.glyph).__name__ == "MultiPolygons"
    rings = mean.holes()
    assert [len(rings[i][0]) for i in (0, 1)] == [0, 1]
    assert len(rings[4]) == 2


def test_held_out_polygons_that_lie_over_observed_ones_are_a_layer_of_their_own() -> None:
    fine = cells(4, 2)
    coarse = [shapely.union_all(fine[i : i + 2]) for i in range(0, 8, 2)]
    rows = [
        {"task": "all", "geometry": mark(s), "y": float(i), "split": split}
        for shapes, split in ((coarse, "train"), (fine, "test"))
        for i, s in enumerate(shapes)
    ]
    study = Study(AggregationSettings.parse(SETTINGS), pd.DataFrame(rows), CPU)
    layers = map_layers.layers(study.metadata)
    assert [one.name for one in layers] == ["all, held out", "all, learned from"]
    assert [len(one.shape) for one in layers] == [8, 4]
    assert layers[0].test.all()
    assert not layers[1].test.any()
    assert layers[0].threshold == pytest.approx(1.5)  # of what is learned from


def test_a_report_compares_held_out_parts_with_observed_totals() -> None:
    fine, own = cells(), counts(cells())
    coarse = [shapely.union_all(fine[i : i + 2]) for i in range(0, 24, 2)]
    pairs = {name: values.reshape(-1, 2).sum(1) for name, values in own.items()}
    rows = [
        {"task": "all", "geometry": mark(s), "split": split}
        | {name: float(of[name][i]) for name in ("y", "exposure")}
        for shapes, split, of in ((coarse, "train", pairs), (fine, "test", own))
        for i, s in enumerate(shapes)
    ]
    study = Study(AggregationSettings.parse(SETTINGS), pd.DataFrame(rows), CPU)
    report = run_of(study)
    parts, observed, predicted, std, new, inside = report.arrays["totals"]
    assert parts.tolist() == [2] * 12
    np.testing.assert_allclose(np.sort(observed), np.sort(pairs["y"]), rtol=1e-4)
    assert abs(predicted.sum() / observed.sum() - 1) < 0.1
    assert (std < new).all()
    assert inside.mean() > 0.8
    assert any("24 rows make up 12 observed polygons" in note for note in report.notes)


def test_a_polygon_is_weighted_by_the_people_that_the_run_knows() -> None:
    shapes = cells(4, 2)
    people = [shapely.Point(x, 34.1) for x in np.arange(-79.9, -78.0, 0.2)]
    rows = [
        {"task": task, "geometry": mark(s), "y": float(i + 1)}
        for task, of in (("all", shapes), ("people", people))
        for i, s in enumerate(of)
    ]
    values = {**SETTINGS, "population_task": "people", "test_share": 0.0}
    study = Study(AggregationSettings.parse(values), pd.DataFrame(rows), CPU)
    run_of(study)
    shape = shapely.box(-79.95, 34, -79, 35)
    told = study.predict(pd.DataFrame({"task": ["all"], "geometry": [mark(shape)]})).iloc[0]
    asked = study.explore("polygon", text=shapely.to_wkt(shape))["moments"]
    np.testing.assert_allclose(asked, told[["mean", "std", "std_y"]].to_numpy(float), rtol=1e-6)
    unweighted = replace(study.posterior, people=None)
    assert abs(polygon(unweighted, {"text": shapely.to_wkt(shape)})["moments"][0] - asked[0]) > 1e-3


def test_holes_of_several_lengths_are_drawn() -> None:
    rings = [
        ([0, 10, 10, 0], [0, 0, 10, 10]),
        ([1, 2, 1], [1, 1, 2]),
        ([5, 7, 7, 5], [5, 5, 7, 7]),
    ]
    drawn = {"origin": [0.0, 0.0], "unit": 1.0, "shapes": [[[list(ring) for ring in rings]]]}
    (made,) = map_layers.polygons_of({map_layers.MAP: drawn}, [0])
    assert shapely.area(made) == 100 - 0.5 - 4
