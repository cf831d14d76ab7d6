"""Polygons as supports: their points, the kernel's averages over them, and fits of maps."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import boxes, weighted_points
from scant.studies.aggregation import inference, polygons
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.capacity import inside_each
from scant.studies.aggregation.entry import ENTRY
from scant.studies.aggregation.settings import FIXED, AggregationSettings
from scant.studies.aggregation.study import Study
from scant.studies.aggregation.supports import Supports
from scant.studies.aggregation.table import of
from scant.tables.read import inspect_table, read_table
from scant.training.api import fit, restore
from scant.training.prediction import predict_file, result_name
from tests.engine.studies.studying import run

shapely = pytest.importorskip("shapely")
pyproj = pytest.importorskip("pyproj")

CPU = torch.device("cpu")
REGION = (-80.0, 34.0, -77.0, 36.5)  # degrees
SQUARE = shapely.box(0, 0, 6, 6)
RING = SQUARE - shapely.box(1, 2, 4, 5)
ISLANDS = shapely.union_all([shapely.box(0, 0, 2, 1), shapely.box(4, 3, 5, 6)])
SLIVER = shapely.Polygon([(0, 0), (6, 4), (6, 4.001)])
SHAPES = {"square": SQUARE, "ring": RING, "islands": ISLANDS, "sliver": SLIVER}


def inside(shape: Any, count: int) -> np.ndarray:
    return polygons.points(shapely.to_wkb(shape), count)


# --- points -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("count", [1, 9, 36, 200])
def test_points_lie_inside_and_share_the_area(name: str, count: int) -> None:
    shape = SHAPES[name]
    made = inside(shape, count)
    assert 1 <= len(made) <= count
    assert (made[:, 2] > 0).all()
    assert made[:, 2].sum() == pytest.approx(1)
    assert shapely.dwithin(shapely.points(made[:, :2]), shape, 1e-9).all()
    np.testing.assert_array_equal(made, inside(shape, count))


def test_a_square_is_a_grid_of_equal_shares() -> None:
    made = inside(SQUARE, 36)
    grid = np.array([(x, y) for y in np.arange(0.5, 6) for x in np.arange(0.5, 6)])
    np.testing.assert_allclose(made[np.lexsort(made[:, :2].T)][:, :2], grid)
    np.testing.assert_allclose(made[:, 2], 1 / 36)


@pytest.mark.parametrize("name", ["ring", "islands"])
def test_moments_of_a_shape_are_those_of_its_area(name: str) -> None:
    shape, made = SHAPES[name], inside(SHAPES[name], 150)
    x, y = np.meshgrid(*[(np.arange(1200) + 0.5) / 200] * 2)
    within = shapely.contains_xy(shape, x, y)
    for moment in (lambda x, y: x, lambda x, y: y, lambda x, y: x * y, lambda x, y: np.cos(x)):
        mean = (made[:, 2] * moment(made[:, 0], made[:, 1])).sum()
        assert mean == pytest.approx(moment(x[within], y[within]).mean(), abs=0.02)


def test_islands_have_points_by_their_area() -> None:
    made = inside(ISLANDS, 100)
    assert made[made[:, 0] < 3, 2].sum() == pytest.approx(2 / 5)


def test_the_system_keeps_areas_and_is_told() -> None:
    system = polygons.equal_area(*REGION)
    # A cell of one degree on the sphere of equal area: R^2 dlon (sin top - sin bottom).
    radius, (bottom, top) = 6_371_007.18, np.radians([34, 36])
    marked = [
        f"SRID=4326;{shapely.to_wkt(shapely.segmentize(shapely.box(-79, 34, -78, 36), 0.01))}"
    ]
    made = polygons.shapes(marked, system, 9, "x", np.arange(1))
    wide = np.radians(1) * radius**2 * (np.sin(top) - np.sin(bottom))
    assert made.inside is not None
    width, height = (made.hi - made.lo)[0]
    assert width * height > wide  # its sides are bent
    assert width * height == pytest.approx(wide, rel=0.05)
    assert "Lambert azimuthal equal-area, centered on longitude -78.5°" in polygons.told(system)
    assert "Equal Earth" in polygons.told(polygons.equal_area(-170, -60, 175, 80))


def test_a_region_across_the_antimeridian_is_small() -> None:
    parts = [shapely.box(178, -18, 180, -16), shapely.box(-180, -18, -178, -16)]
    marked = [f"SRID=4326;{shapely.to_wkt(shape)}" for shape in parts]
    made = polygons.shapes(marked, "", 9, "x", np.arange(2))
    assert "lon_0=180" in made.system or "lon_0=-180" in made.system
    (west, _), (east, _) = made.lo
    assert east - west == pytest.approx(2 * 111_320 * np.cos(np.radians(17)), rel=0.01)
    # The two are neighbors.
    assert made.hi[0, 0] == pytest.approx(made.lo[1, 0], abs=1)
    assert "lon_0=0.0" in polygons.equal_area(-178, -60, 180, 80)  # the world is cut where maps are


# --- kernel -------------------------------------------------------------------------------------


def kernel(lengthscale: float) -> IntervalKernel:
    made = IntervalKernel(2).double()
    made.lengthscale = torch.full((1, 2), lengthscale)
    return made


def supports(*shapes: Any, count: int) -> torch.Tensor:
    each = [inside(shape, count) for shape in shapes]
    most = max(map(len, each))
    padded = np.array([np.vstack([e, np.tile([*e[0, :2], 0], (most - len(e), 1))]) for e in each])
    own = torch.as_tensor(padded)
    return weighted_points(own[..., :2], own[..., 2])


@pytest.mark.parametrize("lengthscale", [2.0, 8.0])
def test_a_rectangle_is_the_same_box(lengthscale: float) -> None:
    corners = torch.tensor([[0.0, 0, 3, 5], [2, 1, 6, 4], [7, 7, 8, 9]]).double()
    as_box = boxes(corners[:, :2], corners[:, 2:])
    as_polygon = supports(*(shapely.box(*c) for c in corners.tolist()), count=100)
    made = kernel(lengthscale)
    with torch.no_grad():
        expected = made(as_box).to_dense()
        for found in (made(as_polygon).to_dense(), made(as_polygon, as_box).to_dense()):
            assert (found - expected).abs().max() < 4e-3


def test_averages_are_those_of_a_fine_grid() -> None:
    made = kernel(2.5)
    grid = (np.arange(60) + 0.5) / 10
    x, y = (v.ravel() for v in np.meshgrid(grid, grid))
    dense = [
        torch.as_tensor(np.column_stack([x, y])[shapely.contains_xy(shape, x, y)])
        for shape in (RING, ISLANDS)
    ]
    with torch.no_grad():
        expected = torch.stack(
            [torch.stack([made(a, b).to_dense().mean() for b in dense]) for a in dense]
        )
        found = made(supports(RING, ISLANDS, count=64)).to_dense()
    assert (found - expected).abs().max() < 4e-3


def test_many_points_are_looked_at_quickly_with_the_same_values_and_gradients() -> None:
    made, one, other = kernel(2.5), supports(RING, SQUARE, count=30), supports(ISLANDS, count=30)
    made.lengthscale = torch.tensor([[1.5, 4.0]])
    found = made(one, other).to_dense()
    (gradient,) = torch.autograd.grad(found.square().sum(), made.raw_lengthscale)
    expected = made(one.clone().requires_grad_(), other).to_dense()  # goes the slow way
    (slow,) = torch.autograd.grad(expected.square().sum(), made.raw_lengthscale)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, slow)


# --- tables -------------------------------------------------------------------------------------


def mark(shape: Any) -> str:
    return f"SRID=4326;{shapely.to_wkt(shape)}"


def test_rows_become_supports_with_times_beside_them() -> None:
    places = [shapely.box(-79, 35, -78, 36), shapely.Point(-78.5, 35.5)]
    frame = pd.DataFrame(
        {"task": ["map", "site"], "y": [1.0, 2.0], "geometry": list(map(mark, places))}
    )
    made = of(frame.assign(year_lo=[2000.0, 2003.0], year_hi=[2005.0, 2003.0]))
    assert made.dims == ("east", "north", "year")
    k = made.inside.shape[1]
    assert 9 < k <= 25
    pieces = space.supports_of(made, np.arange(2), CPU).view(2, k, 7)
    assert pieces[0, :, 2].unique().tolist() == [2000]
    assert pieces[0, :, 5].unique().tolist() == [2005]
    np.testing.assert_allclose(pieces[:, :, 6].sum(1), 1)
    assert (pieces[1, :, 6] != 0).sum() == 1  # a point is one piece
    alone = of(frame.iloc[1:])
    assert alone.inside is None
    assert (alone.width == 0).all()


def test_some_rows_of_supports_are_numbered_anew() -> None:
    shapes = [shapely.box(i, 0, i + 1, 1) for i in range(3)]
    made = of(pd.DataFrame({"task": list("abc"), "y": 1.0, "geometry": list(map(mark, shapes))}))
    some = made.at(np.array([2, 1]), ["c", "b"])
    assert isinstance(some, Supports)
    assert some.task.tolist() == [0, 1]
    np.testing.assert_array_equal(some.lo, made.lo[[2, 1]])


# --- fits ---------------------------------------------------------------------------------------


def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sin(2 * x) + np.cos(2.5 * y)


def averages(shapes: np.ndarray, of: Callable = field) -> np.ndarray:
    each = [inside(shape, 200) for shape in shapes]
    return np.array([(e[:, 2] * of(e[:, 0], e[:, 1])).sum() for e in each])


def districts(n: int = 30) -> np.ndarray:
    west, south, east, north = REGION
    seeds = np.random.default_rng(1).uniform((west, south), (east, north), (n, 2))
    cells = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=shapely.box(*REGION))
    return shapely.intersection(shapely.get_parts(cells), shapely.box(*REGION))


def grid(step: float = 0.25) -> np.ndarray:
    west, south, east, north = REGION
    x, y = (
        v.ravel() for v in np.meshgrid(np.arange(west, east, step), np.arange(south, north, step))
    )
    return shapely.box(x, y, x + step, y + step)


def geojson(path: Path, shapes: np.ndarray, **columns: Any) -> Path:
    rows = pd.DataFrame({"place": [f"p{i}" for i in range(len(shapes))], **columns})
    features = [
        {"type": "Feature", "properties": row, "geometry": json.loads(shapely.to_geojson(shape))}
        for row, shape in zip(rows.to_dict(orient="records"), shapes)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def fitted(path: Path, **values: Any) -> tuple[Any, bytes, AggregationSettings]:
    own = {"test_share": 0.0, **values}
    *_, model, last = fit("aggregation", path, device="cpu", own=False, **own)
    settings = AggregationSettings.parse(own)
    return last.report, model.blob, settings


@pytest.fixture(scope="module")
def districts_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """Thirty districts, whose field is known only as their averages."""
    folder = tmp_path_factory.mktemp("map")
    path = geojson(folder / "districts.geojson", districts(), y=averages(districts()))
    report, blob, settings = fitted(path)
    return restore("aggregation", settings.values(), blob, "cpu"), report, folder


@pytest.mark.slow
def test_a_smooth_field_is_found_better_than_by_districts_own_means(
    districts_run: tuple[Any, Any, Path],
) -> None:
    study, _, folder = districts_run
    cells, own = grid(), districts()
    path = geojson(folder / "cells.geojson", cells)
    source = path.rename(path.with_suffix(".json"))  # as many save it
    assert result_name(source, alone=False) == "cells.predictions.json"
    made = predict_file(study, source, folder / "out.geojson")
    told = read_back(made.path)
    truth = averages(cells)
    parent = [int(np.argmax(shapely.area(shapely.intersection(own, cell)))) for cell in cells]
    plain = np.sqrt(np.mean((averages(own)[parent] - truth) ** 2))
    ours = np.sqrt(np.mean((told["mean"] - truth) ** 2))
    assert made.rows == len(cells)
    assert ours < plain / 4
    assert ((told["lo95"] <= truth) & (truth <= told["hi95"])).mean() > 0.85


def read_back(path: Path) -> pd.DataFrame:
    made = json.loads(path.read_text())
    return pd.DataFrame([feature["properties"] for feature in made["features"]])


def test_averages_of_parts_are_those_of_the_whole(districts_run: tuple[Any, Any, Path]) -> None:
    study, _, _ = districts_run
    whole = shapely.box(-79, 35, -78, 36)
    quarters = [shapely.box(x, y, x + 0.5, y + 0.5) for x in (-79, -78.5) for y in (35, 35.5)]
    table = pd.DataFrame({"task": "all", "geometry": [mark(s) for s in (whole, *quarters)]})
    mean = study.predict(table)["mean"].to_numpy()
    assert mean[0] == pytest.approx(mean[1:].mean(), abs=0.02)


def test_a_stored_upload_is_fitted_as_its_file(districts_run: tuple[Any, Any, Path]) -> None:
    _, _, folder = districts_run
    table = read_table(folder / "districts.geojson", ENTRY.table)
    stored = BytesIO()
    table.frame.to_parquet(stored, index=False)
    own = pd.read_parquet(BytesIO(stored.getvalue()))
    settings = AggregationSettings.parse({**FIXED, "max_steps": 3})
    one, other = (Study(settings, frame, CPU) for frame in (table.frame, own))
    torch.testing.assert_close(*(s.data.train.data.supports for s in (one, other)))
    assert any("Lambert azimuthal equal-area" in note for note in one.notes)


def test_a_model_of_a_map_needs_a_map(districts_run: tuple[Any, Any, Path]) -> None:
    study, _, _ = districts_run
    with pytest.raises(BadInput, match="no column 'geometry', and the model was trained on a map"):
        study.predict(pd.DataFrame({"task": ["all"], "x": [1.0]}))


@pytest.mark.slow
def test_sites_help_districts_as_a_task_of_their_own(tmp_path: Path) -> None:
    shapes, rng = districts(12), np.random.default_rng(0)
    sites = shapely.points(rng.uniform(REGION[:2], REGION[2:], (25, 2)))
    x, y = shapely.get_x(sites), shapely.get_y(sites)
    every = np.concatenate([shapes, sites])
    path = geojson(
        tmp_path / "both.geojson", every,
        task=["district"] * 12 + ["site"] * 25,
        y=np.concatenate([averages(shapes), field(x, y)]),
    )  # fmt: skip
    read = read_table(path, ENTRY.table).frame
    settings = AggregationSettings.parse(
        {**FIXED, "test_share": 0, "max_steps": 30, "scarce": "district"}
    )
    study = Study(settings, read, CPU)
    run(study)
    cells = grid(0.5)
    table = pd.DataFrame({"task": "district", "geometry": [mark(s) for s in cells]})
    error = study.predict(table)["mean"] - averages(cells)
    assert np.sqrt(np.mean(error**2)) < 0.25 * averages(cells).std()


@pytest.mark.slow
def test_counts_over_polygons_are_learned_variationally(tmp_path: Path) -> None:
    shapes = districts(20)
    rate = averages(shapes, lambda x, y: np.exp(1 + 0.5 * np.sin(2 * x)))
    counts = np.random.default_rng(0).poisson(20 * rate / 20)
    path = geojson(tmp_path / "c.geojson", shapes, y=counts, exposure=[1.0] * 20)
    settings = AggregationSettings.parse(
        {**FIXED, "test_share": 0, "max_steps": 60, "n_inducing": 12}
    )
    study = Study(settings, read_table(path, ENTRY.table).frame, CPU)
    assert study.metadata["likelihoods"] == ["poisson"]
    assert study.data.inference != "exact"
    run(study)
    told = study.predict(pd.DataFrame({"task": "all", "geometry": [mark(s) for s in shapes]}))
    assert np.corrcoef(told["mean"], rate)[0, 1] > 0.5


def test_many_polygons_get_few_points_and_inducing_points() -> None:
    few, many = (inside_each(AggregationSettings(), rows) for rows in (30, 5000))
    assert (few, many) == (36, 9)
    assert inside_each(AggregationSettings(polygon_points=50), 5000) == 50
    settings = AggregationSettings.parse(FIXED)
    assert inference.exact(settings, ["gaussian"], 50, False, 36)
    assert not inference.exact(settings, ["gaussian"], 400, False, 9)


@pytest.fixture(scope="module")
def carolina(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counties of North Carolina, with births and sudden infant deaths; without a .prj."""
    pytest.importorskip("pyogrio")
    libpysal = pytest.importorskip("libpysal")
    path = tmp_path_factory.mktemp("sids") / "sids2.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part in (Path(libpysal.__file__).parent / "examples" / "sids2").glob("sids2.*"):
            archive.write(part, part.name)
    return path


