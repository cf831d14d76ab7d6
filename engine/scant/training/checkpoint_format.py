"""What the header of a checkpoint or a model says, read without torch."""

from __future__ import annotations

import json
from typing import Any

FORMAT = 2  # of checkpoints; 2 since all trainers give their ELBO of the whole data set
OTHER_VERSION = (
    "This run was interrupted under another version of Scant, whose checkpoints cannot be "
    "continued; its figures stay. Start a new run with its settings."
)


def header(blob: bytes, key: str) -> dict[str, Any]:
    """The JSON value under `key` in the header of a safetensors blob."""
    size = int.from_bytes(blob[:8], "little")
    values: dict[str, Any] = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"][key])
    return values


def of_other_version(checkpoint: bytes) -> bool:
    """Whether another version of Scant wrote a checkpoint; what is none is for a worker to see."""
    try:
        return bool(header(checkpoint, "loop").get("format") != FORMAT)
    except (ValueError, KeyError):
        return False
