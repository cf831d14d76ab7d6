"""A question that a room is asked, and what counts as an answer to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from scant.errors import BadInput

Vote = float | tuple[float, float]
LONGEST_SIDE = 640  # pixels of a picture that phones load


@dataclass(frozen=True)
class Question:
    """What is asked: a choice, a point on a picture, or else a number.

    Attributes:
        text: The question.
        choices: What may be chosen; an answer is the number of one of them, counted from 0.
        span: Least and most of a number, and its step.
        start: Where a slider stands at first.
        unit: Stands behind numbers.
        digits: Of numbers, after the point.
        picture: A JPEG file to touch, b"" for none; an answer is the share of its width from the
            left, and of its height from the top.
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
        """`number`, `choice` or `point`."""
        return "choice" if self.choices else "point" if self.picture else "number"

    def vote(self, raw: object) -> Vote:
        """An answer as it came from a browser.

        Raises:
            BadInput: It is none to this question.
        """
        least, most, _ = self.span
        if self.kind == "point":
            if isinstance(raw, list) and len(raw) == 2 and all(_between(v, 0, 1) for v in raw):
                return float(raw[0]), float(raw[1])
            raise BadInput("Give a point as two shares of the picture, each from 0 to 1.")
        if self.kind == "choice":
            if type(raw) is int and 0 <= raw < len(self.choices):
                return float(raw)
            raise BadInput(f"Choose one of {', '.join(self.choices)}.")
        if _between(raw, least, most):
            return float(raw)  # type: ignore[arg-type]
        raise BadInput(f"Give a number from {least:g} to {most:g}.")

    def written(self) -> dict[str, Any]:
        """What a phone needs to ask it, the picture apart."""
        return {
            "kind": self.kind, "text": self.text, "choices": self.choices, "span": self.span,
            "start": self.start, "unit": self.unit, "digits": self.digits,
        }  # fmt: skip


def _between(raw: object, least: float, most: float) -> bool:
    """Whether it is a number (no bool, no NaN) in these bounds."""
    return type(raw) in (int, float) and least <= raw <= most  # type: ignore[operator]


def jpeg(image: UInt8[np.ndarray, "h w 3"]) -> bytes:
    """An image as a small file."""
    made = Image.fromarray(np.ascontiguousarray(image))
    made.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = BytesIO()
    made.save(file, "JPEG", quality=80)
    return file.getvalue()


def pixels(picture: bytes) -> UInt8[np.ndarray, "h w 3"]:
    """The image of a file that `jpeg` made."""
    return np.asarray(Image.open(BytesIO(picture)).convert("RGB"))


def within(vote: Vote, band: Sequence[float]) -> bool:
    """Whether an answer lies in a band: low and high, or the sides of a box from left and top."""
    if isinstance(vote, tuple):
        left, top, right, bottom = band
        return left <= vote[0] <= right and top <= vote[1] <= bottom
    return band[0] <= vote <= band[1]
