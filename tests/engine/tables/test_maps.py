"""Maps: every format gives the same table, and what cannot be a support is said in one sentence."""

from __future__ import annotations

import builtins
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import files, registry
from scant.tables.pieces import pieces
from scant.tables.read import inspect_table, read_frame, read_table

shapely = pytest.importorskip("shapely")
pyproj = pytest.importorskip("pyproj")
pyogrio = pytest.importorskip("pyogrio")

TABLE = entry("aggregation").table
MARK = "SRID=4326;"
NAMES = ["Ash", "Birch", "Cedar", "Date", "Elm"]


def squares(n: int = 5) -> np.ndarray:
    """Neighbors, a tenth of a degree wide, one with a hole, one in two parts."""
    made = shapely.box(x := -80 + 0.1 * np.arange(n), 35.0, x + 0.1, 35.1)
    made[1] = made[1] - shapely.box(-79.87, 35.03, -79.83, 35.07)
    made[2] = shapely.union(made[2], shapely.box(-79.8, 35.2, -79.7, 35.3))
    return made


def geojson(shapes: np.ndarray, crs: str = "", **columns: Any) -> bytes:
    columns = columns or {"y": np.arange(len(shapes)) ** 1.5}
    rows = pd.DataFrame(columns).to_dict(orient="records")
    drawn = [None if s is None else json.loads(shapely.to_geojson(s)) for s in shapes]
    features = [
        {"type": "Feature", "properties": row, "geometry": shape} for row, shape in zip(rows, drawn)
    ]
    named = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    return json.dumps({"type": "FeatureCollection", **named, "features": features}).encode()


def written(path: Path, shapes: np.ndarray, driver: str, crs: str | None, **more: Any) -> Path:
    table = pa.table({"y": np.arange(len(shapes)) ** 1.5, "name": NAMES[: len(shapes)]})
    table = table.append_column("geom", pa.array(shapely.to_wkb(shapes), pa.binary()))
    pyogrio.raw.write_arrow(
        table, path, driver=driver, geometry_name="geom", geometry_type="Unknown", crs=crs, **more
    )
    return path


def shapefile(tmp_path: Path, shapes: np.ndarray, crs: str | None, without: str = "") -> bytes:
    folder = tmp_path / "shp"
    folder.mkdir()
    table = pa.table({"y": np.arange(len(shapes)) ** 1.5, "name": NAMES[: len(shapes)]})
    table = table.append_column("geom", pa.array(shapely.to_wkb(shapes), pa.binary()))
    pyogrio.raw.write_arrow(
        table, folder / "towns.shp", driver="ESRI Shapefile", geometry_name="geom",
        geometry_type="Polygon", crs=crs,
    )  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.iterdir()):
            if path.suffix != without:
                archive.write(path, f"deep/{path.name}")
    return out.getvalue()


def geoparquet(shapes: np.ndarray, system: Any = "absent", encoding: str = "WKB") -> bytes:
    own: dict[str, Any] = {"encoding": encoding, "geometry_types": []}
    if system != "absent":
        own["crs"] = system
    geo = {"version": "1.1.0", "primary_column": "shape_", "columns": {"shape_": own}}
    table = pa.table({"y": np.arange(len(shapes)) ** 1.5, "shape_": shapely.to_wkb(shapes)})
    out = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), out)
    return out.getvalue()


def csv_of(shapes: Any, mark: str = "", header: str = "wkt") -> bytes:
    cells = [s if isinstance(s, str) else shapely.to_wkt(s, rounding_precision=12) for s in shapes]
    marked = [f"{mark}{cell}" for cell in cells]
    frame = pd.DataFrame({"y": np.arange(len(cells)) ** 1.5, header: marked})
    return frame.to_csv(index=False).encode()


def turned(shapes: np.ndarray, to: int) -> np.ndarray:
    turn = pyproj.Transformer.from_crs(4326, to, always_xy=True).transform
    return shapely.transform(shapes, lambda xy: np.column_stack(turn(xy[:, 0], xy[:, 1])))


def drawn(frame: pd.DataFrame) -> np.ndarray:
    assert frame["geometry"].str.startswith(MARK).all()
    return shapely.from_wkt(frame["geometry"].str.removeprefix(MARK))


def same(frame: pd.DataFrame, shapes: np.ndarray, within: float = 1e-8) -> bool:
    off = shapely.area(shapely.symmetric_difference(drawn(frame), shapes))
    return bool((off < within).all()) and np.allclose(frame["y"], np.arange(len(shapes)) ** 1.5)


