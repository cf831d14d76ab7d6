"""Names of the held-out rows behind the omniglot page's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scant_dashboard.translate import ntr, tr

MAX_SNAPSHOT_ROWS = 150  # maximum held-out rows evaluated during training (tested)
SHOT_ROWS = 400  # the same in queries with fewer shots (tested)


def held_out(metadata: Mapping[str, Any], limit: int | None = None) -> str:
    """Describe the held-out rows of a run, or the subset of at most `limit` that was evaluated."""
    n = int(metadata["rows"]["test"])
    if limit is None or n <= limit:
        return ntr("the {n:,} held-out row", "the {n:,} held-out rows", n)
    return tr("{limit:,} of the {n:,} held-out rows", limit=limit, n=n)
