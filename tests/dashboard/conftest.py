"""A frame as a clamp page's views know it, and the store that its labels go to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.store import Store
from tests.dashboard.desks import Frame


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Of this test alone."""
    opened = Store.open(f"sqlite:///{tmp_path}/runs.db")
    yield opened
    opened.close()


@pytest.fixture
def frame(store: Store) -> Any:
    """See `desks.Frame`."""
    return Frame(store)