def test_each_format_gives_the_same_polygons(tmp_path: Path) -> None:
    shapes = squares()
    data = {
        "a.geojson": geojson(shapes),
        "a.json": geojson(shapes),
        "a.gpkg": written(tmp_path / "a.gpkg", shapes, "GPKG", "EPSG:4326").read_bytes(),
        "a.zip": shapefile(tmp_path, shapes, "EPSG:4326"),
        "a.parquet": geoparquet(shapes),
        "a.csv": csv_of(shapes, MARK),
    }
    for name, content in data.items():
        table = read_table(content, TABLE, name=name)
        assert same(table.frame, shapes), name
        assert set(table.frame) - {"area_name"} == {"task", "y", "geometry"}, name


def test_projected_files_are_turned_to_degrees(tmp_path: Path) -> None:
    shapes, flat = squares(), turned(squares(), 32617)
    for content, name in (
        (geojson(flat, "urn:ogc:def:crs:EPSG::32617"), "a.geojson"),
        (written(tmp_path / "a.gpkg", flat, "GPKG", "EPSG:32617").read_bytes(), "a.gpkg"),
        (shapefile(tmp_path, flat, "EPSG:32617"), "a.zip"),
        (geoparquet(flat, pyproj.CRS.from_epsg(32617).to_json_dict()), "a.parquet"),
        (csv_of(flat, "SRID=32617;"), "a.csv"),
    ):
        assert same(read_table(content, TABLE, name=name).frame, shapes), name


