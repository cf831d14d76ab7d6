"""The notebook of all families is the script's, short, and runs from top to bottom in a kernel."""

from __future__ import annotations

import os
from math import isfinite

import nbformat
import pytest
from nbclient import NotebookClient

from scripts.write_families_notebook import FAMILIES, FILE, LINES, notebook
from tests.paths import ROOT


def code() -> list[str]:
    return [cell.source for cell in notebook().cells if cell.cell_type == "code"]


def test_the_notebook_is_what_the_script_writes() -> None:
    kept = nbformat.read(FILE, as_version=4)
    nbformat.validate(kept)
    assert kept == notebook()
    assert len(code()) == 1 + len(FAMILIES)


def test_each_family_takes_at_most_fifteen_lines_and_a_kernel_of_the_users_own() -> None:
    for source in code()[1:]:
        assert sum(bool(line.strip()) for line in source.splitlines()) <= LINES == 15
        assert "Kernel(" in source or "GPz(" in source  # which has basis functions
        assert "train(model, " in source or "= fit(" in source


@pytest.mark.timeout(600)
@pytest.mark.slow(
    "scripts/write_families_notebook.py",
    "engine/scant/models",
    "engine/scant/likelihoods",
    "engine/scant/kernels",
)
def test_the_notebook_runs() -> None:
    """Every cell ends, and every family reaches a finite objective."""
    book = notebook()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # as if it were installed
    NotebookClient(book, timeout=300, kernel_name="python3").execute(env=env)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    for cell in cells[1:]:
        said = "".join(out["text"] for out in cell.outputs if out.get("name") == "stdout")
        name, value = said.splitlines()[0].rsplit(" ", 1)
        assert name in ("bound", "bound of a row", "log density", "log evidence")
        assert isfinite(float(value))
        assert "nan" not in said
