"""Tables of replicas: what a file may hold, the way to arrays and back, what is hidden of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.studies.genes.table import NEW, SPLITS, TABLE, held_out, hidden_rows, kept_share, of
from scant.tables.read import read_table
from tests.engine.files import csv

GOOD = pd.DataFrame(
    {
        "output": ["a", "a", "a", "a", "b", "b", "b"],
        "replica": ["r1", "r1", "r2", "r3", "r2", "r2", "r1"],
        "x": [0.0, 1.0, 0.5, 2.0, 0.0, 1.5, 3.0],
        "y": [1.0, 2.0, 1.5, 0.0, -1.0, 0.3, 0.4],
    }
)


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
        BadInput,
        match=r"column 'output', row 6: the model was not trained on 'b'; its outputs are a",
    ):
        of(read.frame, ["a"], [["r1"]], rows=read.rows)


def test_a_frame_that_no_reader_saw() -> None:
    with pytest.raises(BadInput, match="no column 'replica'"):
        of(GOOD.drop(columns="replica"))
    with pytest.raises(BadInput, match="column 'x', row 2: the cell has no finite number"):
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
        ("o9/r1", "there is no output 'o9'; the outputs are o0, o1, o2, o3"),
        ("o1/r9", "o1 has no replica 'r9'; it has r0, r1, r2"),
        ("o1/*", "o1 has no replica '*'"),
        ("*/*3", "output 'o0' would have no rows left to learn from"),
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
