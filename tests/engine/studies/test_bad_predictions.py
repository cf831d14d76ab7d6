"""Tables to predict that hold what no number is: one sentence, the same in all seven studies."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scant
from scant.errors import BadInput, NotFound
from scant.studies import STUDIES, entry
from scant.studies.predicted_columns import data_dictionary
from scant.studies.predicted_table import checked
from scant.studies.protocol import FittedStudy
from scant.training.downloads import predict_own

pytestmark = pytest.mark.slow

# The least that fits, and a column of numbers that `predict` reads.
SMALL = {
    "aggregation": ({"max_steps": 2}, "age_lo"),
    "redshift": ({"max_steps": 2, "n_basis": 3, "restarts": 1}, "mag_g"),
    "genes": ({"max_steps": 2, "baselines": False}, "x"),
    "omniglot": ({"max_steps": 2, "baselines": False, "n_inducing": 8}, "p0"),
    "mitosis": ({"max_steps": 2, "baselines": False, "rare_rows": 20}, "p0"),
    "multiview": ({"max_steps": 2, "baselines": False}, ""),
    "clamp": ({"start": 6, "budget": 8, "baselines": False, "repeats": 1}, "left"),
}
GAPS = {"redshift", "mitosis"}  # where an empty cell is a missing value


def measurements() -> pd.DataFrame:
    return pd.DataFrame({"x": [0.5, 1.5, 2.5], "note": ["a", None, "="]})


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("soon", "column 'x', row 3: got 'soon', which is not a number"),
        (np.inf, "column 'x', row 3: got 'inf', which is infinite"),
        (-np.inf, "column 'x', row 3: got '-inf', which is infinite"),
        (None, "column 'x', row 3: the cell is empty"),
        (np.nan, "column 'x', row 3: the cell is empty"),
        (1e308, "column 'x', row 3: got '1e+308', which is beyond 1e+100"),
        ("1e200", "column 'x', row 3: got '1e200', which is beyond 1e+100"),
        (1 + 2j, "column 'x', row 3"),
        ([1.0], "column 'x', row 3"),
        (pd.Timestamp("2024-03-01"), "which is a date"),
    ],
)
def test_a_cell_that_is_no_number_is_named(cell: object, sentence: str) -> None:
    table = measurements().astype({"x": object})
    table.at[1, "x"] = cell
    with pytest.raises(BadInput) as caught:
        checked(table, ["x"])
    assert sentence in str(caught.value)
    if cell is None or cell is np.nan:
        assert checked(table, gaps=["x"])["x"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[1.0, 2.0]], "is a list; give a pandas data frame"),
        (np.ones((2, 2)), "is a ndarray; give a pandas data frame"),
        (None, "is a NoneType"),
        (measurements()["x"], "is a Series"),
        (measurements()[:0], "has no rows"),
        (pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), "has the column 'x' twice"),
        (pd.DataFrame([[1.0, 2.0]], columns=["1", 1]), "has the column '1' twice"),
    ],
)
def test_what_is_no_table_of_rows_is_refused(table: object, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        checked(table, ["x"])


def test_numbers_written_as_text_are_numbers_and_other_columns_are_let_be() -> None:
    table = measurements().astype({"x": str})
    read = checked(table, ["x", "absent"])
    assert read["x"].tolist() == [0.5, 1.5, 2.5]
    assert read["note"].equals(table["note"])
    assert checked(measurements().assign(x=np.nan), gaps=["x"])["x"].isna().all()
    assert list(checked(pd.DataFrame({0: [1.0]}), ["0"])) == ["0"]


@pytest.fixture(scope="module", params=STUDIES)
def fitted(request: pytest.FixtureRequest) -> tuple[str, FittedStudy, pd.DataFrame, str]:
    """Each study, fitted to its demonstration in two steps, and rows that it can predict."""
    name: str = request.param
    values, column = SMALL[name]
    run = scant.fit(name, device="cpu", **values)
    for _ in run:
        pass
    rows = run.table.head(6).reset_index(drop=True)
    numbers = [c for c in rows.select_dtypes("number") if c not in ("y", "time", "event", "test")]
    return name, run.study, rows, column if column in rows else str(numbers[-1])


def test_every_study_names_the_cell(
    fitted: tuple[str, FittedStudy, pd.DataFrame, str],
) -> None:
    name, study, rows, column = fitted
    assert len(study.predict(rows)) == len(rows)
    for cell in ("soon", np.inf, 1e308, None):
        spoilt = rows.astype({column: object})
        spoilt.at[1, column] = cell
        if cell is None and name in GAPS:
            assert len(study.predict(spoilt)) == len(rows)
            continue
        with pytest.raises(BadInput, match=rf"column '{column}', row 3"):
            study.predict(spoilt)
    with pytest.raises(BadInput, match="no rows"):
        study.predict(rows[:0])
    twice = pd.concat([rows, rows[[column]]], axis=1)
    with pytest.raises(BadInput, match=rf"'{column}' twice"):
        study.predict(twice)


def test_every_study_adds_what_its_catalog_names_and_changes_nothing(
    fitted: tuple[str, FittedStudy, pd.DataFrame, str],
) -> None:
    name, study, rows, column = fitted
    rows = rows.assign(mean="mine", std=np.arange(6), outside="=too", id=list("abcdef"))
    told = study.predict(rows.astype({column: str}).set_axis(range(10, 16)))
    given = [str(c) for c in rows]
    assert list(told)[: len(given)] == given
    assert told["mean"].tolist() == rows["mean"].tolist()
    assert told[column].tolist() == rows[column].astype(str).tolist()
    added = list(told)[len(given) :]
    specs = [spec.name for spec in entry(name).predicted]
    bare = [c.removeprefix("predicted_") for c in added]
    bare = ["label" if c == "predicted" else "p(class)" if c[:2] == "p(" else c for c in bare]
    assert list(dict.fromkeys(bare)) == [s for s in specs if s in bare]
    if name != "multiview":  # whose catalog holds classes and values
        assert set(specs) == set(bare)
    assert "predicted_outside" in added
    assert told["predicted_outside"].isin([0, 1]).all()
    assert told["predicted_outside"].mean() <= 0.5
    assert {"train", "pool"} & set(study.roles)
    assert set(study.roles) <= {"train", "pool", "validation", "test", ""}
    if "lo95" in told:
        ends = told[["lo95", "lo80", "lo50", "hi50", "hi80", "hi95"]].to_numpy(float)
        assert (np.diff(ends) >= 0).all()
        whole = told["predicted_std"] if name == "redshift" else told["std_y"]
        np.testing.assert_allclose(
            whole**2,
            told["std_model"] ** 2 + told["std_noise"] ** 2 + told.get("std_input", 0) ** 2,
        )
    else:
        p = told[[c for c in told if str(c)[:2] == "p("]].sum(axis=1)
        np.testing.assert_allclose(p, 1)
    text = data_dictionary(entry(name), given, [str(c) for c in told])
    assert text.count("\n| ") == told.shape[1] + 2
    assert "|  |" not in text


def test_the_table_of_a_run_is_predicted_whole_with_what_each_row_was_for(
    fitted: tuple[str, FittedStudy, pd.DataFrame, str],
) -> None:
    name, study, rows, _ = fitted
    with zipfile.ZipFile(io.BytesIO(predict_own(study, "demo", None))) as made:
        files = made.namelist()
        told = pd.read_csv(made.open("predictions.csv"), low_memory=False)
        words = made.read("columns.md").decode()
        if name == "aggregation":
            drawn = pd.read_csv(made.open("map.csv"))
            assert set(drawn["task"]) == set(study.metadata["tasks"])
            assert {"age_lo", "age_hi", "year_lo", "year_hi", "mean", "std"} <= set(drawn)
    beside = {"aggregation": ["map.csv"], "redshift": ["predictions.densities.hdf5"]}
    assert files == ["predictions.csv", *beside.get(name, []), "columns.md"]
    assert told["role"].fillna("").tolist() == study.roles.tolist()
    assert not any(re.fullmatch(r"p\d+", c) for c in told)
    kept = [c for c in rows if c in told]
    assert list(told)[: len(kept)] == kept
    assert told["outside"].mean() < 0.2
    assert all(f"| {c.replace('|', '')} |" in words for c in told)


def test_a_model_on_disk_is_whole_or_one_sentence(tmp_path: Path, toy: str) -> None:
    from typer.testing import CliRunner

    from scant_dashboard.cli.main import app

    out = tmp_path / "out"
    arguments = ["fit", toy, "--out", str(out), "--set", "max_steps=3"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    model, settings = out / "model.safetensors", out / "settings.json"
    whole, text = model.read_bytes(), settings.read_text()
    for damaged in (b"", whole[:40], whole[:-8], whole[:-1] + bytes([whole[-1] ^ 1])):
        model.write_bytes(damaged)
        with pytest.raises(BadInput, match=r"model\.safetensors is damaged"):
            scant.load(out)
    # Results of 0.1.0 have no checksum; what cannot be read is said all the same.
    settings.write_text('{"study": "toy", "settings": {"max_steps": 3}}')
    for damaged in (b"", whole[:40], whole[:-8]):
        model.write_bytes(damaged)
        with pytest.raises(BadInput, match="is damaged or of another version"):
            scant.load(out)
    model.write_bytes(whole)
    assert scant.load(out) is not None
    for damaged_text in ("", "{", "[]", '{"study": 3}', '{"study": "toy", "settings": 4}'):
        settings.write_text(damaged_text)
        with pytest.raises(BadInput, match=r"settings\.json is damaged"):
            scant.load(out)
    settings.write_text(text)
    model.unlink()
    with pytest.raises(NotFound, match=r"no model\.safetensors"):
        scant.load(out)


@pytest.mark.parametrize("run", ["", "nobody", "a\0b", "x" * 5000])
def test_no_such_run(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound):
        scant.load(run)
