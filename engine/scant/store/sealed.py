"""Blobs with a checksum, to detect damage before use.

A sealed blob consists of a signature, the SHA-256 of the content, and the content. Blobs of version
0.1 have no checksum and are only checked for truncation.
"""

from __future__ import annotations

import hashlib
import json

from scant.errors import BadInput

_MARK = b"\x89scant\x1a\x01"
_DIGEST = hashlib.sha256().digest_size


class Damaged(BadInput):
    """Error for a damaged blob in the database, which is named in the message."""


def seal(blob: bytes) -> bytes:
    """Add signature and checksum to a blob."""
    return _MARK + hashlib.sha256(blob).digest() + blob


def unseal(stored: bytes, what: str) -> bytes:
    """Check and return the content of a sealed blob.

    Args:
        stored: Sealed blob.
        what: Description for the message, such as "The model of run abc".

    Raises:
        Damaged: The blob is damaged.
    """
    stored = bytes(stored)
    if stored.startswith(_MARK):
        start = len(_MARK) + _DIGEST
        blob = stored[start:]
        is_intact = hashlib.sha256(blob).digest() == stored[len(_MARK) : start]
    else:
        blob, is_intact = stored, _is_whole(stored)
    if not is_intact:
        raise Damaged(f"{what} is damaged in the database and cannot be used.")
    return blob


def _is_whole(blob: bytes) -> bool:
    """Return True if an unsealed safetensors blob has the length in its header."""
    size = int.from_bytes(blob[:8], "little")
    try:
        header = json.loads(blob[8 : 8 + size])
        ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
    return len(blob) == 8 + size + max(ends, default=0)
