"""The `scant` command: what it writes, what it says, and how it ends."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner, Result

import scant
from scant import hardware
from scant.data_sources.open import sample
from scant.events import Finished, Progress, State
from scant.store import Store, database
from scant.studies.protocol import Step
from scant_dashboard.cli.main import app
from tests.tiny import fixed

pytestmark = pytest.mark.usefixtures("toy")
TINY = {
    **fixed("redshift"),
    "training_size": 80,
    "validation_size": 20,
    "test_size": 20,
    "n_basis": 3,
    "max_steps": 4,
    "restarts": 1,
}
FILES = {
    "settings.json", "metrics.json", "trace.csv", "model.safetensors",
    "model_card.md", "model_card.html",
}  # fmt: skip


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in arguments])


def sets(**values: object) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def refused(result: Result, *parts: str) -> None:
    """Status 2, one sentence on stderr, nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("scant: ")
    for word in parts:
        assert word in lines[0]


@pytest.fixture(scope="module")
def galaxies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from scant.studies import entry

    file = tmp_path_factory.mktemp("galaxies") / "galaxies.csv"
    sample(entry("redshift"), "demo", 150, 3).to_csv(file, index=False)
    return file


@pytest.mark.slow
def test_a_table_that_lacks_what_was_learnt_costs_its_predictions_and_not_the_model(
    galaxies: Path, tmp_path: Path
) -> None:
    out, ask = tmp_path / "out", tmp_path / "ask.csv"
    pd.DataFrame({"height": [1.0], "width": [2.0]}).to_csv(ask, index=False)
    query = ["--data", galaxies, "--predict", ask, "--out", out]
    result = command("fit", "redshift", *query, *sets(**TINY))
    assert result.exit_code == 2
    assert "was not predicted: ask.csv lacks the column 'mag_u'" in result.stderr
    assert f"The model itself is in {out}" in result.stderr
    assert {f.name for f in out.iterdir()} == FILES
    scant.load(out)


