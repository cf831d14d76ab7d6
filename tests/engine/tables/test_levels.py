"""Text columns of few levels are inputs, and a fitted model takes later tables alike."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scant
from scant.errors import BadInput
from scant.studies import entry
from scant.tables.levels import decoded, levels_of, measured, names
from scant.tables.opening import columns_of
from scant.tables.read import inspect_table, read_table
from scant.training import result_folder
from scant.training.api import load
from scant.training.prediction import check_file, predict_file
from scant_dashboard.controls.column_table import ColumnTable
from tests.engine.files import csv

REDSHIFT, VIEWS = entry("redshift").table, entry("multiview").table


@pytest.fixture
def houses() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame({
        "garden": rng.choice(["yes", "no"], n), "state": rng.choice(["ID", "CA", "St. Louis"], n),
        "area": rng.normal(size=n), "owner": [f"owner {i}" for i in range(n)],
    })  # fmt: skip
    table["y"] = 3.0 * (table["garden"] == "yes") + table["area"] - 2 * (table["state"] == "CA")
    return table


def test_few_levels_become_inputs_and_names_of_people_do_not(houses: pd.DataFrame) -> None:
    houses.loc[4, "state"] = None
    read = read_table(csv(houses), REDSHIFT, name="a.csv", target="y")
    made = ("garden = yes", "state = CA", "state = ID", "state = St. Louis", "area")
    assert read.features == made
    assert read.reading["levels"] == {"garden": ["no", "yes"], "state": ["CA", "ID", "St. Louis"]}
    assert (read.frame["garden = yes"] == (houses["garden"] == "yes")).all()
    assert read.frame.loc[4, list(made[1:4])].isna().all()
    assert not read.frame["area"].isna().any()
    assert (read.frame.loc[5:, list(made[1:4])].sum(axis=1) == 1).all()
    assert "a.csv, column 'state': its 3 levels became 3 inputs of 0 and 1." in read.notes
    assert any("'owner': it holds text; it was left out" in note for note in read.notes)
    again = decoded(read.frame, read.reading["levels"])
    pd.testing.assert_frame_equal(
        again[["garden", "state"]].astype(object), houses[["garden", "state"]].astype(object)
    )


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ([f"name {i % 13}" for i in range(60)], "13 different values"),
        (["a", "b", "b"] + ["c"] * 57, "'a' is in fewer than 3 rows"),
        ([f"2024-01-{1 + i % 3:02d}" for i in range(60)], "dates"),
        (["a", "", "b"] * 20, "empty cells"),
    ],
)
def test_what_is_no_input_is_left_out_with_the_reason(
    houses: pd.DataFrame, column: list[str], why: str
) -> None:
    read = read_table(csv(houses.assign(kind=column)), VIEWS, name="a.csv")
    assert not [name for name in read.features if name.startswith("kind")]
    assert any("'kind'" in note and why in note for note in read.notes), read.notes


def test_text_that_repeats_the_class_is_no_input(houses: pd.DataFrame) -> None:
    table = houses.assign(label=houses["garden"].map({"yes": 1, "no": 0})).drop(columns="y")
    read = read_table(csv(table), entry("mitosis").table, name="a.csv")
    assert read.features == ("state = CA", "state = ID", "state = St. Louis", "area")
    assert (
        "a.csv, column 'garden': it has the same values as the target 'label' and was left out."
        in read.notes
    )


def test_the_wizard_says_how_many_inputs_and_takes_a_column_out(houses: pd.DataFrame) -> None:
    preview = inspect_table(csv(houses), VIEWS, name="a.csv")
    shown = ColumnTable(lambda columns, role: None)
    shown.take(preview, preview.mapping, VIEWS)
    heads = {head["name"]: head for head in shown.columns}
    assert heads["state"]["holds"] == "text, 3 values → 3 inputs"
    assert heads["state"]["role"] == "="
    assert heads["garden"]["holds"] == "text, 2 values → 1 input"
    assert heads["owner"]["role"] == ""
    out = {**preview.mapping, "state": "", "garden": "group"}
    read = read_table(csv(houses), VIEWS, name="a.csv", mapping=out)
    assert read.features == ("area",)
    assert set(read.frame["group"]) == {"yes", "no"}


def test_a_column_by_which_rows_are_divided_is_no_input(houses: pd.DataFrame) -> None:
    run = scant.fit("redshift", houses, target="y", split_by="state", max_steps=1, own=False)
    assert run.study.inputs == ["garden = yes", "area"]
    assert run.study.metadata["reading"]["levels"] == {"garden": ["no", "yes"]}


@pytest.mark.slow
def test_later_tables_are_read_as_the_first_one(houses: pd.DataFrame, tmp_path: Path) -> None:
    run = scant.fit("mitosis", houses.assign(label=houses["area"] > 0), max_steps=3, own=False,
                    device="cpu")  # fmt: skip
    *_, fitted, end = run
    result_folder.write(
        tmp_path / "out", result_folder.settings_record("mitosis", run.study.settings.values(), ""),
        end, run.steps, fitted.blob, [], "",
    )  # fmt: skip
    new = houses.drop(columns="y").head(6)
    new.loc[2, "state"], new.loc[3, "garden"] = "TX", "perhaps"
    file, out = tmp_path / "new.csv", tmp_path / "told.csv"
    new.to_csv(file, index=False)
    study = load(tmp_path / "out")
    made = predict_file(study, file, out)
    told, here = pd.read_csv(out), study.predict(new)
    assert list(told)[:4] == list(here)[:4] == list(new)
    assert told["outside"].tolist() == here["outside"].tolist()
    assert told["outside"][[2, 3]].tolist() == [1, 1]
    np.testing.assert_allclose(told["probability"], here["probability"], rtol=1e-6)
    assert [n for n in made.notes if "'TX' was not learned (only CA, ID, St. Louis)" in n]
    as_learned, as_read = study.predict(run.table.head(2)), study.predict(new.head(2))
    np.testing.assert_allclose(as_learned["probability"], as_read["probability"], rtol=1e-9)
    assert check_file(study.settings, file) is not None
    new.drop(columns=["state"]).to_csv(file, index=False)
    assert any("lacks state;" in note for note in predict_file(study, file, out).notes)


def test_a_text_column_that_is_not_there_is_named(houses: pd.DataFrame, tmp_path: Path) -> None:
    run = scant.fit("multiview", houses, max_steps=2, own=False, device="cpu")
    list(run)
    assert run.study.metadata["views"] == ["features"]  # no view "state = St"
    houses.drop(columns="state").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(BadInput, match="lacks the column 'state'"):
        predict_file(run.study, tmp_path / "new.csv", tmp_path / "out.csv")


def test_levels_are_sorted_and_of_two_the_second_is_the_input(houses: pd.DataFrame) -> None:
    cells = columns_of(houses, "a", 99)
    assert levels_of(cells["garden"], gaps=True) == (("no", "yes"), "")
    assert names("garden", ["no", "yes"]) == ["garden = yes"]


def test_what_text_was_made_into_is_not_measured() -> None:
    assert measured(["mag_u", "sample = boss", "mag_g", "sample = sdss"]) == ["mag_u", "mag_g"]


def test_hundreds_of_text_columns_are_restored_at_once() -> None:
    count = 150  # pandas warns of more than 100 columns that are inserted one by one
    frame = pd.DataFrame({"x": [1.0, 2.0]}).join(
        pd.DataFrame({f"t{i} = b": [0.0, 1.0] for i in range(count)})
    )
    frame["y"] = [3.0, np.nan]
    frame.attrs["sha256"] = "abc"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = decoded(frame, {f"t{i}": ["a", "b"] for i in range(count)})
    assert list(again) == ["x", *(f"t{i}" for i in range(count)), "y"]
    assert again["t149"].tolist() == ["a", "b"]
    assert again.attrs == {"sha256": "abc"}
