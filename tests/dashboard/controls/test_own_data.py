"""The visitor's own tables: the heads of the wizard's table, and the list they are chosen from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.store import Store
from scant.studies import entry
from scant.tables.read import inspect_table, read_frame
from scant_dashboard.controls.column_table import AS_IS, OUT, ColumnTable
from scant_dashboard.controls.intake import ADDRESS
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, views


def on_the_page(folder: Path, study: str, act: Callable[[Any], Awaitable[None]]) -> None:
    async def main() -> None:
        site = Site(FakeService(Store.open(f"sqlite:///{folder / 'runs.db'}")), folder, "k" * 40)
        doc = Document()
        with set_curdoc(doc):
            page: Any = StudyPage(SessionContext(site, doc, "anna", {}), entry(study), views)
        page.turn = lambda *acts: [one() for one in acts]
        await act(page)

    asyncio.run(main())


def test_a_mended_file_of_the_same_name_is_the_one_that_is_trained(tmp_path: Path) -> None:
    """Both had one key in the list, so the demonstration was chosen in their place."""

    async def act(page: Any) -> None:
        store = page.service.store
        frame = pd.DataFrame({"u": [1.0, 2.0], "z": [0.1, 0.2]})
        ids = [
            store.add_upload(frame + k, owner="anna", name="mine.csv", study="redshift")
            for k in range(3)
        ]
        for upload in ids:
            page.data._uploaded(upload)
            assert page.data.value == f"upload:{upload}"
        assert len(page.data._choice.options) == len(entry("redshift").sources) + 3

    on_the_page(tmp_path, "redshift", act)


HEADS = "uid,u,g,err_u,label,comment\n" + "".join(
    f"{k},{k / 7},{k % 5},0.1,{'ab'[k % 3 == 0]},c{k}\n" for k in range(40)
)


def test_every_column_is_used_as_its_head_says(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        upload = page.data.upload
        upload.open()
        upload._drop.value = {"cells.csv": HEADS.encode()}
        await until(lambda: upload._use.visible)
        roles = {c["name"]: c["role"] for c in upload._table.columns}
        assert roles["uid"] == roles["comment"] == roles["err_u"] == OUT
        assert roles["label"] == "label"
        assert roles["u"] == roles["g"] == AS_IS
        assert "40 rows, 6 columns" in upload._head.object
        upload._table._handle_msg({"column": "g", "role": OUT})
        upload._table._handle_msg({"column": "err_u", "role": AS_IS})

        def heads() -> dict[str, str]:
            return {c["name"]: c["role"] for c in upload._table.columns}

        await until(lambda: heads()["g"] == OUT and heads()["err_u"] == AS_IS)
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert not upload.dialog.open
        store = page.service.store
        kept = store.upload_table(page.data.value.removeprefix("upload:"))
        # The identifier is carried by predictions; errors that are learned get another name.
        assert sorted(kept) == ["err_u_column", "label", "u", "uid"]

    on_the_page(tmp_path, "mitosis", act)


def test_of_many_columns_those_of_a_name_are_left_out_at_once(tmp_path: Path) -> None:
    names = [f"{'late' if k % 2 else 'early'}{k}" for k in range(300)]
    rows = "".join(",".join(str(i * k % 7) for k in range(300)) + f",{'ab'[i % 2]}\n"
                   for i in range(30))  # fmt: skip
    file = f"{','.join(names)},label\n{rows}".encode()

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"wide.csv": file}
        await until(lambda: upload._use.visible)
        assert upload._table.searched
        assert len(upload._table.columns) == 201  # the first, and the class
        upload._table._handle_msg({"find": "late"})
        assert {c["name"][:4] for c in upload._table.columns} == {"late"}
        upload._table._handle_msg({"out": True})
        await until(lambda: all(c["role"] == OUT for c in upload._table.columns))
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        kept = page.service.store.upload_table(page.data.value.removeprefix("upload:"))
        assert not any(str(name).startswith("late") for name in kept)

    on_the_page(tmp_path, "mitosis", act)


def test_the_target_keeps_the_name_that_the_table_has_for_it(tmp_path: Path) -> None:
    file = "u,g,distance\n" + "".join(f"{k / 7},{k % 5},{k / 9}\n" for k in range(1, 90))

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"mine.csv": file.encode()}
        await until(lambda: upload._table.questions)
        assert "Which column is to be learned" in upload._table.questions[0]["text"]
        upload._table._handle_msg({"column": "distance", "role": "z"})
        await until(lambda: upload._use.visible)
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert page.form.read()["target"] == "distance"
        store = page.service.store
        kept = store.upload_table(page.data.value.removeprefix("upload:"))
        assert sorted(kept) == ["distance", "g", "u"]
        page.data.try_demonstration()
        assert page.form.read()["target"] == "z"

    on_the_page(tmp_path, "redshift", act)


def test_a_position_that_is_chosen_is_learned_from_once_the_table_is_kept(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        upload = page.data.upload
        upload.open()
        rows = "".join(f"{k * 7 % 360},{k / 7},{k % 5},{k / 40}\n" for k in range(40))
        upload._drop.value = {"sky.csv": f"ra,u,g,redshift\n{rows}".encode()}
        await until(lambda: upload._use.visible)

        def role() -> str:
            return str({c["name"]: c["role"] for c in upload._table.columns}["ra"])

        assert role() == OUT
        upload._table._handle_msg({"column": "ra", "role": AS_IS})
        await until(lambda: role() == AS_IS)
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        kept = page.service.store.upload_table(page.data.value.removeprefix("upload:"))
        assert "ra_column" in read_frame(kept, entry("redshift").table).features

    on_the_page(tmp_path, "redshift", act)


def test_an_address_is_refused_in_a_sentence(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        upload = page.data.upload
        upload.intake._handle_msg({"act": "address"})
        assert upload.dialog.open
        assert ADDRESS.split(".")[0] in upload._message.object

    on_the_page(tmp_path, "redshift", act)


def test_errors_of_features_are_said_to_be_errors() -> None:
    rows = "".join(f"{i**2 % 11}.5,{i % 7}.25,.{i % 5 + 1},a,{i % 13}.1\n" for i in range(90))
    schema = entry("redshift").table
    preview = inspect_table(f"u,g,u_err,note,z\n{rows}".encode(), schema, name="mine.csv")
    table = ColumnTable(lambda names, role: None)
    table.take(preview, preview.mapping, schema)
    roles = {column["name"]: column["role"] for column in table.columns}
    assert roles == {"u": AS_IS, "g": AS_IS, "u_err": "u_err", "note": OUT, "z": "z"}
    assert {"value": "u_err", "label": "error of u"} in table.options


@pytest.mark.slow
def test_a_map_is_kept_with_its_polygons(tmp_path: Path) -> None:
    shapely = pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"n{k}", "people": 100 + k, "rate": k**1.5},
            "geometry": json.loads(shapely.to_geojson(shapely.box(k, 0, k + 1, 1))),
        }
        for k in range(6)
    ]
    file = json.dumps({"type": "FeatureCollection", "features": features}).encode()

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"map.geojson": file}
        await until(lambda: upload._use.visible)
        assert {c["name"]: c["role"] for c in upload._table.columns}["geometry"] == "geometry"
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        kept = page.service.store.upload_table(page.data.value.removeprefix("upload:"))
        assert kept["geometry"].str.startswith("SRID=4326;POLYGON").all()
        assert kept["y"].tolist() == [k**1.5 for k in range(6)]

    on_the_page(tmp_path, "aggregation", act)


def test_a_map_that_is_no_table_is_said_in_the_wizard(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"towns.shp": b"\x00\x00\x27\x0a" + bytes(100)}
        await until(lambda: "pack the .shp, .shx, .dbf and .prj" in upload._message.object)
        assert not upload._use.visible

    on_the_page(tmp_path, "aggregation", act)
