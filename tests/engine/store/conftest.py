"""A store on each database that it runs on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scant.store import Store
from scant.store.schema import METADATA

POSTGRES = os.environ.get("SCANT_TEST_POSTGRES")
skipped = pytest.mark.skipif(not POSTGRES, reason="SCANT_TEST_POSTGRES names no database")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=skipped)])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    sqlite = request.param == "sqlite"
    made = Store.open(f"sqlite:///{tmp_path / 'runs.db'}" if sqlite else POSTGRES)
    yield made
    METADATA.drop_all(made.engine)
    made.close()
