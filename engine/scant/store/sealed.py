"""Blobs with a checksum, so that damage is detected before use.

A sealed blob is a mark, the SHA-256 of its content, and the content. Blobs of version 0.1 have no
seal; of them only what is cut short is known to be damaged.
"""

from __future__ import annotations

import hashlib
import json

from scant.errors import BadInput

_MARK = b"\x89scant\x1a\x01"
_DIGEST = hashlib.sha256().digest_size


class Damaged(BadInput):
    """A blob in the database is not what was put there. The message names the thing."""


def seal(blob: bytes) -> bytes:
    """The blob as it is stored."""
    return _MARK + hashlib.sha256(blob).digest() + blob


def unseal(stored: bytes, what: str) -> bytes:
    """The blob that was stored.

    Args:
        stored: What stands in the database.
        what: Its name in the sentence, for instance "The model of run abc".

    Raises:
        Damaged: It is not what was stored.
    """
    stored = bytes(stored)
    if stored.startswith(_MARK):
        start = len(_MARK) + _DIGEST
        blob = stored[start:]
        whole = hashlib.sha256(blob).digest() == stored[len(_MARK) : start]
    else:
        blob, whole = stored, _is_whole(stored)
    if not whole:
        raise Damaged(f"{what} is damaged in the database and cannot be used.")
    return blob


def _is_whole(blob: bytes) -> bool:
    """Whether a safetensors blob without a seal is as long as its header says."""
    size = int.from_bytes(blob[:8], "little")
    try:
        header = json.loads(blob[8 : 8 + size])
        ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
    return len(blob) == 8 + size + max(ends, default=0)