def test_counties_cover_the_area_of_their_state(carolina: Path) -> None:
    preview = inspect_table(carolina.read_bytes(), ENTRY.table, name="sids2.zip")
    assert preview.questions[0].guess not in ("AREA", "PERIMETER", "FIPS")
    frame = read_table(carolina, ENTRY.table, mapping={"SIDR74": "y"}).frame
    drawn = of(frame, points=60)
    turn = pyproj.Transformer.from_crs(4326, drawn.system, always_xy=True).transform
    shapes = shapely.from_wkt(frame["geometry"].str.removeprefix("SRID=4326;"))
    flat = shapely.transform(shapes, lambda xy: np.column_stack(turn(xy[:, 0], xy[:, 1])))
    geodesic = sum(abs(pyproj.Geod(ellps="WGS84").geometry_area_perimeter(s)[0]) for s in shapes)
    assert shapely.area(flat).sum() == pytest.approx(geodesic, rel=1e-3)
    centers = (drawn.inside[..., :2] * drawn.inside[..., 2:]).sum(1)
    exact = shapely.get_coordinates(shapely.centroid(flat))
    assert np.abs(centers - exact).max() < 2000  # metres, of counties 30 km wide


def test_deaths_by_county_are_counts_of_births(carolina: Path) -> None:
    mapping = {"SID74": "y", "BIR74": "exposure"}
    frame = read_table(carolina, ENTRY.table, mapping=mapping).frame
    settings = AggregationSettings.parse(
        {**FIXED, "test_share": 0.2, "max_steps": 60, "n_inducing": 20, "polygon_points": 9}
    )
    study = Study(settings, frame, CPU)
    assert study.metadata["likelihoods"] == ["poisson"]
    run(study)
    told = study.predict(frame.drop(columns="y"))
    assert told["mean"].sum() == pytest.approx(frame["y"].sum(), rel=0.1)
    held = study.roles == "test"
    assert np.corrcoef(told["mean"][held], frame["y"][held])[0, 1] > 0.5
