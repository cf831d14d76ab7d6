"""Tables of replicas: what a file may hold, the way to arrays and back, what is hidden of them."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.studies.genes.table import NEW, SPLITS, TABLE, held_out, hidden_rows, kept_share, of
from scant.tables.read import inspect_table, read_frame, read_table
from tests.paths import TEMPLATES

TEMPLATE = TEMPLATES / "genes.csv"
GOOD = pd.DataFrame(
    {
        "output": ["a", "a", "a", "a", "b", "b", "b"],
        "replica": ["r1", "r1", "r2", "r3", "r2", "r2", "r1"],
        "x": [0.0, 1.0, 0.5, 2.0, 0.0, 1.5, 3.0],
        "y": [1.0, 2.0, 1.5, 0.0, -1.0, 0.3, 0.4],
    }
)


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def broken(column: str, row: int, text: object) -> bytes:
    """The good table with one cell replaced; `row` as a spreadsheet counts."""
    cells = GOOD.assign(test="0").astype(object)
    cells.loc[row - 2, column] = text
    return csv(cells)


def refused(data: bytes, *message: str) -> None:
    """It is refused in one sentence that says all of this, and the wizard says the same."""
    with pytest.raises(BadInput) as caught:
        read_table(data, TABLE, name="mine.csv")
    for part in message:
        assert part in str(caught.value)
    assert inspect_table(data, TABLE, name="mine.csv").problems[0] in str(caught.value)


def test_a_file_becomes_arrays() -> None:
    result = of(read_table(csv(GOOD), TABLE).frame)
    assert result.outputs == ["a", "b"]
    assert result.replicas == [["r1", "r2", "r3"], ["r1", "r2"]]  # one order for all outputs
    assert result.samples == ["r1", "r2", "r3"]
    assert result.output.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert result.replica.tolist() == [0, 0, 1, 2, 1, 1, 0]
    assert not result.test.any()
    assert of(result.frame()).y.tolist() == GOOD["y"].tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(2, 6), st.integers(4, 40), st.integers(0, 10**6))
def test_round_trip(outputs: int, replicas: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "output": [f"o{d}" for d in rng.integers(outputs, size=rows)],
            "replica": [f"r{r}" for r in np.r_[0, 1, rng.integers(replicas, size=rows - 2)]],
            "x": rng.normal(size=rows) * 10.0 ** rng.integers(-3, 6),
            "y": np.r_[0.0, 1.0, rng.normal(size=rows - 2)],
            "test": rng.integers(2, size=rows),
        }
    )
    made = of(frame)
    again = of(read_table(csv(made.frame()), TABLE).frame)
    assert again.outputs == made.outputs
    assert again.replicas == made.replicas
    for name in ("output", "replica", "sample", "x", "y", "test"):
        np.testing.assert_array_equal(getattr(made, name), getattr(again, name), err_msg=name)


def test_a_table_to_predict() -> None:
    query = GOOD.drop(columns="y").assign(replica=["r1", "r2", "r9", "r3", "r3", "r2", "r1"])
    read = read_table(csv(query), TABLE, purpose="predict")
    result = of(read.frame, ["b", "a"], [["r1", "r2"], ["r1", "r2", "r3"]], rows=read.rows)
    assert result.output.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert result.replica.tolist() == [0, 1, NEW, 2, NEW, 1, 0]
    assert result.sample.tolist() == [0, 1, NEW, 2, 2, 1, 0]
    assert np.isnan(result.y).all()
    with pytest.raises(
        BadInput, match=r"column 'output', row 6: 'b' was not trained on; the out.*a"
    ):
        of(read.frame, ["a"], [["r1"]], rows=read.rows)


def test_the_template_can_be_fitted() -> None:
    table = read_table(TEMPLATE, TABLE)
    assert table.notes == ()
    result = of(table.frame)
    assert len(result.outputs) >= 3
    assert result.test.any()
    lengths = {
        (result.replica[result.output == 0] == r).sum() for r in range(len(result.replicas[0]))
    }
    assert len(lengths) > 1  # it shows that replicas may differ in length


def test_names_that_people_give() -> None:
    theirs = GOOD.rename(
        columns={"output": "gene", "replica": "Replicate", "x": "time_h", "y": "expression"}
    )
    assert of(read_table(csv(theirs), TABLE).frame).outputs == ["a", "b"]
    numbered = GOOD.assign(replica=[1, 1, 2, 3, 2, 2, 1])
    assert of(read_frame(numbered, TABLE).frame).samples == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("column", "row", "text", "said"),
    [
        ("x", 4, "noon", "'noon', which is not a number"),
        ("x", 3, "", "the cell is empty"),
        ("x", 3, "-inf", "infinite"),
        ("y", 5, "=cmd|' /C calc'!A0", "which is not a number"),
        ("y", 2, "1e999", "not a number; write finite numbers"),
        ("output", 6, "", "the cell is empty; name it"),
        ("replica", 7, "", "the cell is empty; name it"),
        ("test", 2, "maybe", "'maybe'; write 0 or 1"),
    ],
)
def test_a_bad_cell_is_named(column: str, row: int, text: object, said: str) -> None:
    refused(broken(column, row, text), f"mine.csv, column {column!r}, row {row}: ", said)


def test_files_that_cannot_be_fitted(tmp_path: Path) -> None:
    refused(b"", "mine.csv")
    refused(csv(GOOD[:0]), "mine.csv")
    refused(csv(GOOD[:3]), "3 usable rows and at least 4 are needed")
    refused(csv(GOOD.drop(columns="replica")), "no column 'replica'")
    refused(csv(GOOD.drop(columns="x")), "no column 'x'")
    refused(csv(GOOD.assign(replica="r1")), "'replica': only 1 different value, 'r1'; at least 2")
    refused(csv(GOOD.assign(y=0.5)), "'y': every value is 0.5; choose a target that varies")
    refused(csv(GOOD.assign(y="")), "'y': every cell is empty")
    refused(csv(GOOD.assign(x="")), "'x': every cell is empty")
    refused(("," * 25_000 + "\n" + "1," * 25_000 + "1\n").encode(), "25,001 columns", "25,000")
    refused(bytes(range(256)) * 40, "mine.csv")
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("../../etc/passwd", "x" * 100_000)
    refused(archive.getvalue(), "mine.csv")
    large = tmp_path / "mine.csv"
    with large.open("wb") as file:
        file.truncate(300_000_000)  # sparse: takes no room
    with pytest.raises(BadInput, match=r"mine\.csv has 300 MB and the limit is 200 MB"):
        read_table(large, TABLE)


def test_files_that_are_understood() -> None:
    plain = of(read_table(csv(GOOD), TABLE).frame)
    named = GOOD.assign(output=["Müllerin"] * 4 + ["b"] * 3)
    for data in (
        b"\xef\xbb\xbf" + csv(GOOD),
        GOOD.to_csv(index=False, sep=";").encode(),
        GOOD.to_csv(index=False, sep=";", decimal=",").encode(),
        GOOD.to_csv(index=False, sep="\t").encode("utf-16"),
    ):
        np.testing.assert_array_equal(of(read_table(data, TABLE).frame).y, plain.y)
    latin = of(read_table(named.to_csv(index=False).encode("latin-1"), TABLE).frame)
    assert latin.outputs == ["Müllerin", "b"]
    table = read_table(csv(pd.concat([GOOD, GOOD[:2]])), TABLE)
    assert any("2 rows repeat an earlier one, first row 9" in note for note in table.notes)
    evil = "<script>alert(1)</script>"
    left = read_table(csv(GOOD.assign(**{evil: 1.0, "=cmd": "x"})), TABLE)
    assert list(left.frame) == ["output", "replica", "x", "y"]
    assert set(left.ignored) == {evil, "=cmd"}
    gap = read_table(csv(GOOD.assign(y=[np.nan, *GOOD["y"][1:]])), TABLE)
    assert any("1 row without a value in 'y' was" in note for note in gap.notes)


def test_a_frame_that_no_reader_saw() -> None:
    with pytest.raises(BadInput, match="no column 'replica'"):
        of(GOOD.drop(columns="replica"))
    with pytest.raises(BadInput, match="column 'x', row 2: there is no finite number"):
        of(GOOD.assign(x=[0, 1, np.nan, 2, 3, 4, 5]))
    with pytest.raises(BadInput, match="column 'test', row 12: got 'x'; write 0 or 1"):
        of(GOOD.assign(test=[0, "1", "x", 0, 0, 0, None]), rows=range(10, 17))
    marked = of(GOOD.assign(test=[0.0, 1.0, None, 1.0, 0.0, 0.0, 0.0]))
    assert marked.test.tolist() == [False, True, False, True, False, False, False]


def table(outputs: int = 4, replicas: int = 3, points: int = 5) -> pd.DataFrame:
    d, r, n = (g.ravel() for g in np.mgrid[:outputs, :replicas, :points])
    y = np.random.default_rng(0).normal(size=len(d))
    return pd.DataFrame(
        {"output": [f"o{i}" for i in d], "replica": [f"r{i}" for i in r], "x": n * 1.0, "y": y}
    )


def test_what_is_held_out() -> None:
    data = of(table().assign(test=lambda t: (t["x"] == 0).astype(int)))
    assert held_out(data, "as marked").sum() == 12
    half = held_out(data, "half of the points")
    for d in range(4):
        for r in range(3):
            assert half[(data.output == d) & (data.replica == r)].sum() == 2
    one = held_out(data, "one replica of each output")
    for d in range(4):
        assert sorted(one[(data.output == d) & (data.replica == r)].sum() for r in range(3)) == [
            0,
            0,
            5,
        ]
    for split in SPLITS[1:]:
        np.testing.assert_array_equal(held_out(data, split, 3), held_out(data, split, 3))
        assert any((held_out(data, split, 3) != held_out(data, split, s)).any() for s in (4, 5))


def test_what_is_hidden() -> None:
    data = of(table())
    assert not hidden_rows(data, " ").any()
    one = hidden_rows(data, "o1/r2")
    assert set(zip(data.output[one], data.replica[one])) == {(1, 2)}
    assert one.sum() == 5
    all_outputs = hidden_rows(data, "*/r0, o3/r1")
    assert all_outputs.sum() == 4 * 5 + 5
    two = hidden_rows(data, "o2/*2", seed=1)
    assert (data.output[two] == 2).all()
    assert two.sum() == 10
    assert hidden_rows(data, "*/*1").sum() == 20


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("r2", "got 'r2'; write output/replica"),
        ("o9/r1", "there is no output 'o9'; there is o0, o1, o2, o3"),
        ("o1/r9", "o1 has no replica 'r9'; it has r0, r1, r2"),
        ("o1/*", "o1 has no replica '*'"),
        ("*/*3", "nothing of output 'o0' would be left to learn from"),
    ],
)
def test_what_cannot_be_hidden(hidden: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        hidden_rows(of(table()), hidden)
    assert said in str(caught.value)


def test_scarcity_is_nested_and_leaves_every_output_two_rows() -> None:
    data = of(table())
    train = data.x > 0
    few, more = kept_share(data, train, 0.1, seed=1), kept_share(data, train, 0.6, seed=1)
    assert (few <= more).all()
    assert (more <= train).all()
    assert [few[data.output == d].sum() for d in range(4)] == [2] * 4
    assert [more[data.output == d].sum() for d in range(4)] == [7] * 4
    np.testing.assert_array_equal(kept_share(data, train, 1.0), train)
