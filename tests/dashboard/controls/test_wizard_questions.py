"""What the wizard cannot know it asks with a widget, once, and applies the answer to the file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scant.errors import NotFound
from scant.studies import entry
from scant_dashboard.limits.client import Client
from scant_dashboard.limits.uploads import Received
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.controls.test_own_data import on_the_page
from tests.dashboard.fakes import views


def kept(page: Any) -> pd.DataFrame:
    frame: pd.DataFrame = page.service.store.upload_table(page.data.value.removeprefix("upload:"))
    return frame


def asked(upload: Any) -> dict[str, Any]:
    """The options of each question, and the one that is taken."""
    return {
        about: (question["options"], question["taken"])
        for (about, _), question in zip(upload._questions, upload._table.questions)
    }


async def answer(upload: Any, place: int, option: int) -> None:
    """Choose an option, and wait for the table that is read with it."""
    before = upload._table.version
    upload._table._handle_msg({"question": place, "answer": option})
    await until(lambda: upload._table.version > before)


def test_of_several_values_all_are_tasks_if_that_is_the_answer(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k + 5},{k * 7 % 13}.5,{k % 5}.5,{k % 7}.5\n" for k in range(20))

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"rates.csv": f"West,East,a,b,c\n{rows}".encode()}
        await until(lambda: upload._use.visible)
        options, taken = asked(upload)["mapping"]
        assert options[:3] == ["a", "b", "c"]
        assert taken == 0
        await answer(upload, 0, 3)
        assert asked(upload)["mapping"][1] == 3
        assert "20 rows, 5 columns" in upload._head.object
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        frame = kept(page)
        assert len(frame) == 60
        assert sorted(frame) == ["east_hi", "east_lo", "task", "y"]
        sums = frame.groupby("task")["y"].sum()
        assert sums.to_dict() == pytest.approx({
            "a": sum(k * 7 % 13 + 0.5 for k in range(20)),
            "b": sum(k % 5 + 0.5 for k in range(20)),
            "c": sum(k % 7 + 0.5 for k in range(20)),
        })  # fmt: skip

    on_the_page(tmp_path, "aggregation", act)


def test_codes_are_asked_about_once_and_left_as_numbers_only_if_that_is_said(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{k / 7},{-99 if k % 9 == 0 else k % 5},{k / 90}\n" for k in range(90))

    async def act(page: Any) -> None:
        upload = page.data.upload
        for option, gaps in ((0, 10), (1, 0)):
            upload._drop.value = {"mine.csv": f"u,g,z\n{rows}".encode()}
            await until(lambda: "missing_codes" in asked(upload))
            assert asked(upload)["missing_codes"][1] == 0
            await answer(upload, 0, option)
            assert [*asked(upload)] == ["missing_codes"]
            before = page.data.value
            upload._store()
            await until(lambda before=before: page.data.value != before)
            assert kept(page)["g"].isna().sum() == gaps

    on_the_page(tmp_path, "redshift", act)


def test_what_a_mark_separates_is_asked_and_holds_for_every_column(tmp_path: Path) -> None:
    rows = "".join(f"{1 + k % 9}.{100 + k};{2 + k % 7}.{200 + k};{k}\n" for k in range(90))

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"mine.csv": f"u;g;z\n{rows}".encode()}
        await until(lambda: "decimal" in asked(upload))
        for option in (1, 0):
            await answer(upload, 0, option)
            thousands = "thousands" in asked(upload)["decimal"][0][option]
            least = {c.name: c.minimum for c in upload._preview.columns}
            assert (least["u"] > 1000, least["g"] > 1000) == (thousands, thousands)

    on_the_page(tmp_path, "redshift", act)


def test_another_sheet_is_another_table(tmp_path: Path) -> None:
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as out:
        pd.DataFrame({"note": ["a", "b"]}).to_excel(out, sheet_name="Notes", index=False)
        values = {"u": range(90), "g": [k % 7 for k in range(90)], "z": [k / 9 for k in range(90)]}
        pd.DataFrame(values).to_excel(out, sheet_name="Data", index=False)

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"book.xlsx": book.read_bytes()}
        await until(lambda: "part" in asked(upload))
        assert asked(upload)["part"] == (["Notes", "Data"], 0)
        assert not upload._use.visible
        await answer(upload, 0, 1)
        assert asked(upload)["part"] == (["Notes", "Data"], 1)
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert len(kept(page)) == 90

    on_the_page(tmp_path, "redshift", act)


def test_columns_of_a_name_are_put_into_a_view(tmp_path: Path) -> None:
    rows = "".join(f"{k % 5},{k % 7},{k / 3},{k % 11},{'ab'[k % 2]}\n" for k in range(40))

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"v.csv": f"nir1,nir2,vis1,width,label\n{rows}".encode()}
        await until(lambda: upload._use.visible)
        assert "view.feature" in upload._table.more
        for part, view in (("nir", "infrared"), ("vis", "visible")):
            upload._table._handle_msg({"find": part})
            upload._table._handle_msg({"view": view})
        upload._table._handle_msg({"find": ""})
        upload._table._handle_msg({"column": "width", "role": "view:visible"})
        await until(lambda: upload._mapping.get("width") == "visible.width")
        await until(lambda: "=" not in {c["role"] for c in upload._table.columns})
        roles = {c["name"]: c["role"] for c in upload._table.columns}
        assert roles["nir2"] == "view:infrared"
        assert roles["width"] == "view:visible"
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert sorted(kept(page)) == [
            "infrared.nir1", "infrared.nir2", "label", "visible.vis1", "visible.width",
        ]  # fmt: skip

    on_the_page(tmp_path, "multiview", act)


CELLS = "area,perimeter,kind\n" + "".join(
    f"{k / 7},{k % 5},{'ab'[k % 3 == 0]}\n" for k in range(80)
)


def test_of_three_classes_one_is_asked_for_and_set(tmp_path: Path) -> None:
    rows = [f"{k % 5},{k % 7},{('red', 'blue', 'green', 'blue')[k % 4]}\n" for k in range(80)]
    two = [row.replace("green", "blue") for row in rows[:60]]

    async def act(page: Any) -> None:
        upload, widget = page.data.upload, page.form.widgets["positive_class"]
        upload._drop.value = {"three.csv": f"a.x,b.x,label\n{''.join(rows)}".encode()}
        await until(lambda: upload._use.visible)
        options, taken = asked(upload)["positive_class"]
        assert options == ["blue (40 rows)", "red (20 rows)", "green (20 rows)"]
        assert taken == 1  # the rarest
        assert "separates two" not in upload._message.object
        await answer(upload, [*asked(upload)].index("positive_class"), 2)
        assert asked(upload)["positive_class"][1] == 2
        assert widget.value == ""
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert widget.value == "green"
        three = page.data.value
        page.data.try_demonstration()
        assert widget.value == ""
        page.data.show(three)  # of a run, whose settings name its class
        assert widget.value == ""
        page.data.try_demonstration()
        page.data._choice.value = three
        assert widget.value == "green"
        upload._drop.value = {"two.csv": f"a.x,b.x,label\n{''.join(two)}".encode()}
        await until(lambda: upload._use.visible)
        assert "positive_class" not in asked(upload)
        assert not upload._preview.refusal  # although the form names another table's class
        upload._store()
        await until(lambda: page.data.value not in (three, "demo"))
        assert widget.value == ""

    on_the_page(tmp_path, "multiview", act)


def test_a_table_goes_to_the_page_that_it_suits_without_being_sent_again(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        upload, site = page.data.upload, page.visit.site
        content = CELLS.encode()
        memory = site.uploads.reserve(Client("", "anna"), len(content))
        upload._drop.handle(Received("cells.csv", content, memory))
        await until(lambda: "Open it on Mitosis" in upload._head.object)
        assert "This table suits Mitosis because" in upload._head.object
        secret = upload._offer
        assert f"href='./mitosis?file={secret}'" in upload._head.object
        with pytest.raises(NotFound):
            site.carried.take("bert", secret)

        visit = type(page.visit)(site, page.visit.doc, "anna", {"file": secret})
        other: Any = StudyPage(visit, entry("mitosis"), views)
        other.turn = lambda *acts: [one() for one in acts]
        await until(lambda: other.data.upload._use.visible)
        assert other.data.upload.dialog.open
        assert "cells.csv" in other.data.upload._head.object
        assert "Open it on" not in other.data.upload._head.object
        assert site.uploads.used == len(content)
        upload.dialog.open = False  # the page that it came from has nothing of it
        assert site.uploads.used == len(content)
        with pytest.raises(NotFound):
            site.carried.take("anna", secret)
        late: Any = StudyPage(visit, entry("mitosis"), views)
        assert not late.data.upload.dialog.open

    on_the_page(tmp_path, "redshift", act)


def test_images_go_to_a_page_of_images(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for k in range(6):
            archive.writestr(f"all/{'ab'[k % 2]}/{k}.png", b"")

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"cells.zip": made.getvalue()}
        await until(lambda: "Open it on Mitosis" in upload._head.object)
        assert "because it has images in 2 folders" in upload._head.object
        assert upload._head.visible
        assert not upload._use.visible

    on_the_page(tmp_path, "redshift", act)


def test_ends_of_intervals_and_files_of_an_archive_are_asked_about(tmp_path: Path) -> None:
    ages = "".join(f"{a}-{a + 4},{a % 7}.5\n" for a in (15, 30, 45, 60, 75))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("women.csv", f"age,rate\n{ages}")
        archive.writestr("men.csv", f"age,rate\n{ages}")

    async def act(page: Any) -> None:
        upload = page.data.upload
        upload._drop.value = {"both.zip": packed.getvalue()}
        await until(lambda: upload._use.visible)
        assert asked(upload)["part"][1] == 0  # both files are read
        options, taken = asked(upload)["closed"]
        assert options[taken] == "Yes: 15-19 reaches up to 20"
        assert "10 rows" in upload._head.object
        place = list(asked(upload)).index("closed")
        await answer(upload, place, 1)
        assert asked(upload)["closed"][1] == 1  # the question stays, and so does the other one
        assert asked(upload)["part"][1] == 0
        await answer(upload, 0, 2)
        assert "5 rows" in upload._head.object
        assert asked(upload)["closed"][1] == 0  # asked anew of the other table
        await answer(upload, 0, 0)
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        frame = kept(page)
        assert sorted(set(frame["task"])) == ["men", "women"]
        assert frame["age_hi"].tolist()[:2] == [20, 35]

    on_the_page(tmp_path, "aggregation", act)
