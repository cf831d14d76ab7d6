"""Reading of the headers of checkpoints and models, without PyTorch."""

from __future__ import annotations

import json
from typing import Any

FORMAT = 2  # version of checkpoints; 2 since trainers return the ELBO of all rows
OTHER_VERSION = (
    "This run was interrupted under another version of Scant, whose checkpoints cannot be "
    "continued; its figures stay. Start a new run with its settings."
)


def header(blob: bytes, key: str) -> dict[str, Any]:
    """Return the JSON value of `key` in the header of a safetensors blob."""
    size = int.from_bytes(blob[:8], "little")
    values: dict[str, Any] = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"][key])
    return values


def of_other_version(checkpoint: bytes) -> bool:
    """Return True for a checkpoint of another version of Scant; False for an invalid one."""
    try:
        return bool(header(checkpoint, "loop").get("format") != FORMAT)
    except (ValueError, KeyError):
        return False
