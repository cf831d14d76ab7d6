"""Which picture an annotation is of, and which box."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
from jaxtyping import Float

OVERLAP = 0.5  # intersection over union, from which two boxes are of the same thing


class Names:
    """Finds pictures by names that other programs gave them.

    Folders in front may be missing on either side, and the ending too, as long as only one picture
    answers to what is left. Capitals do not count.

    Args:
        names: Of the pictures, with their folders.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._of: dict[str, int | None] = {}
        for ending in (True, False):  # names with their endings come first
            made: dict[str, int | None] = {}
            for i, name in enumerate(names):
                for key in _ends(name, ending):
                    made[key] = i if made.get(key, i) == i else None
            self._of = made | self._of
        self._of |= {_key(name): i for i, name in enumerate(names)}

    def find(self, picture: str) -> int | None:
        """The number of the picture; None where there is none, or several."""
        for ending in (True, False):
            for key in _ends(picture, ending):
                if key in self._of:
                    return self._of[key]
        return None


def _ends(name: str, ending: bool) -> list[str]:
    """The whole name, then with fewer and fewer folders in front."""
    path = PurePosixPath(_key(name))
    parts = (path if ending or not path.suffix else path.with_suffix("")).parts
    return ["/".join(parts[i:]) for i in range(len(parts))]


def _key(name: str) -> str:
    return unquote(name).replace("\\", "/").strip("/").casefold()


def overlaps(
    boxes: Float[np.ndarray, "n 4"], others: Float[np.ndarray, "m 4"]
) -> Float[np.ndarray, "n m"]:
    """Intersection over union of boxes, each left, top, width and height."""
    a, b = boxes[:, None, :], others[None, :, :]
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:])
    both = np.clip(high - low, 0, None).prod(-1)
    union = a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - both
    return np.asarray(both / np.where(union > 0, union, 1.0))
