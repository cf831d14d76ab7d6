"""Names of the held-out rows behind the omniglot page's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_SNAPSHOT_ROWS = 150  # maximum held-out rows evaluated during training (tested)
SHOT_ROWS = 400  # the same in queries with fewer shots (tested)


def held_out(metadata: Mapping[str, Any], limit: int | None = None) -> str:
    """Describe the held-out rows of a run, or the subset of at most `limit` that was evaluated."""
    n = int(metadata["rows"]["test"])
    rows = f"{n:,} held-out {'row' if n == 1 else 'rows'}"
    return f"the {rows}" if limit is None or n <= limit else f"some {limit} of the {rows}"
