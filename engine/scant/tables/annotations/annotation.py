"""One label of one place in one picture, as every format of annotations is read and written."""

from __future__ import annotations

from dataclasses import dataclass, replace

Box = tuple[float, float, float, float]  # left, top, width, height
DECIMALS = 6  # of a pixel: below them is rounding, of percents and shares


@dataclass(frozen=True)
class Annotation:
    """A label that somebody gave.

    Attributes:
        picture: The name of the picture's file.
        label: The class; "" where a box has been drawn and nobody has labeled it.
        box: Left, top, width and height in pixels of the whole picture; None: the whole picture.
        size: Width and height of the whole picture in pixels; None where nobody knows. (1, 1): the
            box is in shares of a picture whose size the file does not say (YOLO).
        labeler: Who gave it; "" where nobody says.
        created: When, in seconds since 1970; None where nobody says.
        unsure: Whether they said that they were not sure.
    """

    picture: str
    label: str
    box: Box | None = None
    size: tuple[int, int] | None = None
    labeler: str = ""
    created: float | None = None
    unsure: bool = False

    def on(self, size: tuple[int, int]) -> Annotation:
        """The same label on the picture at another size, which has perhaps been reduced since."""
        if self.size in (None, size) or self.box is None:
            return replace(self, size=size)
        assert self.size is not None
        across, down = size[0] / self.size[0], size[1] / self.size[1]
        left, top, width, height = self.box
        return replace(
            self, size=size, box=rounded((left * across, top * down, width * across, height * down))
        )


def rounded(box: Box) -> Box:
    """A box without the rounding errors of percents and shares."""
    left, top, width, height = (round(v, DECIMALS) for v in box)
    return left, top, width, height
