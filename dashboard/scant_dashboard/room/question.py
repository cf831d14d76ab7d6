"""Questions to a room, and validation of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from scant.errors import BadInput
from scant_dashboard.translate import tr

Vote = float | tuple[float, float]
LONGEST_SIDE = 640  # maximum pixels of pictures for phones


@dataclass(frozen=True)
class Question:
    """A question for a choice, a point on a picture, or a number.

    Attributes:
        text: The question.
        choices: Labels of the choices; an answer is the index of one of them.
        span: Minimum, maximum and step of a number.
        start: Initial value of the slider.
        unit: Unit of numbers, shown after them.
        digits: Number of decimals.
        picture: A JPEG file on which to choose a point, b"" for none; an answer is the fraction of
            its width from the left and of its height from the top.
    """

    text: str
    choices: tuple[str, ...] = ()
    span: tuple[float, float, float] = (0, 100, 1)
    start: float = 50
    unit: str = ""
    digits: int = 0
    picture: bytes = b""

    @property
    def kind(self) -> str:
        """Kind of the answer: `number`, `choice` or `point`."""
        return "choice" if self.choices else "point" if self.picture else "number"

    def vote(self, raw: object) -> Vote:
        """Parse an answer from a browser.

        Raises:
            BadInput: It is no answer to this question.
        """
        low, high, _ = self.span
        if self.kind == "point":
            if isinstance(raw, list) and len(raw) == 2 and all(_between(v, 0, 1) for v in raw):
                return float(raw[0]), float(raw[1])
            raise BadInput(tr("Give a point as two shares of the picture, each from 0 to 1."))
        if self.kind == "choice":
            if type(raw) is int and 0 <= raw < len(self.choices):
                return float(raw)
            raise BadInput(tr("Choose one of {choices}.", choices=", ".join(self.choices)))
        if _between(raw, low, high):
            return float(raw)  # type: ignore[arg-type]
        raise BadInput(tr("Give a number from {low:g} to {high:g}.", low=low, high=high))

    def to_json(self) -> dict[str, Any]:
        """Return the question for a phone, without the picture."""
        return {
            "kind": self.kind, "text": self.text, "choices": self.choices, "span": self.span,
            "start": self.start, "unit": self.unit, "digits": self.digits,
        }  # fmt: skip


def _between(raw: object, low: float, high: float) -> bool:
    """Whether `raw` is a number (no bool, no NaN) within the bounds."""
    return type(raw) in (int, float) and low <= raw <= high  # type: ignore[operator]


def jpeg(image: UInt8[np.ndarray, "h w 3"]) -> bytes:
    """Encode an image as a small JPEG file."""
    made = Image.fromarray(np.ascontiguousarray(image))
    made.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = BytesIO()
    made.save(file, "JPEG", quality=80)
    return file.getvalue()


def pixels(picture: bytes) -> UInt8[np.ndarray, "h w 3"]:
    """Decode a file made by `jpeg`."""
    return np.asarray(Image.open(BytesIO(picture)).convert("RGB"))


def within(vote: Vote, band: Sequence[float]) -> bool:
    """Whether an answer lies in a band: (low, high), or (left, top, right, bottom) of a box."""
    if isinstance(vote, tuple):
        left, top, right, bottom = band
        return left <= vote[0] <= right and top <= vote[1] <= bottom
    return band[0] <= vote <= band[1]
