"""The list "Bad input" of DESIGN.md on every page: one sentence, from wizard and command alike.

`taken` and `refused` go through `inspect_table`, which the upload wizard calls, and `open_table`,
which the command line and the workers call; the files are each page's own template, spoilt.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.data_sources.open import open_table
from scant.errors import BadInput
from scant.studies import STUDIES, entry
from scant.tables.images.image_table import read_image_table
from scant.tables.pieces import pieces
from scant.tables.read import inspect_table, read_table
from scant.tables.schema import Preview
from scant.training.api import fit
from tests.engine.files import csv, packed
from tests.paths import TEMPLATES

# A column of numbers that the page learns from, and the column that it learns.
NUMBERS = {"aggregation": "age_lo", "redshift": "mag_g", "genes": "x"}
TARGET = {"aggregation": "y", "redshift": "z", "genes": "y", "multiview": "time"}
IMAGES = [study for study in STUDIES if entry(study).table.images]

every_study = pytest.mark.parametrize("study", STUDIES)
# What is said of a file before its columns are looked at is the same for every table, but for those
# that may come as archives of images.
each_kind_of_file = pytest.mark.parametrize("study", ["redshift", "mitosis"])


@cache
def _template(study: str) -> pd.DataFrame:
    return pd.read_csv(TEMPLATES / f"{study}.csv", dtype=object, keep_default_na=False)


def template(study: str) -> pd.DataFrame:
    """As text, with a few of the features where those are pixels."""
    return _template(study).iloc[:, :12].copy()


def number(study: str) -> str:
    """A column of numbers in the template."""
    own, frame = {c.name for c in entry(study).table.columns}, template(study)
    return NUMBERS.get(study) or next(
        c for c in frame if c not in own and pd.to_numeric(frame[c], errors="coerce").notna().all()
    )


def target_column(study: str) -> str:
    return TARGET.get(study, "label")


def spoilt(study: str, column: str, text: str) -> bytes:
    """The template with one cell of row 5 replaced."""
    frame = template(study)
    if column in ("time", "event", "patient"):
        each = [str(i + 1) for i in range(len(frame))]
        frame = frame.drop(columns=["label", "group"]).assign(time=each, event="1", patient=each)
    frame[column] = frame.get(column, {"split": "train", "test": "0"}.get(column, "0.5"))
    frame.loc[3, column] = text
    return csv(frame)


def seen(data: bytes, study: str) -> Preview:
    target = "z" if study == "redshift" else None
    return inspect_table(data, entry(study).table, name="mine.csv", target=target)


def opened(data: bytes, study: str, folder: Path) -> pd.DataFrame:
    file = folder / "mine.csv"
    file.write_bytes(data)
    result = entry(study)
    return open_table(result, file, result.settings())


def refused(data: bytes, study: str, folder: Path, *parts: str) -> None:
    """One sentence with these words, the same from both."""
    with pytest.raises(BadInput) as caught:
        opened(data, study, folder)
    message = str(caught.value)
    assert "\n" not in message
    for word in ("mine.csv", *parts):
        assert word in message, message
    assert seen(data, study).problems[0] in message


def taken(data: bytes, study: str, folder: Path, *noted: str) -> pd.DataFrame:
    """Read by both, with notes that have these words."""
    preview = seen(data, study)
    assert not preview.problems, preview.problems
    for part in noted:
        assert any(part in note for note in preview.warnings), preview.warnings
    return opened(data, study, folder)


@every_study
def test_the_template_itself(study: str, tmp_path: Path) -> None:
    assert len(taken(csv(template(study)), study, tmp_path)) == len(template(study))
    file = TEMPLATES / f"{study}.csv"
    assert read_table(file, entry(study).table).notes == ()
    assert {"train", "pool"} & set(fit(study, file, device="cpu").study.roles)


RENAMED = {
    "aggregation": {"task": "Sensor", "y": "mean"},
    "redshift": {"z": "Z_spec", "mag_g_err": "sigma_mag_g"},
    "genes": {"output": "gene", "replica": "Replicate", "x": "time_h", "y": "expression"},
    "omniglot": {"output": "Alphabet", "label": "character"},
    "mitosis": {"label": "Diagnosis", "group": "Slide"},
    "multiview": {"label": "class"},
}


@pytest.mark.parametrize("study", RENAMED)
def test_names_that_people_give(study: str, tmp_path: Path) -> None:
    theirs = template(study).rename(columns=RENAMED[study])
    whole = opened(csv(template(study)), study, tmp_path)
    pd.testing.assert_frame_equal(taken(csv(theirs), study, tmp_path), whole, check_like=True)


@each_kind_of_file
@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_empty(study: str, data: bytes, tmp_path: Path) -> None:
    refused(data, study, tmp_path, "empty")


@every_study
def test_header_only(study: str, tmp_path: Path) -> None:
    refused(csv(template(study)[:0]), study, tmp_path, "no rows")


@every_study
def test_wrong_delimiter(study: str, tmp_path: Path) -> None:
    whole = opened(csv(template(study)), study, tmp_path)
    other = taken(csv(template(study), sep=";"), study, tmp_path, "separated by semicolons")
    pd.testing.assert_frame_equal(other, whole)
    refused(csv(template(study), sep="~"), study, tmp_path)


@each_kind_of_file
@pytest.mark.parametrize(
    "encoding",
    ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_encodings(study: str, encoding: str, tmp_path: Path) -> None:
    whole = opened(csv(template(study)), study, tmp_path)
    text = template(study).to_csv(index=False, sep="\t").encode(encoding)
    pd.testing.assert_frame_equal(taken(text, study, tmp_path), whole)
    (tmp_path / "new.csv").write_bytes(text)
    _, read = pieces(tmp_path / "new.csv", 20_000)  # as rows to predict are read
    assert sum(len(piece.frame) for piece in read) == len(whole)


@each_kind_of_file
def test_latin_1(study: str, tmp_path: Path) -> None:
    data = template(study).assign(größe="ß").to_csv(index=False).encode("latin-1")
    taken(data, study, tmp_path, "Latin-1")


@every_study
def test_too_many_columns(study: str, tmp_path: Path) -> None:
    head = ",".join(f"c{i}" for i in range(25_001)).encode()
    row = b",".join([b"1.5"] * 25_001)
    refused(b"\n".join([head, row, row]), study, tmp_path, "25,001 columns")


@every_study
@pytest.mark.parametrize(
    "word", ["12,3O", "1e999", "-inf", "1_000", "@SUM(A1)", "=cmd|' /C calc'!A0", "<b>3</b>"]
)
def test_cells_that_are_no_finite_numbers(study: str, word: str, tmp_path: Path) -> None:
    refused(spoilt(study, number(study), word), study, tmp_path, number(study), "row 5", word[:9])


@pytest.mark.parametrize(
    ("study", "column", "text", "said"),
    [
        ("aggregation", "age_hi", "14", "14 is below age_lo = "),
        ("aggregation", "y", "=cmd", "'=cmd', which is not a number"),
        ("aggregation", "y_err", "0", "got 0, but values must be above zero; correct it or leave"),
        ("aggregation", "exposure", "-3", "got -3, but values must be above zero"),
        ("aggregation", "split", "maybe", "'maybe'; write train or validation or test"),
        ("aggregation", "task", "", "the cell is empty; name it"),
        ("redshift", "mag_r_err", "-0.1", "above zero"),
        ("redshift", "z", "0.3?", "which is not a number"),
        ("genes", "x", "", "the cell is empty"),
        ("genes", "y", "1e999", "not a number; write finite numbers"),
        ("genes", "output", "", "the cell is empty; name it"),
        ("genes", "replica", "", "the cell is empty; name it"),
        ("genes", "test", "maybe", "'maybe'; write 0 or 1"),
        ("omniglot", "output", "", "the cell is empty; name it"),
        ("omniglot", "p4", "", "the cell is empty"),
        ("mitosis", "group", "", "the cell is empty; name it"),
        ("multiview", "group", "", "the cell is empty; name it"),
        ("multiview", "intensity.f009", "", "the cell is empty"),
        ("multiview", "time", "-2", "must be above zero"),
        ("multiview", "event", "maybe", "'maybe'; write 0 or 1"),
        ("multiview", "patient", "", "the cell is empty; name it"),
    ],
)
def test_a_bad_cell_is_named(study: str, column: str, text: str, said: str, tmp_path: Path) -> None:
    refused(spoilt(study, column, text), study, tmp_path, f"column {column!r}, row 5: ", said)


@every_study
def test_too_few_rows(study: str, tmp_path: Path) -> None:
    frame = template(study)
    some = frame.drop_duplicates(entry(study).table.columns[0].name).head(2)
    with pytest.raises(BadInput, match=r"too few usable rows|only 1 different value"):
        opened(csv(some), study, tmp_path)


LACKING = {"aggregation": "age_hi", "redshift": "z", "genes": "replica", "omniglot": "label",
           "mitosis": "label", "multiview": "label"}  # fmt: skip


@pytest.mark.parametrize("study", LACKING)
def test_a_column_that_is_lacking(study: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no column '|none of the columns"):
        opened(csv(template(study).drop(columns=LACKING[study])), study, tmp_path)


@pytest.mark.parametrize("study", [s for s in LACKING if s != "multiview"])
def test_rows_without_a_target_are_left_out(study: str, tmp_path: Path) -> None:
    frame = template(study)
    frame.loc[[3, 5], target_column(study)] = ""
    said = f"2 rows without a value in {target_column(study)!r} were left out, the first in row 5"
    assert len(taken(csv(frame), study, tmp_path, said)) == len(frame) - 2


@every_study
def test_constant_columns(study: str, tmp_path: Path) -> None:
    schema = entry(study).table
    data = csv(template(study).assign(same="1"))
    if not schema.features:
        taken(data, study, tmp_path, "not used: same")
    elif schema.boxes:  # of what is measured beside the value nothing is learned
        assert "same" not in taken(data, study, tmp_path)
    elif schema.images and not schema.views:  # a pixel may be the same everywhere
        assert "same" in taken(data, study, tmp_path)
    else:
        assert "same" not in taken(data, study, tmp_path, "every value is 1; it was left out")


@every_study
def test_duplicate_rows(study: str, tmp_path: Path) -> None:
    frame = template(study)
    taken(csv(pd.concat([frame, frame[:2]])), study, tmp_path, "rows that repeat")


@every_study
def test_one_value_or_one_class_only(study: str, tmp_path: Path) -> None:
    # Beside classes a time is not learned.
    column = "label" if study == "multiview" else target_column(study)
    data = csv(template(study).assign(**{column: "3"}))
    if study == "clamp":  # a pool may begin with one class, or none; the study says what it lacks
        with pytest.raises(BadInput, match=r"class|label"):
            fit("clamp", opened(data, study, tmp_path), device="cpu", expert="simulated")
    else:
        refused(data, study, tmp_path, repr(column))


@every_study
def test_one_replica_only(study: str, tmp_path: Path) -> None:
    data = csv(template(study).assign(replica="1"))
    if study == "genes":
        refused(data, study, tmp_path, "'replica'", "only 1 different value")
    else:  # a column like any other
        taken(data, study, tmp_path)


@every_study
def test_all_values_missing(study: str, tmp_path: Path) -> None:
    data = csv(template(study).assign(**{number(study): ""}))
    if study in ("genes", "aggregation"):  # what every row needs
        refused(data, study, tmp_path)
    else:
        taken(data, study, tmp_path, "every cell is empty")
    own, nothing = {c.name for c in entry(study).table.columns}, template(study)
    nothing[[c for c in nothing if c not in own]] = ""
    if entry(study).table.features:
        refused(csv(nothing), study, tmp_path)


@every_study
def test_boxes_upside_down(study: str, tmp_path: Path) -> None:
    frame = template(study).assign(t_lo="2", t_hi="3")
    frame.loc[3, "t_hi"] = "1"
    if entry(study).table.boxes:
        refused(csv(frame), study, tmp_path, "'t_hi', row 5", "below t_lo")
    else:
        taken(csv(frame), study, tmp_path)


@every_study
def test_markup_in_a_name_is_a_name(study: str, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    rng = np.random.default_rng(0)
    frame = template(study)
    frame[evil] = rng.normal(size=len(frame)).round(3).astype(str)
    read = taken(csv(frame), study, tmp_path)
    assert (evil in read) == entry(study).table.features


@each_kind_of_file
def test_three_hundred_megabytes(study: str, tmp_path: Path) -> None:
    large = tmp_path / "mine.csv"
    with large.open("wb") as out:
        out.truncate(300_000_000)  # sparse: takes no room
    result = entry(study)
    with pytest.raises(BadInput, match=r"mine\.csv has 300 MB and the limit is 200 MB"):
        open_table(result, large, result.settings())


@each_kind_of_file
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG image"),
        (b"%PDF-1.7" + bytes(50), "PDF"),
        (packed({"xl/workbook.xml": b"x"}), "Excel workbook"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b'[{"u": 1, "z": 2}]', "JSON, but not one object per line"),
        (np.random.default_rng(0).bytes(5000), "binary"),
    ],
)
def test_no_csv_at_all(study: str, data: bytes, kind: str, tmp_path: Path) -> None:
    refused(data, study, tmp_path, kind)


@every_study
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a/b/c.png", bytes(20_000_000), "times its size"),
        ("../../a/b.png", b"x", "leads out of the archive"),
        ("/etc/a/b.png", b"x", "leads out of the archive"),
        ("a/b/readme.md", b"x", "no images"),
        ("a/b/c.png", b"no image", "not an image that can be read"),
    ],
)
def test_archives_that_do_harm(
    study: str, name: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    data, result = packed({name: content}), entry(study)
    if study not in IMAGES:
        refused(data, study, tmp_path, "ZIP archive")
        return
    file = tmp_path / "mine.zip"
    file.write_bytes(data)
    with pytest.raises(BadInput, match=sentence) as caught:
        open_table(result, file, result.settings())
    assert "mine.zip" in str(caught.value)
    with pytest.raises(BadInput, match=sentence):
        read_image_table(data, result.table, name="mine.zip")  # as the wizard does
