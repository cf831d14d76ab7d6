"""Matching of pictures by name and of boxes by overlap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
from jaxtyping import Float

OVERLAP = 0.5  # minimum intersection over union of boxes of the same object


class Names:
    """Index of pictures by name.

    Leading folders and the extension may be missing on either side if the match is unique. Case is
    ignored.

    Args:
        names: Paths of the pictures.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._index: dict[str, int | None] = {}
        for with_extension in (True, False):  # matches with extension take precedence
            index: dict[str, int | None] = {}
            for i, name in enumerate(names):
                for key in _suffixes(name, with_extension):
                    index[key] = i if index.get(key, i) == i else None
            self._index = index | self._index
        self._index |= {_key(name): i for i, name in enumerate(names)}

    def find(self, picture: str) -> int | None:
        """Return the index of the picture; None unless the match is unique."""
        for with_extension in (True, False):
            for key in _suffixes(picture, with_extension):
                if key in self._index:
                    return self._index[key]
        return None


def _suffixes(name: str, with_extension: bool) -> list[str]:
    """Return the path and its suffixes with fewer folders."""
    path = PurePosixPath(_key(name))
    parts = (path if with_extension or not path.suffix else path.with_suffix("")).parts
    return ["/".join(parts[i:]) for i in range(len(parts))]


def _key(name: str) -> str:
    return unquote(name).replace("\\", "/").strip("/").casefold()


def overlaps(
    boxes: Float[np.ndarray, "n 4"], others: Float[np.ndarray, "m 4"]
) -> Float[np.ndarray, "n m"]:
    """Compute the intersection over union of boxes, each with left, top, width and height."""
    a, b = boxes[:, None, :], others[None, :, :]
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:])
    intersection = np.clip(high - low, 0, None).prod(-1)
    union = a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - intersection
    return np.asarray(intersection / np.where(union > 0, union, 1.0))