def test_layers_of_a_geopackage_are_parts(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gpkg", squares(), "GPKG", "EPSG:4326", layer="towns")
    written(path, squares(4), "GPKG", "EPSG:4326", layer="woods", append=True)
    content = registry.read(path, "a.gpkg")
    assert content.parts == ("towns", "woods")
    assert "2 layers; 'towns' was read" in content.notes[0]
    assert len(read_table(path, TABLE, part="woods").frame) == 4
    assert [q.about for q in inspect_table(path.read_bytes(), TABLE, name="a.gpkg").questions] == [
        "part"
    ]


def test_a_table_with_geometries_is_read_again_from_storage() -> None:
    first = read_table(csv_of(squares()), TABLE, name="a.csv")
    stored = io.BytesIO()
    first.frame.to_parquet(stored, index=False)
    again = read_frame(pd.read_parquet(stored), TABLE)
    pd.testing.assert_frame_equal(again.frame, first.frame)
    assert any("longitude and latitude were assumed" in note for note in first.notes)
    assert not any("assumed" in note for note in again.notes)


def test_hexadecimal_bytes_are_geometries_too() -> None:
    shapes = shapely.set_srid(squares(), 4326)
    cells = [shapely.to_wkb(s, hex=True, include_srid=True) for s in shapes]
    assert same(read_table(csv_of(cells), TABLE, name="a.csv").frame, shapes)


def test_a_polygon_that_crosses_itself_is_mended_with_a_note() -> None:
    shapes = squares()
    shapes[3] = shapely.from_wkt("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))")
    table = read_table(geojson(shapes), TABLE, name="a.geojson")
    assert shapely.area(drawn(table.frame)[3]) == pytest.approx(0.5)
    (note,) = [n for n in table.notes if "mended" in n]
    assert "row 5: the polygon is not valid (self-intersection); mended" in note


def test_polygons_drawn_across_the_antimeridian_are_continued() -> None:
    shapes = squares()
    for i, (west, east) in enumerate(((178.5, 179.5), (179.5, -179.5), (-179.5, -178.5))):
        shapes[i] = shapely.Polygon([(west, -18), (east, -18), (east, -17), (west, -17)])
    table = read_table(geojson(shapes[:4]), TABLE, name="a.geojson")
    made = drawn(table.frame)
    assert shapely.bounds(made[1]).tolist() == [179.5, -18, 180.5, -17]
    assert shapely.bounds(made[0]).tolist() == [178.5, -18, 179.5, -17]
    (note,) = [n for n in table.notes if "antimeridian" in n]
    assert note.startswith("a.geojson, column 'geometry': row 3: drawn across the antimeridian")


def test_a_polygon_that_is_wide_by_nature_stays() -> None:
    shapes = squares()
    # Down to the pole and along it, as maps of the world draw Antarctica.
    coast = [(-180, -70), (-90, -65), (0, -70), (90, -66), (180, -70), (180, -90), (-180, -90)]
    shapes[0] = shapely.Polygon(coast)
    made = read_table(geojson(shapes), TABLE, name="a.geojson")
    assert shapely.bounds(drawn(made.frame)[0]).tolist() == [-180, -90, 180, -65]
    assert not any("antimeridian" in note for note in made.notes)


def test_a_cell_without_a_system_beside_degrees_is_taken_for_degrees() -> None:
    cells = [f"{MARK if i else ''}{s}" for i, s in enumerate(squares())]
    table = read_table(csv_of(cells), TABLE, name="a.csv")
    assert same(table.frame, squares())
    assert any(
        "row 2: no coordinate system is named; longitude and latitude were assumed" in note
        for note in table.notes
    )


def test_no_exposure_and_a_table_beyond_the_limit_are_named(tmp_path: Path) -> None:
    shown = geojson(squares(), y=[1, 0, 2, 5, 3], exposure=[10.0, 12, 0, 9, 8])
    sentence = r"a\.geojson, column 'exposure', row 4: got 0, but values must be above zero"
    with pytest.raises(BadInput, match=sentence):
        read_table(shown, TABLE, name="a.geojson")
    large = tmp_path / "large.gpkg"
    with large.open("wb") as file:
        file.truncate(LIMIT_BYTES + 1_000_000)  # nothing of it is read
    with pytest.raises(BadInput, match=r"large\.gpkg has 201 MB and the limit is 200 MB"):
        read_table(large, TABLE)


def test_maps_in_different_systems_are_brought_together() -> None:
    shapes = squares()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("degrees.geojson", geojson(shapes))
        archive.writestr("metres.csv", csv_of(turned(shapes, 32617), "SRID=32617;"))
    with pytest.raises(BadInput, match=r"\(SRID 4326 and SRID 32617\); use one for all"):
        read_table(made.getvalue(), TABLE, name="both.zip")
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("degrees.geojson", geojson(shapes))
        archive.writestr("metres.geojson", geojson(turned(shapes, 32617), "EPSG:32617"))
    frame = read_table(made.getvalue(), TABLE, name="both.zip").frame
    assert frame["task"].tolist() == ["degrees"] * 5 + ["metres"] * 5
    assert same(frame[5:], shapes)


def test_attributes_of_a_map_are_no_dimensions_but_times_are() -> None:
    n = 5
    made = geojson(
        squares(), y=np.arange(n) ** 1.5, population=10 + np.arange(n), year=2000 + np.arange(n)
    )
    table = read_table(made, TABLE, name="a.geojson")
    assert table.features == ("year",)
    assert table.frame["exposure"].tolist() == [10, 11, 12, 13, 14]


def test_names_of_places_are_no_tasks() -> None:
    table = read_table(geojson(squares(), name=NAMES, rate=[1.5, 2, 4, 3, 2]), TABLE, name="a.json")
    assert set(table.frame["task"]) == {"all"}
    assert table.frame["y"].tolist() == [1.5, 2, 4, 3, 2]


LINE = shapely.from_wkt("LINESTRING (0 0, 1 1)")
FLAT = shapely.from_wkt("POLYGON ((0 0, 1 1, 2 2, 0 0))")


def with_one(shape: Any) -> np.ndarray:
    made = squares()
    made[2] = shape
    return made


def bad(name: str, tmp_path: Path) -> bytes:
    shapes = squares()
    match name:
        case "missing.geojson":
            return geojson(with_one(None))
        case "empty.geojson":
            return geojson(with_one(shapely.Polygon()))
        case "line.geojson":
            return geojson(with_one(LINE))
        case "flat.csv":
            return csv_of(with_one(FLAT))
        case "text.csv":
            return csv_of([*map(str, shapes[:2]), "somewhere", *map(str, shapes[3:])])
        case "mixed.csv":
            return csv_of([f"SRID={4326 + (i > 2)};{s}" for i, s in enumerate(shapes)])
        case "metres.csv":
            return csv_of(turned(shapes, 32617))
        case "unknown.csv":
            return csv_of(shapes, "SRID=999999;")
        case "metres.geojson":
            return geojson(turned(shapes, 32617))
        case "noprj.zip":
            return shapefile(tmp_path, turned(shapes, 32617), None)
        case "nodbf.zip":
            return shapefile(tmp_path, shapes, "EPSG:4326", without=".dbf")
        case "cut.zip":
            return shapefile(tmp_path, shapes, "EPSG:4326")[:-30]
        case "towns.shp":
            shapefile(tmp_path, shapes, "EPSG:4326")
            return (tmp_path / "shp" / "towns.shp").read_bytes()
        case "cut.gpkg":
            return written(tmp_path / "x.gpkg", shapes, "GPKG", "EPSG:4326").read_bytes()[:3000]
        case "cut.geojson":
            return geojson(shapes)[:-40]
        case "none.geojson":
            return b'{"type": "FeatureCollection", "features": []}'
        case "odd.geojson":
            return b'{"type": "FeatureCollection", "features": [3]}'
        case "shape.geojson":
            return geojson(shapes).replace(b'"Polygon"', b'"Pentagon"', 1)
        case "crs.geojson":
            return geojson(shapes, "urn:nowhere")
        case "arrow.parquet":
            return geoparquet(shapes, encoding="ABC")
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.geojson", "column 'geometry', row 4: the geometry is empty; give one or drop"),
        ("empty.geojson", "column 'geometry', row 4: the geometry is empty; give one or drop"),
        ("line.geojson", "row 4: got a line, which has no area; give polygons, multipolygons or"),
        ("flat.csv", "column 'wkt', row 4: the polygon has no area; correct it or drop the row"),
        (
            "text.csv",
            "column 'wkt', row 4: got 'somewhere', which is not a geometry; write well-known",
        ),
        ("mixed.csv", "different coordinate systems (SRID 4326 and SRID 4327); use one for all"),
        (
            "metres.csv",
            "are not degrees, and the file does not name their coordinate system; write SRID=",
        ),
        ("unknown.csv", "its coordinate system 'EPSG:999999' is unknown; save it in longitude"),
        ("metres.geojson", "row 2: its coordinates lie beyond the degrees of the Earth"),
        ("noprj.zip", "are not degrees, and the file does not name their coordinate system"),
        ("nodbf.zip", "towns.shp lacks its .dbf; pack the .shp, .shx, .dbf and .prj together"),
        ("cut.zip", "is a damaged ZIP archive; pack it again"),
        ("towns.shp", "is one part of a shapefile; pack the .shp, .shx, .dbf and .prj into a ZIP"),
        ("cut.gpkg", "cannot be read as a GeoPackage"),
        ("cut.geojson", "cannot be read as GeoJSON"),
        ("none.geojson", "has no features; give a map with polygons"),
        ("odd.geojson", "is JSON without a list of features"),
        ("shape.geojson", "feature 1: its geometry is not GeoJSON; correct it"),
        ("crs.geojson", "its coordinate system 'urn:nowhere' is unknown"),
        ("arrow.parquet", "column 'shape_': its geometries are encoded as ABC; save them as WKB"),
    ],
)
def test_a_bad_file_ends_in_one_sentence(name: str, sentence: str, tmp_path: Path) -> None:
    content = bad(name, tmp_path)
    with pytest.raises(BadInput) as told:
        read_table(content, TABLE, name=name)
    assert sentence in str(told.value)
    assert str(told.value).startswith(name)
    assert str(tmp_path) not in str(told.value)
    (problem, *_) = inspect_table(content, TABLE, name=name).problems  # in the wizard, too
    assert sentence in problem


