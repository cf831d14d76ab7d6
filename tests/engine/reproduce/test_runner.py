"""`scant reproduce`: one form for all studies, nothing lost on the way, two files at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from html import escape
from itertools import count
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from typer.testing import CliRunner

from scant.errors import BadInput
from scant.reproduce import runner
from scant.reproduce.results import COLUMNS
from scant.reproduce.tables import as_page, as_tables, origin, read
from scant.studies import STUDIES
from scant.studies.genes import reproduce
from scant.studies.published import KEYS
from scant.studies.reproduction import Experiment, Run, Runs, Score
from scant_dashboard.cli.main import app

METHODS = ("GP", "good", "poor", "<i>odd")
OWN, OTHER = "drawn as published", "cells, stand-in for theirs"


NUMBER = count()  # of runs, whose keys differ


def made(method: str, value: float, data: str = OWN, experiment: str = "first") -> Run:
    scores = [
        Score(Experiment(experiment, data, "draws"), method, "F1", value),
        Score(Experiment("second", data, "draws"), method, "RMSE", 2.0),
    ]
    return Run(f"{experiment}, {method}, {next(NUMBER)}", lambda: scores)


@pytest.fixture
def published_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        *(("genes", "first", method, "F1", 0.5, 0.1, "Table 1", None) for method in METHODS),
        ("genes", "first", "GP", "F1", 0.45, None, None, "their program, version 1"),
        ("genes", "first", "elsewhere only", "F1", 0.3, None, "Table 1", None),
        ("genes", "third", "elsewhere", "F1", 0.5, None, "Table 1", None),
    ]
    columns = ["study", *KEYS, "value", "spread", "where", "by"]
    table = pd.DataFrame(known, columns=columns)
    monkeypatch.setattr("scant.studies.published.scores", lambda: table)


@pytest.fixture
def tables(published_scores: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, Runs]:
    """What the tables of a study yield, by its name; all studies have empty ones at first."""
    found: dict[str, Runs] = {name: iter(()) for name in STUDIES}

    def imported(name: str) -> ModuleType:
        module = ModuleType(name)
        study = name.split(".")[-2]
        module.reproduce = lambda quick, data, fit: found[study]  # type: ignore[attr-defined]
        module.compared = (
            lambda scores: [  # type: ignore[attr-defined]
                one._replace(metric="largest", value=max(s.value for s in scores))
                for one in scores[:1]
            ]
        )
        return module

    monkeypatch.setattr(runner, "import_module", imported)
    monkeypatch.delenv("SCANT_REAL_DATA", raising=False)
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
    assert (row["ours"], row["spread"], row["varies"]) == (0.5, 0.1, "draws")
    assert (row["published"], row["published_spread"], row["where"]) == (0.5, 0.1, "Table 1")
    assert (row["theirs"], row["theirs_by"]) == (0.45, "their program, version 1")
    assert found.loc["second", "GP", "RMSE"][["published", "theirs"]].isna().all()
    absent = found.loc["first", "elsewhere only", "F1"]
    assert (absent["published"], absent["repeats"]) == (0.3, 0)
    assert math.isnan(absent["ours"])
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

    def runs() -> Runs:
        for repeat in range(3):
            file = tmp_path / "results.csv"
            seen.append(int(pd.read_csv(file)["repeats"].iloc[0]) if file.exists() else 0)
            yield made("GP", 0.1 * repeat)

    tables["genes"] = runs()
    assert scant("genes", "--out", tmp_path)[0] == 0
    assert seen == [0, 1, 2]


def test_an_interrupted_reproduction_goes_on(tables: dict[str, Runs], tmp_path: Path) -> None:
    def runs(values: list[float], *, stop: bool) -> Runs:
        for number, value in enumerate(values):
            score = Score(Experiment("first", OWN, "draws"), "GP", "F1", value)
            yield Run(f"repeat {number}", partial(list, [score]))
            if stop:
                raise KeyboardInterrupt

    tables["genes"] = runs([0.4, 0.6], stop=True)
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce(["genes"], out=tmp_path, log=lambda _: None)
    stored = tmp_path / "scores.jsonl"
    with stored.open("a") as file:
        file.write('{"study": "genes", "key": "repe')  # killed while it was written
    tables["genes"] = runs([0.9, 0.6], stop=False)
    assert scant("genes", "--out", tmp_path)[0] == 0
    row = pd.read_csv(tmp_path / "results.csv").iloc[0]
    assert (row["ours"], row["repeats"]) == (0.5, 2)  # the first is the stored one
    assert len(stored.read_text().splitlines()) == 2
    tables["genes"] = runs([0.9], stop=False)
    status, _, told = scant("genes", "--quick", "--out", tmp_path)
    assert status == 2
    assert "quick=False" in told
    assert told.count("\n") == 1


def test_runs_are_chosen_by_their_names(tables: dict[str, Runs], tmp_path: Path) -> None:
    tables["genes"] = iter([made("GP", 0.4), made("SVM", 0.6)])
    assert scant("genes", "--only", "SVM", "--out", tmp_path)[0] == 0
    rows = pd.read_csv(tmp_path / "results.csv")
    assert set(rows.loc[rows["ours"].notna(), "method"]) == {"SVM"}
    tables["genes"] = iter([made("GP", 0.4), made("SVM", 0.6)])
    status, _, told = scant("genes", "--only", "LVM")
    assert status == 1
    assert "No run of 'genes' has 'LVM' in its name" in told


def test_two_runs_of_one_name_are_an_error(tables: dict[str, Runs]) -> None:
    run = made("GP", 0.4)
    tables["genes"] = iter([run, run])
    _, faults = runner.reproduce(["genes"], show=lambda *_: None, log=lambda _: None)
    assert "have the name" in faults["genes"]


def test_scores_are_compared_over_all_runs(tables: dict[str, Runs]) -> None:
    tables["multiview"] = iter([made("DFGP", v) for v in (0.4, 0.5)])
    rows, _ = runner.reproduce(["multiview"], show=lambda *_: None, log=lambda _: None)
    assert rows.set_index("metric").loc["largest", "ours"] == 2.0


def test_a_study_that_fails_keeps_its_rows_and_the_others_go_on(
    tables: dict[str, Runs], tmp_path: Path
) -> None:
    def broken() -> Runs:
        yield made("GP", 0.5)

        def fails() -> list[Score]:
            raise ArithmeticError("no <root>")

        yield Run("fails", fails)

    def refused() -> Runs:
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
    rows, _ = runner.reproduce(["genes"], show=lambda rows, fault: None, log=lambda _: None)
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
        case = next(cases(*arguments))  # type: ignore[arg-type]
        few = case.table[case.table["output"].isin(case.table["output"].unique()[:3])]
        published = dict.fromkeys(case.published, (3, 6))
        yield case._replace(table=few, few=(3, 6), published=published)

    monkeypatch.setattr(reproduce, "_cases", first)
    monkeypatch.setattr(reproduce, "QUICK_STEPS", 2)
    monkeypatch.setitem(reproduce.FIXED, "max_steps", 3)
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
    assert escape(rows["experiment"].iloc[0]) in as_tables(rows)
    assert "Measured" in origin(rows)
