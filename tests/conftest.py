"""What all tests share: shapes and types of the engine checked at every call, and the toy study."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# A thread a test process, before NumPy and torch start theirs: results are the same bits on every
# machine, and the processes do not compete for cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

import scant
from tests import folders, tiers

settings.register_profile("untimed", deadline=None)  # a busy machine fails no test
settings.load_profile("untimed")
sys.path.append(str(Path(__file__).parent))
# Modules that name torch's types without importing them cannot be checked at run time.
# Nor can `type[Study]`, a protocol, but each study can; nor a task's Dask worker, which tests
# play. Estimators take any parameter when they are made, as scikit-learn demands, and judge it
# in `fit`.
_UNCHECKED = {"scant.runs.workers.plugin", "scant.runs.workers.task", "scant.studies.protocol"}
_ENGINE = Path(scant.__path__[0])
_FILES = [path.relative_to(_ENGINE).with_suffix("") for path in _ENGINE.rglob("*.py")]
_MODULES = [
    ".".join(("scant", *path.parts))
    for path in _FILES
    if path.name != "__init__" and path.parts[0] != "sklearn"
]
install_import_hook([name for name in _MODULES if name not in _UNCHECKED], "checking.checked")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """Of this test alone."""
    from scant.store import Store

    opened = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def toy() -> Iterator[str]:
    """The name of a study that is small, quick and full of joints (see tests/toy)."""
    import scant.studies
    import toy

    known = scant.studies.STUDIES
    toy.install()
    yield "toy"
    scant.studies.STUDIES = known


def pytest_addoption(parser: pytest.Parser) -> None:
    """See `tests.tiers`."""
    tiers.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Record durations where that was asked for, in the process that hears of all tests."""
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(tiers.Recorder(config), "durations")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """See `tests.tiers`."""
    return tiers.workers(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark it before `-m` chooses."""
    folders.mark(item)


@pytest.hookimpl(trylast=True)  # tests/engine/studies marks its tests first
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tier. Long files come first, so that no process is left alone with one.

    Browser tests come last: Playwright keeps an event loop running in the thread that began.
    """
    tiers.select(config, items)
    took = tiers.seconds_by_file()
    browsers = {"browser", "deploy"}
    items.sort(key=lambda i: (not browsers.isdisjoint(i.path.parts), -took.get(i.path, 0.0)))
