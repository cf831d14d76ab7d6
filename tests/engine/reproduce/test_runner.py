"""`scant reproduce`: one form for all studies, nothing lost on the way, two files at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from typer.testing import CliRunner

from scant.errors import BadInput
from scant.reproduce import runner
from scant.reproduce.runner import COLUMNS
from scant.reproduce.tables import as_page, as_tables, origin, read
from scant.studies import STUDIES
from scant.studies.genes import reproduce
from scant.studies.reproduction import Runs, Score
from scant_dashboard.cli.main import app

OWN, OTHER = "drawn as published", "cells, stand-in for theirs"


def made(method: str, value: float, data: str = OWN, experiment: str = "first") -> list[Score]:
    return [
        Score(experiment, data, method, "F1", value, 0.5),
        Score("second", data, method, "RMSE", 2.0),
    ]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Runs]:
    """What the tables of a study yield, by its name; all studies have empty ones at first."""
    found: dict[str, Runs] = {name: iter(()) for name in STUDIES}

    def imported(name: str) -> ModuleType:
        module = ModuleType(name)
        study = name.split(".")[-2]
        module.reproduce = lambda quick, data, fit: found[study]  # type: ignore[attr-defined]
        return module

    monkeypatch.setattr(runner, "import_module", imported)
    return found


def scant(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_repeats_become_a_mean_and_a_spread(tables: dict[str, Runs], tmp_path: Path) -> None:
    tables["genes"] = iter([made("GP", 0.4), made("GP", 0.6), made("<b>SVM", math.nan)])
    status, said, told = scant("genes", "--out", tmp_path)
    assert status == 0, told
    rows = pd.read_csv(tmp_path / "results.csv")
    assert list(rows.columns) == COLUMNS
    found = rows.set_index(["experiment", "method", "metric"])
    row = found.loc["first", "GP", "F1"]
    assert (row["study"], row["data"], row["repeats"]) == ("genes", OWN, 2)
    assert (row["ours"], row["spread"], row["published"]) == (0.5, 0.1, 0.5)
    missing = found.loc["first", "<b>SVM", "F1"]
    assert math.isnan(missing["ours"])
    assert missing["repeats"] == 0
    assert "GP" in said
    assert "genes: first, GP" in told
    assert rows[["date", "scant", "python", "torch", "gpytorch", "machine"]].notna().all().all()


def test_each_run_is_on_disk_before_the_next_begins(
    tables: dict[str, Runs], tmp_path: Path
) -> None:
    seen: list[int] = []

    def runs() -> Iterator[list[Score]]:
        for repeat in range(3):
            file = tmp_path / "results.csv"
            seen.append(int(pd.read_csv(file)["repeats"].iloc[0]) if file.exists() else 0)
            yield made("GP", 0.1 * repeat)

    tables["genes"] = runs()
    assert scant("genes", "--out", tmp_path)[0] == 0
    assert seen == [0, 1, 2]


def test_a_study_that_fails_keeps_its_rows_and_the_others_go_on(
    tables: dict[str, Runs], tmp_path: Path
) -> None:
    def broken() -> Iterator[list[Score]]:
        yield made("GP", 0.5)
        raise ArithmeticError("no <root>")

    def refused() -> Iterator[list[Score]]:
        yield from ()
        raise BadInput("There is no file x.npz; put it there.")

    tables |= {"aggregation": broken(), "genes": refused(), "clamp": iter([made("SVM", 0.7)])}
    status, _, told = scant("all", "--out", tmp_path)
    assert status == 1
    assert "aggregation: ArithmeticError: no <root>" in told
    assert "genes: There is no file x.npz" in told
    rows = pd.read_csv(tmp_path / "results.csv")
    assert set(rows["study"]) == {"aggregation", "clamp"}
    page = (tmp_path / "results.html").read_text(encoding="utf-8")
    assert "Not finished: There is no file x.npz" in page
    assert "no &lt;root&gt;" in page


def test_the_page_is_whole_and_marks_what_compares(tables: dict[str, Runs]) -> None:
    scores = [
        made("good", 0.6), made("poor", 0.4), made("<i>odd", 0.5),
        made("elsewhere", 0.9, OTHER, "third"),
    ]  # fmt: skip
    tables["genes"] = iter(scores)
    rows, _ = runner.reproduce(["genes"], show=lambda rows, fault: None, whisper=lambda _: None)
    page = as_page(rows, {})
    assert "http" not in page
    assert "src=" not in page
    assert "&lt;i&gt;odd" in page
    assert "<i>" not in page
    for figure, bold in (("0.6", True), ("0.4", False), ("0.5", True), ("0.9", False)):
        assert (f"<strong>{figure}</strong>" in page) == bold, figure
    assert OTHER in page
    assert rows["machine"].iloc[0] in origin(rows)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["moon"], "'moon'"),
        (["all", "--data", "nowhere"], "no folder 'nowhere'"),
        (["genes", "--out", "taken/out"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("a file")
    status, said, told = scant(*arguments)
    assert (status, said) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1


def test_the_environment_names_the_folder_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_REAL_DATA", "elsewhere")
    status, _, told = scant("genes")
    assert status == 2
    assert "no folder 'elsewhere'" in told


@pytest.mark.usefixtures("toy")
def test_a_study_without_tables_says_so() -> None:
    status, _, told = scant("toy")
    assert status == 1
    assert "no table to reproduce" in told


def test_a_real_study_is_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = reproduce._cases

    def first(*arguments: object) -> Iterator[object]:
        name, source, table, values = next(cases(*arguments))  # type: ignore[arg-type]
        small = {"max_steps": 3, "n_inducing_inputs": 6, "n_inducing_outputs": 3}
        yield (
            name,
            source,
            table[table["output"].isin(table["output"].unique()[:3])],
            values | small,
        )

    monkeypatch.setattr(reproduce, "_cases", first)
    monkeypatch.setattr("scant.studies.genes.report.FIT_STEPS", 2)
    monkeypatch.delenv("SCANT_REAL_DATA", raising=False)
    assert scant("genes", "--quick", "--out", tmp_path)[0] == 0
    rows = pd.read_csv(tmp_path / "results.csv")
    assert rows["quick"].all()
    assert rows["ours"].notna().all()
    assert {"HMOGP-LV", "LVMOGP", "HGP", "DHGP", "LMC"} <= set(rows["method"])


@pytest.mark.parametrize("study", STUDIES)
def test_what_lies_in_the_repository_can_be_shown(study: str) -> None:
    rows = read(study)
    assert list(rows.columns) == COLUMNS
    assert set(rows["study"]) == {study}
    assert not rows["quick"].any()
    assert rows["ours"].notna().any()
    assert str(rows["experiment"].iloc[0]) in as_tables(rows)
    assert "Measured" in origin(rows)
