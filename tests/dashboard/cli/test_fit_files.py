"""`scant fit STUDY FILE...`: files by their names, several as tasks, answers as options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from scant_dashboard.cli.main import app

QUICK = ["--set", "max_steps=2", "--set", "n_inducing=4", "--set", "test_share=0"]


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in arguments])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for name, step in (("hours", 1), ("days", 2)):
        rows = "".join(
            f"{k * step},{(k + 1) * step},{k % 5 + 0.5},{k % 4 + 1.5}\n" for k in range(12)
        )
        made.append(tmp_path / f"{name}.csv")
        made[-1].write_text(f"start,end,pm,no2\n{rows}")
    return made


@pytest.mark.slow
def test_several_files_are_tasks_and_the_card_names_them(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = command("fit", "aggregation", *files, "--column", "y=pm", "--out", out, *QUICK)
    assert made.exit_code == 0, made.output
    assert "files became tasks by their names: hours, days" in made.stderr
    record = json.loads((out / "settings.json").read_text())
    assert record["data"] == [str(path) for path in files]
    assert record["columns"] == {"y": ["pm"]}
    card = (out / "model_card.md").read_text()
    assert f"scant fit aggregation {files[0]} {files[1]}" in card.replace("'", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "demo"], "both name the data"),
        (["--column", "pm"], "must have the form NAME=COLUMN"),
        (["--column", "y=dust"], "has no column 'dust' to take for 'y'"),
        (["--column", "why=pm"], "There is no column 'why' in this study"),
        (["--join", "pm"], "must have the form COLUMN=COLUMN"),
        ([], "has no column 'y'; it has start, end, pm, no2: rename"),
    ],
)
def test_what_cannot_be_taken_ends_in_one_sentence(
    files: list[Path], arguments: list[str], sentence: str
) -> None:
    made = command("fit", "aggregation", files[0], *arguments, *QUICK)
    assert made.exit_code == 2
    assert sentence in made.stderr
