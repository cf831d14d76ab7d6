"""Label of a picture or a box in it, independent of the file format."""

from __future__ import annotations

from dataclasses import dataclass, replace

Box = tuple[float, float, float, float]  # left, top, width, height
DECIMALS = 6  # decimals of a pixel; further ones are rounding errors of percentages


@dataclass(frozen=True)
class Annotation:
    """Label of a picture or a box in it.

    Attributes:
        picture: File name of the picture.
        label: Class; "" for an unlabeled box.
        box: Left, top, width and height in pixels of the picture; None for the whole picture.
        size: Width and height of the picture in pixels; None if unknown. With (1, 1) the box is
            relative to a picture of unknown size, as in YOLO.
        labeler: Name of the annotator; "" if unknown.
        created: Unix time in seconds; None if unknown.
        unsure: True if the annotator was uncertain.
    """

    picture: str
    label: str
    box: Box | None = None
    size: tuple[int, int] | None = None
    labeler: str = ""
    created: float | None = None
    unsure: bool = False

    def on(self, size: tuple[int, int]) -> Annotation:
        """Return a copy with the box rescaled to another size of the picture."""
        if self.size in (None, size) or self.box is None:
            return replace(self, size=size)
        assert self.size is not None
        scale_x, scale_y = size[0] / self.size[0], size[1] / self.size[1]
        left, top, width, height = self.box
        return replace(
            self,
            size=size,
            box=rounded((left * scale_x, top * scale_y, width * scale_x, height * scale_y)),
        )


def rounded(box: Box) -> Box:
    """Round a box to remove rounding errors of percentages."""
    left, top, width, height = (round(v, DECIMALS) for v in box)
    return left, top, width, height
