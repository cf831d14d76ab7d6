"""Several tables as one: tasks by their files' names, and values joined with a map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.packed import tables_of
from scant.tables.joining import normalized
from scant.tables.opening import columns_of
from scant.tables.read import inspect_table, read_table, read_tables
from tests.engine.files import packed

TABLE = entry("aggregation").table
CODES = [f"{1001 + 2 * i:05d}" for i in range(12)]
NAMES = ["Île", "Bay", "Crest", "Dale", "Elm", "Ford", "Glen", "Hill", "Isle", "Jet", "Kay", "Low"]


def csv(**columns: Any) -> bytes:
    return pd.DataFrame(columns).to_csv(index=False).encode()


def geojson(**columns: Any) -> bytes:
    """Squares in a row, with attributes."""
    n = len(next(iter(columns.values())))
    features = [
        {
            "type": "Feature",
            "properties": {name: values[i] for name, values in columns.items()},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[i, 5], [i + 1, 5], [i + 1, 6], [i, 6], [i, 5]]],
            },
        }
        for i in range(n)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


HOURS = csv(start=[0, 1, 2, 3, 4], end=[1, 2, 3, 4, 5], pm=[3.0, 5, 4, 7, 8])
DAYS = csv(start=[0, 2, 4, 6], end=[2, 4, 6, 8], pm=[4.0, 4, 6, 8])


def test_tables_with_the_same_headers_are_tasks_by_their_files_names() -> None:
    data = packed({"hours.csv": HOURS, "days.csv": DAYS})
    preview = inspect_table(data, TABLE, name="both.zip")
    (question,) = preview.questions
    assert (question.about, question.guess) == ("part", "*")
    assert [answer for answer, _ in question.options] == ["*", "hours.csv", "days.csv"]
    assert set(preview.names) == {"start", "end", "pm", "task"}  # columns can still be chosen
    frame = read_table(data, TABLE, name="both.zip").frame
    assert frame["task"].tolist() == ["hours"] * 5 + ["days"] * 4
    assert frame["x_hi"].tolist() == [1, 2, 3, 4, 5, 2, 4, 6, 8]
    alone = read_table(data, TABLE, name="both.zip", part="days.csv").frame
    assert alone["task"].tolist() == ["all"] * 4


def test_files_on_disk_are_tasks_too(tmp_path: Path) -> None:
    for name, content in (("hours.csv", HOURS), ("days.csv", DAYS)):
        (tmp_path / name).write_bytes(content)
    table = read_tables([tmp_path / "hours.csv", tmp_path / "days.csv"], TABLE)
    assert set(table.frame["task"]) == {"hours", "days"}
    with pytest.raises(BadInput, match="takes one table, but got 2 files"):
        read_tables([tmp_path / "hours.csv", tmp_path / "days.csv"], entry("redshift").table)
    with pytest.raises(BadInput, match=r"hours\.csv occurs twice"):
        read_tables([tmp_path / "hours.csv"] * 2, TABLE)


def test_columns_can_be_named_for_all_files(tmp_path: Path) -> None:
    more = csv(hour=[0.5, 1.5, 2.5, 3.5], o3=[3.0, 4, 5, 7], no2=[1.0, 2, 4, 3])
    for name, content in (("hours.csv", HOURS), ("sensor.csv", more)):
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / "hours.csv", tmp_path / "sensor.csv"]
    frame = read_tables(paths, TABLE, columns={"y": ["pm", "no2"]}).frame
    assert frame["y"].tolist() == [3, 5, 4, 7, 8, 1, 2, 4, 3]
    with pytest.raises(BadInput, match="No file has a column 'dust' to take for 'y'"):
        read_tables(paths, TABLE, columns={"y": "dust"})


def test_points_beside_boxes_are_boxes_without_width() -> None:
    points = csv(hour=[0.5, 1.5, 2.5, 3.5], value=[3.0, 4, 5, 7], status=[0, 0, 0, 0])
    table = read_table(packed({"hours.csv": HOURS, "sensor.csv": points}), TABLE, name="b.zip")
    own = table.frame[table.frame["task"] == "sensor"]
    assert own["x_lo"].tolist() == own["x_hi"].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert own["y"].tolist() == [3, 4, 5, 7]
    assert any("its dimension 'hour' was taken for 'x' of hours.csv" in n for n in table.notes)


def test_several_columns_of_several_files_are_tasks_of_both_names() -> None:
    two = csv(year=[1, 2, 3, 4], order1=[3.0, 4, 5, 7], order2=[1.0, 2, 2, 1])
    frame = read_table(packed({"a.csv": two, "b.csv": two}), TABLE, name="b.zip").frame
    assert list(dict.fromkeys(frame["task"])) == [
        "a · order1", "b · order1", "a · order2", "b · order2",
    ]  # fmt: skip
    assert len(frame) == 16


def test_a_bad_cell_is_found_in_its_own_file() -> None:
    wrong = HOURS.replace(b"7.0", b"seven")
    with pytest.raises(BadInput, match=r"^hours\.csv, column 'pm', row 5: got 'seven'"):
        read_table(packed({"days.csv": DAYS, "hours.csv": wrong}), TABLE, name="both.zip")


def test_a_dimension_that_one_file_lacks_is_named() -> None:
    more = csv(start=[0, 1], end=[1, 2], depth_lo=[0, 1], depth_hi=[1, 2], pm=[1.0, 2])
    with pytest.raises(BadInput, match=r"hours\.csv has no dimension 'depth', which deep\.csv has"):
        read_table(packed({"hours.csv": HOURS, "deep.csv": more}), TABLE, name="both.zip")


def test_an_archive_beyond_the_limit_is_refused_before_it_is_unpacked() -> None:
    large = packed({"a.csv": HOURS, "b.csv": b"0" * (LIMIT_BYTES + 1)})
    with pytest.raises(BadInput, match=r"big\.zip unpacks to more than 200 MB"):
        tables_of(large, "big.zip", LIMIT_BYTES)
    assert tables_of(packed({"a.csv": HOURS}), "one.zip", LIMIT_BYTES) == []
    assert tables_of(HOURS, "a.csv", LIMIT_BYTES) == []


def test_names_and_codes_are_alike_in_any_spelling() -> None:
    frame = pd.DataFrame(
        {"a": ["01001", "1001", "0500000US01001", "ÎLE-de  France", "ile de france"]}
    )
    words = normalized(columns_of(frame, "a.csv", 9)["a"])
    assert len(set(words[:3])) == 1
    assert words[3] == words[4]


@pytest.fixture
def joined_files() -> dict[str, bytes]:
    """Values whose codes have lost their zeros; one place is not on the map, one has no value."""
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    codes = [int(code) for code in CODES[1:]] + [99999]
    values = csv(fips=codes, cases=[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    drawn = geojson(GEOID=CODES, NAME=NAMES, AREA=[1.5 + i for i in range(12)])
    return {"values.csv": values, "towns.geojson": drawn}


def test_values_are_joined_with_a_map_by_codes(
    joined_files: dict[str, bytes], tmp_path: Path
) -> None:
    data = packed(joined_files)
    preview = inspect_table(data, TABLE, name="both.zip")
    assert [q.about for q in preview.questions] == ["part"]
    assert not preview.problems
    assert preview.mapping["cases"] == "y"
    table = read_table(data, TABLE, name="both.zip")
    assert len(table.frame) == 11
    assert table.frame["geometry"][0].startswith("SRID=4326;POLYGON ((1 5")  # the second square
    (note,) = [n for n in table.notes if "was joined" in n]
    assert note == (
        "values.csv was joined with towns.geojson by 'fips' and 'GEOID'; without a polygon, left "
        "out: 99999; without values: 01001."
    )
    for name, content in joined_files.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in joined_files]
    pd.testing.assert_frame_equal(read_tables(paths, TABLE).frame, table.frame)


def test_unmatched_names_are_listed_up_to_ten() -> None:
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    places = [f"town {i}" for i in range(40)]
    values = csv(place=places[:25], rate=np.arange(25) ** 1.5)
    table = read_table(
        packed({"v.csv": values, "m.geojson": geojson(town=places)}), TABLE, name="b.zip"
    )
    (note,) = [n for n in table.notes if "was joined" in n]
    assert note.endswith("without values: " + ", ".join(places[25:35]) + " and 5 more.")


def test_where_two_pairs_of_columns_may_be_meant_it_is_asked(
    joined_files: dict[str, bytes],
) -> None:
    places = dict(zip(NAMES, CODES))
    shuffled = NAMES[::-1]
    values = csv(place=shuffled, seat=NAMES, cases=[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    data = packed({**joined_files, "values.csv": values})
    asked = [q for q in inspect_table(data, TABLE, name="b.zip").questions if q.about == "join"]
    assert {answer for answer, _ in asked[0].options} == {("place", "NAME"), ("seat", "NAME")}
    for column, first in (("place", shuffled[0]), ("seat", NAMES[0])):
        frame = read_table(data, TABLE, name="b.zip", join=(column, "NAME")).frame
        west = CODES.index(places[first])
        assert frame["geometry"][0].startswith(f"SRID=4326;POLYGON (({west} 5")
    with pytest.raises(BadInput, match="have no value in common"):
        read_table(data, TABLE, name="b.zip", join=("place", "GEOID"))


def test_a_table_that_no_map_belongs_to_ends_in_one_sentence(
    joined_files: dict[str, bytes],
) -> None:
    values = csv(place=["x", "y", "Hill"], cases=[1, 2, 3])
    with pytest.raises(BadInput, match=r"values\.csv has no polygons, .*towns\.geojson; nearest"):
        read_table(packed({**joined_files, "values.csv": values}), TABLE, name="b.zip")


def test_several_polygons_of_a_place_are_united() -> None:
    shapely = pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    drawn = geojson(town=["a", "b", "c", "d", "a"])
    values = csv(town=["a", "b", "c", "d"], rate=[1.0, 2, 4, 3])
    frame = read_table(packed({"v.csv": values, "m.geojson": drawn}), TABLE, name="b.zip").frame
    first = shapely.from_wkt(frame["geometry"][0].removeprefix("SRID=4326;"))
    assert shapely.area(first) == pytest.approx(2)


def test_points_are_a_task_beside_polygons() -> None:
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    drawn = geojson(rate=[1.5, 2.5, 4.0, 3.0])
    points = csv(lon=[0.5, 1.5, 2.5, 3.5], lat=[5.5] * 4, value=[1.0, 2, 4, 3])
    frame = read_table(packed({"m.geojson": drawn, "p.csv": points}), TABLE, name="b.zip").frame
    assert frame["task"].tolist() == ["m"] * 4 + ["p"] * 4
    assert frame["geometry"][4] == "SRID=4326;POINT (0.5 5.5)"


def test_a_shapefile_and_a_table_of_its_places_in_one_archive(tmp_path: Path) -> None:
    shapely = pytest.importorskip("shapely")
    pyogrio = pytest.importorskip("pyogrio")
    pytest.importorskip("pyproj")
    import pyarrow as pa

    shapes = shapely.box(x := np.arange(5.0), 5, x + 1, 6)
    table = pa.table({"code": CODES[:5], "geom": pa.array(shapely.to_wkb(shapes), pa.binary())})
    pyogrio.raw.write_arrow(
        table, tmp_path / "m.shp", driver="ESRI Shapefile", geometry_name="geom",
        geometry_type="Polygon", crs="EPSG:4326",
    )  # fmt: skip
    files = {f"deep/{path.name}": path.read_bytes() for path in tmp_path.iterdir()}
    values = csv(code=[int(c) for c in CODES[:5]], rate=np.arange(5) ** 1.5)
    frame = read_table(packed({**files, "values.csv": values}), TABLE, name="b.zip").frame
    assert frame["y"].tolist() == (np.arange(5) ** 1.5).tolist()
    assert frame["geometry"].str.startswith("SRID=4326;POLYGON").all()


def test_places_of_several_years_keep_their_years_and_deaths_are_learned_beside_population() -> (
    None
):
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    values = csv(
        place=NAMES * 3, year=np.repeat([2000, 2001, 2002], 12),
        deaths=np.arange(36) % 7, population=np.arange(36) + 100,
    )  # fmt: skip
    drawn = geojson(NAME=[name.upper() for name in NAMES], kind=["a", "b"] * 6)
    data = packed({"v.csv": values, "m.geojson": drawn})
    preview = inspect_table(data, TABLE, name="b.zip")
    assert preview.mapping["deaths"] == "y"
    assert "task" not in preview.mapping.values()  # neither places nor kinds of places are tasks
    frame = read_table(data, TABLE, name="b.zip", columns={"y": "deaths"}).frame
    assert frame["year"].tolist() == [2000] * 12 + [2001] * 12 + [2002] * 12
    assert frame["geometry"].nunique() == 12
