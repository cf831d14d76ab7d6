"""The rules of the house: who may import whom, read from the sources themselves."""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import find_spec

import pytest

from tests.import_graph import MODULES, imports
from tests.paths import ROOT

WEB = {"panel", "bokeh", "holoviews", "panel_material_ui"}
SCIENCE = (
    "scant.studies.protocol",
    "scant.studies.trained",
    "scant.models",
    "scant.random",
    "scant.training.loop",
    "scant.training.search",
    "scant.training.api",
    "scant.training.folds",
    "scant.training.prediction",
    "scant.training.query",
    "scant.training.downloads",
    "scant.bench",
    "scant.sklearn",
    "scant.rail",
    "scant.tables.images.efficientnet",
)
# Modules that are for users of a package that need not be here.
OPTIONAL = {"scant.rail": "qp"}
# The science of a study lies beside its entry and its schemas, which the server reads.
LIGHT = (
    "entry",
    "settings",
    "table",
    "cost",
    "map_layers",
    "mean_rate",
    "supports",
    "data",
    "labels_out",
    "placed",
)


def scientific(module: str) -> bool:
    """Whether a module may import torch."""
    parts = module.split(".")
    if parts[:2] == ["scant", "studies"] and len(parts) > 3:
        return parts[3] not in LIGHT
    return module.startswith(SCIENCE)


def importable(module: str) -> bool:
    """Whether what a module is for is installed."""
    return module not in OPTIONAL or find_spec(OPTIONAL[module]) is not None


def web(module: str) -> bool:
    """Whether a module belongs to the dashboard."""
    return module.startswith("scant_dashboard")


def imported(module: str, annotated: bool = False) -> frozenset[str]:
    """What a module imports anywhere; what it names in annotations only, too, if `annotated`."""
    return imports(MODULES[module], annotated)


def test_the_houses_are_found() -> None:
    assert {
        "scant.runs.service",
        "scant.store",
        "scant_dashboard.cli.main",
        "scant_dashboard.app",
    } <= set(MODULES)
    assert "scant.store" in imported("scant.runs.service")


@pytest.mark.parametrize("module", [m for m in MODULES if not web(m)])
def test_the_engine_knows_nothing_of_the_web(module: str) -> None:
    drawn = {"holoviews"} if module.startswith("scant.plotting") else set()  # when it is called
    assert not {name.partition(".")[0] for name in imported(module)} & (WEB - drawn)
    assert not [name for name in imported(module) if web(name)]


@pytest.mark.parametrize("module", [m for m in MODULES if web(m)])
def test_a_page_reaches_a_study_only_through_runs_and_catalog(module: str) -> None:
    own = (
        "scant_dashboard.cli",
        "scant_dashboard.static_page.make",
        "scant_dashboard.followers.draw",
    )  # processes of their own
    if not module.startswith(own):
        assert not [n for n in imported(module) if scientific(n) or n.startswith("torch")]


def test_there_are_no_circles() -> None:
    """Imports for annotations count: who names a type leans on its module."""
    inside = {m: imported(m, True) & MODULES.keys() - {m} for m in MODULES}
    TopologicalSorter(inside).prepare()  # raises CycleError, naming the circle


def test_nothing_is_called_utils() -> None:
    assert not [m for m in MODULES if m.rpartition(".")[2] in ("utils", "util", "helpers", "misc")]


@pytest.mark.parametrize("dashboard", [False, True])
def test_nothing_that_the_server_imports_pulls_in_torch(dashboard: bool) -> None:
    light = [m for m in MODULES if web(m) == dashboard and not scientific(m)]
    heavy = tuple(
        f"scant.{name}" for name in ("models", "inference", "optim", "kernels", "likelihoods")
    )
    light = [m for m in light if not m.startswith(heavy) and m != "scant.metrics"]
    task = "scant.runs.workers.task"
    named = {"scant_dashboard.app"} if dashboard else {"scant.runs", task, "scant.tables.read"}
    assert named <= set(light)
    script = (
        "import importlib, sys\n"
        f"for name in {light}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]


@pytest.mark.slow
def test_nothing_but_a_call_of_plot_imports_holoviews() -> None:
    engine = [m for m in MODULES if not web(m) and m != "scant.plotting.elements"]
    engine = [m for m in engine if importable(m)]
    script = (
        "import importlib, sys\n"
        f"for name in {engine}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'holoviews' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]
