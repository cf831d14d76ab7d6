"""Names of the held-out rows behind the omniglot page's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOOKED = 150  # held-out rows at most that a run looks at while it trains; a test holds it
SHOT_ROWS = 400  # and when it is asked for less; another number of the study's


def held_out(metadata: Mapping[str, Any], most: int | None = None) -> str:
    """The held-out rows of a run, or the part of them that was looked at."""
    n = int(metadata["rows"]["test"])
    many = f"{n:,} held-out {'row' if n == 1 else 'rows'}"
    return f"the {many}" if most is None or n <= most else f"some {most} of the {many}"
