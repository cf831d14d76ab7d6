"""Tables of boxes: what a file may hold, arrays of a file, averages over larger boxes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.studies.aggregation.likelihoods import check_values
from scant.studies.aggregation.supports import Supports
from scant.studies.aggregation.table import TABLE, of
from scant.studies.aggregation.thinning import coarsen, scarce, thinned
from scant.tables.read import read_frame, read_table
from tests.engine.files import csv

GOOD = pd.DataFrame(
    {
        "task": ["fine", "fine", "coarse", "coarse"],
        "age_lo": [15.0, 16.0, 15.0, 20.0],
        "age_hi": [16.0, 17.0, 20.0, 25.0],
        "year_lo": [1944.0] * 4,
        "year_hi": [1945.0, 1945.0, 1949.0, 1949.0],
        "y": [0.1, 0.25, 0.3, 0.4],
    }
)


def same(one: Supports, other: Supports) -> None:
    assert one.tasks == other.tasks
    assert one.dims == other.dims
    for name in ("task", "lo", "hi", "y", "y_err", "exposure", "truth", "test"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_file_becomes_arrays() -> None:
    result = of(read_table(csv(GOOD), TABLE).frame)
    assert result.tasks == ("fine", "coarse")
    assert result.dims == ("age", "year")
    assert result.task.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(result.lo[:, 1], 1944)  # a bound that is constant is kept
    np.testing.assert_array_equal(result.width[2], [5, 5])
    assert np.isnan(result.y_err).all()
    assert (result.exposure == 1).all()
    assert not result.test.any()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(4, 12), st.randoms(use_true_random=False))
def test_round_trip(d: int, n: int, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))
    lo = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 6, d)
    width = rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = rng.normal(size=n)
    some = rng.random(n) < 0.5
    made = Supports(
        tasks=("b", "a"),
        dims=tuple("xyz_"[i] + "dim" for i in range(d)),
        task=np.r_[0, 1, rng.integers(0, 2, n - 2)],
        lo=lo,
        hi=lo + width,
        y=y,
        y_err=np.where(some, rng.exponential(size=n) + 1e-9, np.nan),
        exposure=np.where(some, 1.0, rng.exponential(size=n) + 1e-9),
        truth=np.where(some, y, np.nan),
        test=rng.random(n) < 0.3,
    )
    frame = pd.DataFrame(
        {name: getattr(made, name) for name in ("y", "y_err", "exposure", "truth")}
    )
    frame["task"] = np.array(made.tasks)[made.task]
    frame["split"] = np.where(made.test, "test", "train")
    for k, dim in enumerate(made.dims):
        frame[f"{dim}_lo"], frame[f"{dim}_hi"] = made.lo[:, k], made.hi[:, k]
    same(made, of(read_table(csv(frame), TABLE).frame))


def test_points_and_boxes() -> None:
    points = pd.DataFrame({"task": ["a"] * 4, "t": [0.0, 1, 2, 3], "y": [1.0, 2, 3, 5]})
    result = of(read_frame(points, TABLE).frame)
    assert result.dims == ("t",)
    assert (result.width == 0).all()
    mixed = of(points.rename(columns={"t": "t_lo"}).assign(t_hi=[0.0, 1, 2.5, 3]))
    assert (mixed.width[:, 0] > 0).tolist() == [False, False, True, False]
    # What was trained on boxes can be asked at points, and the order of dimensions is the model's.
    query = pd.DataFrame({"task": ["fine"], "year": [1950.0], "age_lo": [20.0], "age_hi": [30.0]})
    read = read_table(csv(query), TABLE, purpose="predict").frame
    wanted = of(read, dims=("age", "year"), tasks=("fine", "coarse"))
    assert wanted.lo.tolist() == [[20, 1950]]
    assert wanted.hi.tolist() == [[30, 1950]]
    assert np.isnan(wanted.y).all()


def test_rows_with_gaps_are_left_out_with_a_note() -> None:
    more = pd.concat([GOOD, GOOD.assign(age_hi=[16.0, 17.0, None, 25.0], y=[None, 1.0, 2.0, 3.0])])
    table = read_table(csv(more), TABLE, name="mine.csv")
    assert len(table.frame) == 6
    assert (
        "mine.csv: 2 rows without a value in 'y' or 'age_hi' were left out, the first in row 6."
        in table.notes
    )
    with pytest.raises(BadInput, match=r"column 'age_hi', row 8: the cell is empty"):
        read_table(csv(more), TABLE, purpose="predict")  # each row is answered


def test_columns_that_are_lacking() -> None:
    with pytest.raises(BadInput, match="there is no column 'age_hi'; give both ends"):
        read_table(csv(GOOD.drop(columns="age_hi")), TABLE)
    alone = read_table(csv(GOOD.drop(columns="task")), TABLE)
    assert set(alone.frame["task"]) == {"all"}
    assert any("no column 'task': all rows belong to one task" in note for note in alone.notes)
    with pytest.raises(BadInput, match="no feature column"):
        read_table(csv(GOOD[["task", "y"]]), TABLE)
    with pytest.raises(BadInput, match=r"'age_lo': every cell is empty; fill it, or leave"):
        read_table(csv(GOOD.assign(age_lo="")), TABLE)
    # An optional column may be there and say nothing.
    assert len(read_table(csv(GOOD.assign(y_err="", exposure="", split="")), TABLE).frame) == 4


def test_arrays_of_a_frame_that_no_reader_saw() -> None:
    with pytest.raises(
        BadInput, match="row 3: the model was not trained on 'coarse'; its tasks are fine"
    ):
        of(GOOD, tasks=("fine",), rows=(1, 2, 3, 4))
    with pytest.raises(BadInput, match="lacks the dimension 'height'"):
        of(GOOD, dims=("age", "height"))
    with pytest.raises(BadInput, match="lacks the dimension 'age'; give the column 'age' or both"):
        of(GOOD.drop(columns="age_hi"))
    with pytest.raises(BadInput, match=r"'age_hi', row 1: 0 is below age_lo = 16"):
        of(GOOD.assign(age_hi=[16.0, 0, 20, 25]))
    with pytest.raises(BadInput, match=r"'age_lo', row 2: the cell has no finite number"):
        of(GOOD.assign(age_lo=[15.0, 16, np.nan, 20]))
    with pytest.raises(BadInput, match="no column 'task'"):
        of(GOOD.drop(columns="task"))
    with pytest.raises(BadInput, match="no input dimension"):
        of(GOOD[["task", "y"]])


def test_values_must_suit_the_likelihood() -> None:
    counts = of(GOOD.assign(y=[0.0, 3.0, 0.3, np.nan]))
    check_values(counts, {"fine": "poisson", "coarse": "gaussian"})
    with pytest.raises(BadInput, match=r"row 4: got 0\.3, but the poisson .* 'coarse' needs a co"):
        check_values(counts, {"coarse": "poisson"}, rows=(2, 3, 4, 5))
    with pytest.raises(BadInput, match=r"row 1: got 3, but the bernoulli .* needs 0 or 1"):
        check_values(counts, {"fine": "bernoulli"})
    with pytest.raises(BadInput, match=r"got -1 \(and 1 more\)"):
        check_values(of(GOOD.assign(y=[-1.0, 0.5, 1, 1])), {"fine": "poisson"})


def grid(side: int = 6) -> pd.DataFrame:
    a, b = (g.ravel().astype(float) for g in np.meshgrid(np.arange(side), np.arange(side)))
    y = np.random.default_rng(0).normal(size=len(a))
    return pd.DataFrame({"task": "t", "a_lo": a, "a_hi": a + 1, "b_lo": b, "b_hi": b + 1, "y": y})


def test_averages_over_larger_boxes() -> None:
    table = grid().assign(y_err=0.3, truth=1.0)
    made = coarsen(table, {"a": 2, "b": 3})
    assert len(made) == 6
    first = table[(table["a_lo"] < 2) & (table["b_lo"] < 3)]
    assert made["y"][0] == pytest.approx(first["y"].mean())
    assert made.loc[0, ["a_lo", "a_hi", "b_lo", "b_hi"]].tolist() == [0, 2, 0, 3]
    np.testing.assert_allclose(made["y_err"], 0.3 / np.sqrt(6))
    np.testing.assert_allclose(made["truth"], 1.0)
    # Averages of averages are averages, whatever the way, and the mean of all is kept.
    np.testing.assert_allclose(
        coarsen(made, {"a": 6, "b": 6})["y"], coarsen(table, {"a": 6, "b": 6})["y"]
    )
    np.testing.assert_allclose(coarsen(table, {"a": 6, "b": 6})["y"], table["y"].mean())


def test_averages_weigh_by_volume_and_keep_tasks_apart() -> None:
    table = pd.DataFrame(
        {
            "task": ["p", "p", "q"],
            "t_lo": [0.0, 1.0, 0.0],
            "t_hi": [1.0, 4.0, 4.0],
            "y": [8.0, 4.0, 1.0],
        }
    )
    assert coarsen(table, {"t": 4})["y"].tolist() == [5.0, 1.0]


def test_boxes_that_are_not_covered_are_left_out() -> None:
    table = grid(5)
    assert len(coarsen(table, {"a": 2, "b": 2})) == 4
    assert len(coarsen(table, {"a": 2, "b": 2}, covered=0.5)) == 8
    assert len(coarsen(table, {"a": 2, "b": 2}, origin={"a": -1.0})) == 4
    gap = table.assign(y=table["y"].where(table.index != 0))
    assert len(coarsen(gap, {"a": 2, "b": 2})) == 3
    assert len(coarsen(table[:0], {"a": 2, "b": 2})) == 0


def test_what_cannot_be_averaged() -> None:
    with pytest.raises(BadInput, match="crosses into the next"):
        coarsen(grid().assign(a_hi=lambda t: t["a_lo"] + 1.5), {"a": 2, "b": 2})
    with pytest.raises(BadInput, match="overlap"):
        coarsen(pd.concat([grid(), grid()], ignore_index=True), {"a": 2, "b": 2})
    with pytest.raises(BadInput, match="Points cannot"):
        coarsen(grid().assign(a_hi=lambda t: t["a_lo"]), {"a": 2, "b": 2})


def test_scarcity_is_nested_and_spares_tests_and_other_tasks() -> None:
    other = grid().assign(task="other", y=lambda t: -t["y"])
    table = pd.concat([grid(), other], ignore_index=True)
    table["split"] = np.where(np.arange(len(table)) % 3 == 0, "test", "train")
    few, more = scarce(table, "t", 5, seed=1), scarce(table, "t", 9, seed=1)
    kept = few[(few["task"] == "t") & (few["split"] == "train")]
    assert len(kept) == 5
    assert len(few) == len(table) - 24 + 5
    assert kept["y"].isin(more["y"]).all()
    assert not few["y"].equals(scarce(table, "t", 5, seed=2)["y"])
    assert len(scarce(table, "t", 10**6)) == len(table)


def test_thinning_spreads_evenly() -> None:
    assert thinned(grid(), None) is not None
    assert thinned(grid(), 3)["y"].tolist() == grid()["y"].iloc[[0, 18, 35]].tolist()
    assert len(thinned(grid(), 100)) == 36
