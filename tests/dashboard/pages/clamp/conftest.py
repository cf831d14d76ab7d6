"""A frame as a clamp page's views know it, and the store that its labels go to."""

from __future__ import annotations

from typing import Any

import pytest

from scant.store import Store
from tests.dashboard.pages.clamp.labeling_fakes import Frame


@pytest.fixture
def frame(store: Store) -> Any:
    """See `desks.Frame`."""
    return Frame(store)
