"""Tables as guests brought them: what is said before a fit, and not by a run that fails."""

from __future__ import annotations

import io
import zipfile

import pytest

from scant.errors import BadInput
from scant.studies.mitosis.table import TABLE as CELLS
from scant.studies.multiview.table import TABLE as VIEWS
from scant.tables.images.image_table import is_archive
from scant.tables.read import inspect_table, read_table


def table(names: str, label: str, other: str) -> bytes:
    rows = "".join(f"{label if i % 3 else other},{i},{i % 7}\n" for i in range(30))
    return f"{names}\n{rows}".encode()


def test_a_table_of_views_says_what_is_learnt_before_the_fit() -> None:
    brought = table("what,where,sound.a,sound.b", "fire,east", "quiet,west")
    with pytest.raises(BadInput, match="none of the columns label, y and time"):
        read_table(brought, VIEWS)
    (question,) = inspect_table(brought, VIEWS, name="views.csv").questions
    assert (question.column, [o for o, _ in question.options]) == (
        "label",
        ["what", "where", "sound.b"],
    )
    mapped = {"what": "label"}
    assert not inspect_table(brought, VIEWS, mapping=mapped).problems
    read_table(brought, VIEWS, purpose="predict")  # where nothing is learned, nothing is asked


def test_a_class_that_is_called_none_is_named() -> None:
    brought = table("label,a,b", "fire", "None")
    with pytest.raises(BadInput, match=r"'fire' \('None' was read as an empty cell\)"):
        read_table(brought, VIEWS)
    three = brought + b"smoke,1,2\n" * 9
    notes = read_table(three, CELLS).notes
    assert any("'None' was read as an empty cell" in note for note in notes)
    plain = read_table(three.replace(b"None", b""), CELLS).notes
    assert not any("read as an empty cell" in note for note in plain)


def test_a_workbook_under_another_name_is_no_archive_of_images() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    assert not is_archive("cells.csv", file.getvalue())
    (message,) = inspect_table(file.getvalue(), CELLS, name="cells.csv").problems
    assert "Excel workbook" in message