def test_a_file_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadInput, match="and the limit is 0 MB"):
        read_table(geojson(squares()), TABLE, name="a.geojson", limit_bytes=1000)


def test_without_the_packages_the_sentence_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = builtins.__import__

    def lacking(name: str, *args: Any, **kwargs: Any) -> Any:
        if name in ("shapely", "pyproj", "pyogrio"):
            raise ImportError(name)
        return own(name, *args, **kwargs)

    made = {"a.geojson": geojson(squares()), "a.csv": csv_of(squares())}
    monkeypatch.setattr(builtins, "__import__", lacking)
    for name, content in made.items():
        with pytest.raises(BadInput, match=r'are needed: pip install "scant-gp\[maps\]"'):
            read_table(content, TABLE, name=name)


@pytest.mark.parametrize("ending", [".geojson", ".gpkg", ".csv", ".parquet"])
def test_tables_with_geometries_are_written_and_read_back(tmp_path: Path, ending: str) -> None:
    frame = read_table(geojson(squares()), TABLE, name="a.geojson").frame
    path = tmp_path / f"out{ending}"
    files.write(iter([frame.iloc[:2], frame.iloc[2:]]), path)
    assert same(read_table(path, TABLE).frame, squares())
    _, rows = pieces(path, 100)
    assert sum(len(piece.frame) for piece in rows) == 5


def test_geopandas_tables_bring_their_system_along() -> None:
    geopandas = pytest.importorskip("geopandas")
    own = geopandas.GeoDataFrame(
        {"y": np.arange(5) ** 1.5}, geometry=turned(squares(), 32617), crs="EPSG:32617"
    )
    assert same(read_frame(own, TABLE).frame, squares())
