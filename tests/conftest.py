"""What all tests share: shapes and types of the engine checked at every call, and the toy study."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules

import pytest
from jaxtyping import install_import_hook

import engine

sys.path.append(str(Path(__file__).parent))
# Modules that name torch's types without importing them cannot be checked at run time.
# Nor can `type[Study]`, a protocol, but each study can.
_UNCHECKED = {"engine.cli", "engine.worker", "engine.studies"}
_STUDIES = str(Path(engine.__path__[0]) / "studies")
_MODULES = [m.name for m in iter_modules(engine.__path__, "engine.")]
_MODULES += [m.name for m in iter_modules([_STUDIES], "engine.studies.")]
if "benchmark" not in sys.argv:  # `pytest -m benchmark` measures what users run, without checks
    install_import_hook([name for name in _MODULES if name not in _UNCHECKED], "checking.checked")


@pytest.fixture(scope="module")
def toy() -> Iterator[str]:
    """The name of a study that is small, quick and full of joints (see tests/toy)."""
    import toy

    import engine.catalog

    known = engine.catalog.STUDIES
    toy.install()
    yield "toy"
    engine.catalog.STUDIES = known


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running in the thread that began."""
    items.sort(key=lambda item: not {"browser", "deploy"}.isdisjoint(item.path.parts))
