"""The rules of the house: who may import whom, read from the sources themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = {"panel", "bokeh", "holoviews", "panel_material_ui"}
SCIENCE = ("engine.studies", "engine.models", "engine.training", "engine.fitting", "engine.bench")
DOOR = {  # what the command line opens in the other house, when it is asked to
    ("engine.cli", "dashboard.app"),  # `scant serve`
    ("engine.cli", "dashboard.bench_page"),  # `scant bench --out`
}


def sources() -> dict[str, Path]:
    """Every module of both houses, by its dotted name."""
    found = {}
    for house in ("engine", "dashboard"):
        for path in sorted((ROOT / house).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = sources()


def imported(path: Path) -> set[str]:
    """What a file imports anywhere, but for what it names in annotations only."""
    names = set()
    tree = ast.parse(path.read_text())
    annotations = [
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for part in branch.body
        for node in ast.walk(part)
    ]
    for node in ast.walk(tree):
        if node in annotations:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                names.add(inner if inner in MODULES else str(node.module))
    return names


IMPORTS = {name: imported(path) for name, path in MODULES.items()}


def test_the_houses_are_found() -> None:
    assert {"engine.runs.service", "engine.store", "engine.cli", "dashboard.app"} <= set(MODULES)
    assert "engine.store" in IMPORTS["engine.runs.service"]


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("engine")])
def test_the_engine_knows_nothing_of_the_web(module: str) -> None:
    assert not {name.partition(".")[0] for name in IMPORTS[module]} & WEB
    across = {(module, n) for n in IMPORTS[module] if n.startswith("dashboard")}
    assert across <= DOOR


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("dashboard")])
def test_a_page_reaches_a_study_only_through_runs_and_catalog(module: str) -> None:
    assert not [name for name in IMPORTS[module] if name.startswith((*SCIENCE, "torch"))]


def test_there_are_no_circles() -> None:
    inside = {m: {n for n in names if n in MODULES and n != m} for m, names in IMPORTS.items()}
    TopologicalSorter(inside).prepare()  # raises CycleError, naming the circle


def test_nothing_is_called_utils() -> None:
    assert not [m for m in MODULES if m.rpartition(".")[2] in ("utils", "util", "helpers", "misc")]


def test_nothing_that_the_server_imports_pulls_in_torch() -> None:
    light = [m for m in MODULES if m.startswith("dashboard") or not m.startswith(SCIENCE)]
    heavy = ("engine.models", "engine.expectations", "engine.kernels", "engine.likelihoods")
    light = [m for m in light if not m.startswith(heavy) and m != "engine.metrics"]
    assert {"dashboard.app", "engine.runs", "engine.worker", "engine.datasets.reading"} <= set(
        light
    )
    script = (
        "import importlib, sys\n"
        f"for name in {light}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]