@pytest.mark.slow
def test_fit_writes_a_folder_that_engine_load_reads(galaxies: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    rows = pd.read_csv(galaxies).sample(frac=1, random_state=1).head(40)
    rows.to_csv(tmp_path / "ask.csv", index=False)
    query = ["--data", galaxies, "--predict", tmp_path / "ask.csv", "--out", out]
    result = command("fit", "redshift", *query, "--densities", "qp", *sets(**TINY, seed=5))
    assert result.exit_code == 0, result.output
    told_of = {"predictions.csv", "columns.md", "predictions.densities.hdf5"}
    assert {f.name for f in out.iterdir()} == FILES | told_of
    record = json.loads((out / "settings.json").read_text())
    assert record["study"] == "redshift"
    assert record["data"] == str(galaxies)
    assert record["settings"] | TINY | {"seed": 5, "refit": "everything"} == record["settings"]
    assert record["version"] == scant.__version__
    trace = pd.read_csv(out / "trace.csv")
    assert list(trace.columns) == ["step", "elbo", "seconds"]
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["state"] in ("converged", "finished", "hit limit", "learned nothing")
    assert any(m["name"] == "RMSE" and m["source"] == "run" for m in metrics["metrics"])
    predictions = pd.read_csv(out / "predictions.csv")
    pd.testing.assert_frame_equal(predictions[list(rows.columns)], rows.reset_index(drop=True))
    assert {"mean", "std", "std_model", "std_noise"} <= set(predictions.columns)
    again = scant.load(out).predict(rows)
    np.testing.assert_allclose(again["mean"], predictions["mean"])
    ids = rows.assign(objid=range(40))
    ids.to_parquet(tmp_path / "more.parquet")
    told = command("predict", out, "--data", tmp_path / "more.parquet")
    assert told.exit_code == 0, told.output
    assert f"{tmp_path / 'more.predictions.parquet'}: 40 rows" in told.stdout
    more = pd.read_parquet(tmp_path / "more.predictions.parquet")
    pd.testing.assert_frame_equal(more[list(ids)], ids.reset_index(drop=True), check_dtype=False)
    np.testing.assert_allclose(more["mean"], again["mean"])
    assert "| lo95 |" in (tmp_path / "columns.md").read_text()
    told = command("predict", out, "--data", tmp_path / "more.parquet", "--densities", "qp")
    assert "qp.read opens it" in told.stderr
    with h5py.File(tmp_path / "more.predictions.densities.hdf5") as file:
        np.testing.assert_array_equal(file["ancil"]["object_id"][:], ids["objid"])
        np.testing.assert_allclose(file["ancil"]["zmean"][:], more["mean"], rtol=1e-4)
    (tmp_path / "bad.csv").write_text("width,height\n1,2\n")
    refused(command("predict", out, "--data", tmp_path / "bad.csv"), "bad.csv")
    refused(command("predict", tmp_path, "--data", tmp_path / "ask.csv"), "settings.json")
    refused(command("fit", "redshift", "--densities", "qp"), "name a table with --predict")
    refused(command("predict", out, "--data", tmp_path / "no.csv"), "There is no file no.csv")
    assert [f.name for f in out.parent.iterdir()] == ["out"]


def test_the_command_line_and_a_notebook_run_the_same_code(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("fit", "toy", "--out", out, *sets(max_steps=12, seed=7)).exit_code == 0
    steps = [e for e in scant.fit("toy", max_steps=12, seed=7) if isinstance(e, Progress)]
    trace = pd.read_csv(out / "trace.csv", float_precision="round_trip")
    assert trace["elbo"].tolist() == [e.elbo for e in steps]


def test_a_fit_takes_as_many_threads_here_as_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last digits of sums depend on them."""
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(hardware, "cores", lambda: 12)
    try:
        assert command("fit", "toy", *sets(max_steps=1)).exit_code == 0
        assert torch.get_num_threads() == 12 // hardware.default_workers(12) == 4
    finally:
        torch.set_num_threads(before)


def test_json_on_stdout_is_json_and_nothing_else() -> None:
    result = command("fit", "toy", "--json", *sets(max_steps=3))
    record = json.loads(result.stdout)
    assert record["state"] == "hit limit"
    assert record["metrics"][0]["name"] == "score"
    assert "The toy is a toy." in result.stderr


def test_without_json_the_metrics_are_printed() -> None:
    result = command("fit", "toy", *sets(max_steps=3))
    assert result.exit_code == 0
    assert "score" in result.stdout


def test_an_earlier_result_is_replaced_but_no_other_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for seed in (1, 2):
        assert command("fit", "toy", "--out", out, *sets(max_steps=3, seed=seed)).exit_code == 0
    assert json.loads((out / "settings.json").read_text())["settings"]["seed"] == 2
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("precious")
    refused(command("fit", "toy", "--out", other), "thesis", "other files")
    assert (other / "chapter.tex").read_text() == "precious"
    refused(command("fit", "toy", "--out", other / "chapter.tex"), "is a file")


def test_a_diverged_fit_ends_with_status_1_and_its_reason(tmp_path: Path) -> None:
    result = command("fit", "toy", "--out", tmp_path / "out", *sets(nan_at=3))
    assert result.exit_code == 1
    assert "nan at step 3" in result.stderr
    assert pd.read_csv(tmp_path / "out" / "trace.csv")["elbo"].isna().tolist() == [0, 0, 1]
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["state"] == "diverged"


def test_codes_for_missing_values_are_named_by_an_option(tmp_path: Path) -> None:
    for name, numbers in (("coded", [1.0, -99, 3.0]), ("plain", [1.0, 2.0, 3.0])):
        pd.DataFrame({"y": numbers * 9}).to_csv(tmp_path / f"{name}.csv", index=False)
    given = ["--missing", "y=-99", "--out", tmp_path / "out", *sets(max_steps=2)]
    result = command("fit", "toy", "--data", tmp_path / "coded.csv", *given)
    refused(result, "coded.csv, column 'y', row 3: the cell is empty")
    result = command("fit", "toy", "--data", tmp_path / "plain.csv", *given)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert record["missing_codes"] == {"y": [-99]}


def test_code_that_breaks_ends_with_status_1_and_leaves_nothing(tmp_path: Path) -> None:
    result = command("fit", "toy", "--out", tmp_path / "out", *sets(break_at=3))
    assert result.exit_code == 1
    assert isinstance(result.exception, ArithmeticError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "moon"], "no study 'moon'"),
        (["fit", "toy", "--set", "speed=3"], "no setting 'speed'"),
        (["fit", "toy", "--set", "max_steps"], "NAME=VALUE"),
        (["fit", "toy", "--set", "max_steps=many"], "a whole number at least 1"),
        (["fit", "toy", "--set", "max_steps=0"], "at least 1"),
        (["fit", "toy", "--device", "abacus"], "auto, cpu or cuda"),
        (["fit", "toy", "--data", "nowhere.csv"], "nowhere.csv"),
        (["fit", "toy", "--data", "moon"], "'moon'"),
        (["fit", "toy", "--predict", "x.csv"], "--out"),
        (["fit", "toy", "--predict", "nowhere.csv", "--out", "o"], "nowhere.csv"),
        (["fit", "toy", "--set", "refuse=yes"], "mend it"),
        (["fit", "toy", "--data", "https://a.org/a.csv"], "an address, and nothing is fetched"),
        (["fit", "toy", "--predict", "s3://a/a.csv", "--out", "o"], "an address"),
        (["predict", "o", "--data", "https://a.org/a.csv"], "an address"),
        (["fit", "toy", "--missing", "many"], "--missing 'many' must be a number"),
        (["fit", "toy", "--missing", "-9", "--missing", "x=-99"], "not of both"),
        (["fit", "toy", "--decimal", ";"], "--decimal must be"),
        (["data", "fetch", "moon"], "'moon'"),
        (["data", "sample", "moon", "--out", "x.csv"], "'moon'"),
        (["data", "sample", "toy/moon", "--out", "x.csv"], "'moon'"),
        (["reproduce", "moon"], "'moon'"),
        (["bench", "moon"], "'moon'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(command(*arguments), sentence)
    assert list(tmp_path.iterdir()) == []


ROW = "1.5,2.5,0.3\n"
BAD_FILES = {
    "empty": b"",
    "header only": b"g,r,z\n",
    "one delimiter too odd": b"g~r~z\n" + b"1~2~3\n" * 80,
    "not numbers": b"g,r,z\n" + b"a,b,0.3\n" * 80,
    "infinite": b"g,r,z\n" + ROW.encode() * 80 + b"inf,1,0.2\n",
    "too few rows": b"g,r,z\n" + ROW.encode() * 3,
    "no target": b"g,r,i\n" + ROW.encode() * 80,
    "all targets missing": b"g,r,z\n" + b"1,2,\n" * 80,
    "formula": b"g,r,z\n" + ROW.encode() * 80 + b"=cmd|' /C calc'!A0,1,0.2\n",
    "ragged": b"g,r,z\n" + ROW.encode() * 80 + b"1,2\n1,2,3,4\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "an archive": b"PK\x03\x04" + bytes(range(256)) * 4,
    "noise": bytes(np.random.default_rng(0).integers(0, 256, 4000, dtype=np.uint8)),
    "wide": ",".join(f"c{i}" for i in range(10_000)).encode() + b"\n",
}


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize("option", ["--data", "--predict"])
def test_a_bad_file_is_one_sentence_and_nothing_is_written(
    kind: str, option: str, tmp_path: Path
) -> None:
    if option == "--predict" and kind in ("too few rows", "no target", "all targets missing"):
        pytest.skip("no fault in a file to predict")
    file = tmp_path / "bad.csv"
    file.write_bytes(BAD_FILES[kind])
    result = command("fit", "redshift", option, file, "--out", tmp_path / "out", *sets(**TINY))
    refused(result, "bad.csv")
    assert not (tmp_path / "out").exists()


def test_studies_lists_every_setting() -> None:
    from scant.studies import STUDIES, entry

    listed = command("studies").stdout
    for name in STUDIES[:-1]:  # all but the toy
        for setting in entry(name).settings.names():
            assert f"  {setting} = " in listed


def test_a_sample_is_the_file_that_fit_takes_in_other_tests(galaxies: Path, tmp_path: Path) -> None:
    file = tmp_path / "sample.csv"
    result = command("data", "sample", "redshift", "--rows", 150, "--seed", 3, "--out", file)
    assert result.exit_code == 0
    assert len(pd.read_csv(file)) == 150
    assert file.read_bytes() == galaxies.read_bytes()


def test_data_list_names_the_data_sets() -> None:
    assert "sdss" in command("data", "list").stdout


def test_bench_prints_milliseconds_a_step() -> None:
    from scant import bench

    table = bench.bench("toy")
    assert list(table.columns) == ["study", "ms"]
    assert table["ms"].iloc[0] >= 0


def test_ctrl_c_stops_and_keeps_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toy.study import Study

    step = Study.step

    def interrupted(study: Study) -> Step:
        if study.taken == 5:
            signal.raise_signal(signal.SIGINT)
        return step(study)

    monkeypatch.setattr(Study, "step", interrupted)
    before = signal.getsignal(signal.SIGINT)
    result = command("fit", "toy", "--out", tmp_path / "out", *sets(max_steps=9000))
    assert result.exit_code == 0, result.output
    assert signal.getsignal(signal.SIGINT) is before
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["state"] == "stopped"
    assert len(pd.read_csv(tmp_path / "out" / "trace.csv")) == 6
    assert {f.name for f in (tmp_path / "out").iterdir()} == FILES


def test_a_written_result_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scant.training import result_folder

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", broken)
    record = result_folder.settings_record("toy", {}, "demo")
    with pytest.raises(OSError, match="disk full"):
        result_folder.write(tmp_path / "out", record, Finished(State.STOPPED, ""), [], None)
    assert list(tmp_path.iterdir()) == []


def test_births_become_a_table_of_cells_and_boxes(tmp_path: Path) -> None:
    from scant.studies.aggregation.simulate.fertility import simulate

    cells = simulate(0)
    rows = [
        f"{int(r.year_lo)} {int(r.age_lo)} {r.order1 + r.order2:.6f} {r.order1:.6f} {r.order2:.6f}"
        for r in cells.itertuples()
    ]
    text = "\n".join(
        [
            "Canada, Period fertility rates",
            "Last modified: 1-Jan-2025",
            "",
            "Year Age ASFR ASFR1 ASFR2",
        ]
    )
    file, out = tmp_path / "asfrRRbo.txt", tmp_path / "births.csv"
    file.write_text("\n".join([text, *rows, ""]))
    result = command("data", "births", file, "--out", out, "--step", 2)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(out)
    assert table["task"].value_counts().to_dict() == {
        "first births": 2640,
        "first births 2x2": 660,
    }
    file.write_text("age,year\n1,2\n")
    refused(command("data", "births", file, "--out", tmp_path / "none.csv"), "asfrRRbo.txt")
    assert not (tmp_path / "none.csv").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "toy", "--out"],
        ["reproduce", "genes", "--quick", "--out"],
        ["bench", "--quick", "--out"],
        ["data", "sample", "toy", "--out"],
    ],
)
@pytest.mark.parametrize("out", ["taken/out", "/proc/scant/out", "x" * 300, "folder"])
def test_an_out_that_cannot_be_written_is_refused_before_any_work(
    arguments: list[str], out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    if out == "folder":
        if arguments[0] != "data":
            pytest.skip("a folder is what is asked for")
        (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())

    def worked(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr("scant.training.api.fit", worked)
    monkeypatch.setattr("scant.reproduce.runner._runs", worked)
    monkeypatch.setattr("scant.bench.table.measure", worked)
    refused(command(*arguments, out), "--out", "name a")
    assert sorted(tmp_path.iterdir()) == before


def test_an_out_on_a_disk_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    def full(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)  # root may write where others may not
    refused(command("fit", "toy", "--out", tmp_path / "a" / "out"), "Read-only file system")
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_is_a_link_to_a_folder_is_replaced_where_it_leads(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "link").symlink_to(there)
    for _ in range(2):
        assert command("fit", "toy", "--out", tmp_path / "link", *sets(max_steps=2)).exit_code == 0
    assert {f.name for f in there.iterdir()} == FILES


@pytest.mark.slow
def test_notes_on_files_are_said_before_the_fit(galaxies: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(galaxies).assign(same=1)
    rows.loc[:29, "mag_u"] = -9999
    rows.to_csv(tmp_path / "mine.csv", index=False)
    rows.head(60).to_csv(tmp_path / "ask.csv", index=False)
    query = ["--data", tmp_path / "mine.csv", "--predict", tmp_path / "ask.csv"]
    result = command("fit", "redshift", *query, "--out", tmp_path / "out", *sets(**TINY))
    assert result.exit_code == 0, result.output
    assert "mine.csv, column 'same': every value is 1; it was left out." in result.stderr
    assert "mine.csv, column 'mag_u': -9999 stands in 30 cells, first in row 2" in result.stderr
    assert "ask.csv, column 'mag_u': -9999 stands in 30 cells, first in row 2" in result.stderr


def test_an_operator_meets_a_locked_database_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.02)
    store = Store.open()
    run = store.add_run("toy", {}, "demo", "user:ada")
    store.close()
    with closing(sqlite3.connect(tmp_path / "scant.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused(command("runs", "delete", run), "locked by another program")
        other.execute("ROLLBACK")
    assert command("runs", "list").stdout.count(run) == 1
