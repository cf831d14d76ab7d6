"""Whatever bytes, paths and settings come: a table, or one sentence, in little memory."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scant
from scant.data_sources.open import open_table, open_to_predict
from scant.errors import BadInput
from scant.events import Note, Progress
from scant.studies import entry
from scant.tables.encoding import regular
from scant.tables.images.archives import read_images
from scant.tables.read import inspect_table, read_frame, read_table
from scant.tables.sentinels import sentinels

SCHEMA = entry("redshift").table
CELLS = [
    "", "1", "-1.5", "1e308", "-1e308", "1e-320", "1e200", "nan", "inf", "abc", "=1+1", "1,5", '"',
    "'", "\x00", "é", "\U0001f52d", "1 000", "0x1F", "1_0", "٣", "1e5000", "9" * 400, "<b>", "\t",
    "2024-01-01", "true", "--", "−3", "\r", "\n", ";", "|",
]  # fmt: skip


def verdict(data: bytes) -> str:
    """What the reader says against some bytes; the wizard says the same."""
    preview = inspect_table(data, SCHEMA, name="mine.csv")
    if not preview.problems:
        read_table(data, SCHEMA, name="mine.csv")
        return ""
    with pytest.raises(BadInput) as caught:
        read_table(data, SCHEMA, name="mine.csv")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(lambda t: t.encode())))
def test_any_bytes_are_a_table_or_a_sentence(data: bytes) -> None:
    verdict(data)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["z", "g", "g_err", "r", "id", "", "g", "z "]), min_size=1, max_size=5
    ),
    st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=5), max_size=6),
    st.sampled_from([",", ";", "\t", "|", " "]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
)
def test_any_cells_are_a_table_or_a_sentence(
    header: list[str], rows: list[list[str]], delimiter: str, end: str, encoding: str
) -> None:
    text = end.join(delimiter.join(row) for row in [header, *rows])
    verdict(text.encode(encoding, errors="replace"))


def galaxies(**columns: list[str]) -> bytes:
    """Eighty ordinary rows, with the first cells of some columns replaced."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {c: [f"{v:.3f}" for v in rng.uniform(18, 24, 80)] for c in ("mag_u", "mag_g")}
        | {"z": [f"{v:.3f}" for v in rng.uniform(0.1, 1, 80)]}
    )
    for name, cells in columns.items():
        frame.loc[: len(cells) - 1, name] = cells
    return frame.to_csv(index=False).encode()


@pytest.mark.parametrize("cell", ["1e308", "-1e308", "1e200", "-2e100"])
@pytest.mark.parametrize("column", ["mag_u", "z"])
def test_numbers_that_cannot_be_computed_with(cell: str, column: str) -> None:
    message = verdict(galaxies(**{column: ["20", cell]}))
    assert f"column '{column}', row 3: got '{cell}', which is beyond 1e+100" in message
    frame = read_table(galaxies(), SCHEMA).frame
    frame.loc[1, column] = float(cell)
    with pytest.raises(BadInput, match=rf"'{column}', row 1.*beyond 1e\+100"):
        read_frame(frame, SCHEMA)


def test_a_column_of_subnormal_numbers_is_refused_and_one_such_cell_is_not() -> None:
    message = verdict(galaxies(mag_u=[f"{1 + i / 80}e-310" for i in range(80)]))
    assert "column 'mag_u': every value is closer to zero than 1e-100" in message
    assert verdict(galaxies(mag_u=["1e-320", "0"])) == ""


@pytest.mark.parametrize(
    "code", ["-9999", "-999", "-99", "99", "999", "9999", "-1", "1e20", "1e30"]
)
@pytest.mark.parametrize("count", [3, 20, 60])
def test_a_number_that_stands_for_nothing_is_named(code: str, count: int) -> None:
    data = galaxies(mag_u=[code] * count)
    (question,) = inspect_table(data, SCHEMA, name="mine.csv").questions
    assert question.about == "missing_codes"
    assert f"{float(code):g} is far" in question.text
    (note,) = [n for n in read_table(data, SCHEMA, name="mine.csv").notes if "not measured" in n]
    share = f"{100 * count / 80:.2g}%"
    for part in ("column 'mag_u'", f"{float(code):g} stands in {count} cells", "row 2", share):
        assert part in note


def test_ordinary_numbers_are_not_taken_for_nothing() -> None:
    rng = np.random.default_rng(1)
    ordinary = [
        rng.normal(0, 1, 500).round(0),  # -1 among others
        rng.poisson(3, 500).astype(float),
        np.r_[np.arange(120.0), 99, 99, 99],  # ages
        np.r_[rng.lognormal(0, 2, 500).round(0), 99, 99, 99],  # a long tail
        rng.choice([-1.0, 1.0], 200),
        rng.choice([-1.0, 0.0, 1.0, 2.0], 200),
        rng.uniform(-1e4, 1e4, 500).round(0),
        np.full(50, -999.0),
        np.full(5, np.nan),
    ]
    assert [sentinels(values) for values in ordinary] == [[]] * len(ordinary)


