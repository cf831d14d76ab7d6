"""Files as analysts have them: names, units, padding and words that nobody agreed upon."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies import entry
from scant.studies.mitosis.table import TABLE as CELLS
from scant.studies.multiview.table import TABLE as VIEWS
from scant.tables.images.image_table import is_archive
from scant.tables.read import inspect_table, read_table
from tests.engine.files import csv

ROWS = 40


def columns(*names: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.normal(size=ROWS).round(4) for name in names})


def test_units_are_no_part_of_a_name() -> None:
    names = ("flux u [mJy]", "flux u err [mJy]", "i [mag]", "sigma_i", "Redshift (spec)")
    preview = inspect_table(csv(columns(*names).abs() + 1), entry("redshift").table)
    assert dict(preview.mapping) == {
        "flux u [mJy]": "flux u [mJy]",
        "flux u err [mJy]": "flux u [mJy]_err",
        "i [mag]": "i [mag]",
        "sigma_i": "i [mag]_err",
        "Redshift (spec)": "z",
    }
    assert preview.features == ("flux u [mJy]", "i [mag]")


def test_a_needed_column_is_known_by_a_word_of_its_name() -> None:
    frame = columns("time [h]", "log2 expression (a.u.)")
    frame["Gene symbol"], frame["Embryo Nr."] = "TP53", [1, 2] * (ROWS // 2)
    read = read_table(csv(frame.assign(remark="none")), entry("genes").table)
    assert set(read.frame) == {"output", "replica", "x", "y"}
    assert any("not used: remark" in note for note in read.notes)


def test_the_ends_of_boxes_have_many_names() -> None:
    frame = columns("PM2.5 mean").assign(
        station="roof", **{"time_start [h]": 0.0, "time_end [h]": 2.0, "from": 1, "to": 2}
    )
    read = read_table(csv(frame), entry("aggregation").table)
    assert {"time [h]_lo", "time [h]_hi", "x_lo", "x_hi"} <= set(read.frame)
    dotted = columns("y").assign(task="a", **{"pm2.5_lo": 0.0, "pm2.5_hi": 1.0})
    assert "pm2.5_lo" in read_table(csv(dotted), entry("aggregation").table).frame


def test_known_noise_is_kept_out_of_the_inputs() -> None:
    frame = columns("y", "t").assign(task="a", **{"std [µg/m³]": 0.3})
    read = read_table(csv(frame), entry("aggregation").table)
    assert read.features == ("t",)
    assert (read.frame["y_err"] == 0.3).all()


def test_alive_and_dead_are_understood_and_an_unknown_word_is_not() -> None:
    frame = columns("BMI (kg/m²)").assign(survival_months=np.arange(ROWS) + 1.0)
    frame["vital status"] = ["dead", "Alive"] * (ROWS // 2)
    read = read_table(csv(frame), entry("multiview").table)
    assert read.frame["event"].tolist() == ["1", "0"] * (ROWS // 2)
    assert any("'Alive' was read as 0 and 'dead' was read as 1" in n for n in read.notes)
    frame.loc[3, "vital status"] = "moved"
    with pytest.raises(BadInput, match=r"'vital status', row 5: got 'moved'; write 0 or 1"):
        read_table(csv(frame), entry("multiview").table)
    floats = frame.assign(**{"vital status": [1.0, np.nan] * (ROWS // 2)})  # as pandas writes gaps
    assert read_table(csv(floats), entry("multiview").table).frame["event"].dropna().unique() == [
        "1"
    ]


def test_all_columns_that_are_not_there_are_one_sentence_without_an_empty_setting() -> None:
    preview = inspect_table(csv(columns("a", "b")), entry("genes").table, name="mine.csv")
    assert preview.absent == ("replica",)
    assert [(q.column, q.guess) for q in preview.questions] == [("x", "a"), ("y", "b")]
    with pytest.raises(BadInput) as caught:
        read_table(csv(columns("a", "b")), entry("genes").table, name="mine.csv")
    assert str(caught.value).startswith(
        "mine.csv has no columns 'replica', 'x' and 'y'; it has a, b: rename the right ones "
        "('a' may be 'x'; 'b' may be 'y')."
    )
    with pytest.raises(BadInput, match=r"in the setting 'target' \('b' may be 'z'\)"):
        read_table(csv(columns("a", "b")), entry("redshift").table, name="mine.csv")


def test_a_bad_cell_is_named_by_the_header_of_the_file() -> None:
    frame = columns("i [mag]", "i_err [mag]", "z").abs().astype(object)
    frame.loc[7, "i_err [mag]"] = "12,3O"
    with pytest.raises(BadInput, match=r"column 'i_err \[mag\]', row 9: got '12,3O'"):
        read_table(csv(frame), entry("redshift").table)


def test_dates_and_identifiers_are_left_out_and_dates_are_called_dates() -> None:
    frame = columns("Diagnosis", "radius [µm]").assign(patch_id=range(ROWS), day="12/03/1994")
    frame["Diagnosis"] = ["M", "B"] * (ROWS // 2)
    read = read_table(csv(frame), entry("mitosis").table)
    assert read.features == ("radius [µm]",)
    assert any("'day': it holds dates" in note for note in read.notes)
    boxed = columns("y").assign(task="a", t_lo="2024-01-01", t_hi="2024-01-02 06:00")
    days = read_table(csv(boxed), entry("aggregation").table).frame[["t_lo", "t_hi"]]
    assert days.iloc[0].tolist() == [19723.0, 19724.25]  # since 1970-01-01
    dated = columns("z", "u").assign(z="2024-01-01")
    with pytest.raises(BadInput, match=r"which is a date .*; write a number for it, such as"):
        read_table(csv(dated), entry("redshift").table)


def test_padding_rows_are_passed_over_and_rows_keep_their_numbers() -> None:
    lines = csv(columns("y", "t").assign(task="a")).decode().splitlines()
    lines[3:3] = [",", '"",', ""]
    lines[30] = lines[30].rpartition(",")[0].rpartition(",")[0] + ",oops,a"
    text = "\n".join([*lines, ",", ""]).encode()
    with pytest.raises(BadInput, match="row 31: got 'oops'"):
        read_table(text, entry("aggregation").table)


def test_a_pool_without_labels_says_who_must_label() -> None:
    for frame in (columns("a", "b"), columns("a", "b").assign(label="")):
        notes = read_table(csv(frame), entry("clamp").table).notes
        assert any("nobody has labeled a row yet" in note for note in notes)


def test_a_file_to_predict_may_have_comments_and_dates() -> None:
    frame = columns("a", "b").assign(comment="seen, twice", day="12/03/1994")
    query = read_table(csv(frame), entry("mitosis").table, purpose="predict")
    assert list(query.frame) == ["a", "b"]
    trained = {"purpose": "predict", "features": ["a", "comment"]}
    with pytest.raises(BadInput, match="'comment', row 2: got 'seen, twice'"):
        read_table(csv(frame), entry("mitosis").table, **trained)


def suggested(study: str, head: str, *rows: str) -> dict[str, str]:
    text = "\n".join([head, *rows]).encode()
    return dict(inspect_table(text, entry(study).table).mapping)


def test_the_only_column_of_words_is_the_label_that_is_wanting() -> None:
    rows = [f"{'fine' if i % 3 else 'broken'},{i % 7}.5,{i}" for i in range(30)]
    for study in ("clamp", "mitosis", "multiview"):
        assert suggested(study, "verdict,a.f1,b.f1", *rows)["verdict"] == "label"
    # Where classes are known, or values, words are something else.
    assert suggested("clamp", "verdict,label,f", *rows)["verdict"] == "verdict"
    assert suggested("multiview", "ward,y,a.f1", *rows)["ward"] == "ward"
    assert suggested("clamp", "id,a.f1,b.f1", *rows)["id"] == ""


def test_a_label_that_need_not_be_is_not_guessed_of_many_words() -> None:
    rows = [f"place {i % 5},{i}.5,{i % 7}" for i in range(40)]
    assert suggested("clamp", "site,a.f1,b.f1", *rows)["site"] == "site"
    assert suggested("multiview", "outcome,a.f1,b.f1", *rows)["outcome"] == "label"
    names = [f"place {i},{i}.5,{i % 7}" for i in range(40)]
    assert suggested("multiview", "outcome,a.f1,b.f1", *names)["outcome"] == "outcome"
    both = [f"w{i % 2},v{i % 2},{i}.5" for i in range(40)]
    with pytest.raises(BadInput, match="none of the columns label, y and time"):
        read_table("\n".join(["one,other,a.f1", *both]).encode(), entry("multiview").table)


def test_what_is_left_beside_boxes_is_task_and_value() -> None:
    rows = [f"{'North' if i % 2 else 'South'},{i},{i + 1},{i * 0.3:.1f}" for i in range(30)]
    result = suggested("aggregation", "Region,age from (years),age to (years),births", *rows)
    assert (result["Region"], result["births"]) == ("task", "y")
    table = read_table(
        "\n".join(["Region,age from,age to,births", *rows]).encode(), entry("aggregation").table
    )
    assert {"task", "y", "age_lo", "age_hi"} <= set(table.frame.columns)
    assert any("'births': used as 'y'" in note for note in table.notes)
    days = [row.replace("North", "2024-05-01").replace("South", "2024-05-02") for row in rows]
    assert suggested("aggregation", "day,age from,age to,births", *days)["day"] == "day"
    gap = [f"{row}," for row in rows]
    gaps = suggested("aggregation", "Region,age from,age to,births,remark", *gap)
    assert (gaps["births"], gaps["remark"]) == ("y", "remark")
    points = suggested("aggregation", "Region,lat,lon,births", *rows)
    assert points == {"Region": "task", "lat": "lat", "lon": "lon", "births": "y"}


def test_a_table_to_predict_is_asked_for_no_label() -> None:
    rows = [f"{'fine' if i % 3 else 'broken'},{i % 7}.5,{i}" for i in range(30)]
    text = "\n".join(["verdict,a.f1,b.f1", *rows]).encode()
    table = read_table(text, entry("clamp").table, purpose="predict", features=["a.f1", "b.f1"])
    assert "label" not in table.frame


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