def test_what_the_reader_noted_is_said_by_the_fit(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    data = galaxies(mag_u=["-9999"] * 20).decode().splitlines()
    lines = [f"{line},{extra}" for line, extra in zip(data, ["same", *["1"] * 80])]
    file.write_text("\n".join(lines))

    def said(source: object) -> list[str]:
        events = takewhile(lambda e: not isinstance(e, Progress), scant.fit("redshift", source))
        return [e.text for e in events if isinstance(e, Note)]

    notes = said(file)
    assert any("'same': every value is 1; it was left out" in n for n in notes)
    assert any("'mag_u': -9999 stands in 20 cells, first in row 2 (25%" in n for n in notes)
    # A frame that was read from a file says the same, and does not say it twice.
    read = read_table(file, SCHEMA).frame
    assert said(read) == notes
    stored = tmp_path / "stored.parquet"
    read.to_parquet(stored)
    assert said(pd.read_parquet(stored)) == notes
    # A frame made by hand is read for the first time.
    by_hand = pd.read_csv(file)
    assert any("row 0 (25%" in n for n in said(by_hand))
    # So are rows to predict.
    table = entry("redshift")
    query = open_to_predict(table, file, table.settings())
    assert any("-9999 stands in 20 cells" in n for n in query.attrs["notes"])


# --- paths --------------------------------------------------------------------------------------


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "file").write_text("x")
    result = entry("redshift")
    for name, part in (
        ("pipe.csv", "pipe or a device"),
        ("zero.csv", "pipe or a device"),
        ("folder.csv", "is a folder"),
        ("loop.csv", "cannot be reached"),
        ("absent.csv", "no file absent"),
        ("absent.parquet", "no file absent"),
        ("file/x.csv", "no file x"),
        ("a\0b.csv", "is not a path of a file"),
        ("n" * 300 + ".csv", "cannot be reached"),
    ):
        path = Path(f"{tmp_path}/{name}")
        for read, given_to in (
            (regular, (path,)),
            (open_table, (result, path, result.settings())),
            (open_to_predict, (result, path, result.settings())),
            (read_images, (path,)),
        ):
            with pytest.raises(BadInput, match=part) as caught:
                read(*given_to)
            assert "\n" not in str(caught.value)


# --- size ---------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from pathlib import Path
from scant.studies import entry
from scant.tables.read import inspect_table
schema = entry("redshift").table
inspect_table(b"a,z\\n1,2\\n2,1\\n" * 100, schema)  # libraries are in
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
preview = inspect_table(Path(sys.argv[1]), schema)
assert preview.n_rows == 1_000_000, preview.problems
print(peak() - before)
"""


def test_memory_is_in_proportion_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_bytes(b"a,z\n" + b"1.2345,0.125\n3.25,0.5\n" * 500_000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(file)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16 * file.stat().st_size


def test_more_lines_than_any_study_fits_are_refused_before_they_are_read() -> None:
    for end in (b"\n", b"\r"):
        preview = inspect_table(b"a,b" + end + (b"1,2" + end) * 5_000_001, SCHEMA, name="mine.csv")
        assert preview.problems == (
            "mine.csv has 5,000,002 lines and the limit is 5,000,000; keep fewer rows.",
        )


def test_packed_rows_are_counted_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scant.tables.formats import registry

    file = tmp_path / "mine.parquet"
    pd.DataFrame({"g": np.zeros(2000), "z": np.zeros(2000)}).to_parquet(file)
    monkeypatch.setattr(registry, "MAX_LINES", 1000)
    result = entry("redshift")
    with pytest.raises(BadInput, match=r"2,000 rows and the limit is 1,000"):
        open_table(result, file, result.settings())


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("study", "name", "value"),
    [
        (study, name, value)
        for study, name in (("redshift", "n_basis"), ("genes", "keep"), ("genes", "learning_rate"))
        for value in ("nan", "inf", "-inf", "1e999", "", " ", "x", "-1", "1e300", "9" * 5000, "½",
                      math.nan, math.inf, -1, 10**30, None, [], {}, True)
    ]
    + [
        ("genes", "hidden", "x" * 10_001),
        ("genes", "hidden", "a\0b"),
        ("genes", "hidden", None),
        ("genes", "model", "nope"),
        ("genes", "baselines", "perhaps"),
        ("genes", "speed" * 1000, "1"),
        ("genes", "", "1"),
        ("genes", "näme", "1"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(study: str, name: str, value: object) -> None:
    with pytest.raises(BadInput) as caught:
        entry(study).settings.parse({name: value})
    message = str(caught.value)
    assert name[:20] in message
    assert len(message) < 1000
    assert "\n" not in message
