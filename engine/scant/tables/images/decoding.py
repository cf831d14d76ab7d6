"""Image files of any kind as upright pictures of 8 bits, red, green and blue or gray."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from scant.errors import BadInput
from scant.tables.column_matching import listed

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF")
# What zipfile and Pillow raise on damaged bytes (UnidentifiedImageError is an OSError).
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    RuntimeError,  # NotImplementedError among them
)
_DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")
_BITS = (12, 16)  # of pixels of 16 bits that are used: 12 by most microscopes and telescopes
_SEE_THROUGH = ("RGBA", "LA", "PA", "RGBa", "La")
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = (5, 6, 7, 8)
_OTHER_KINDS = (
    (b"RIFF", "WebP"), (b"%PDF", "a PDF document"), (b"<svg", "SVG"), (b"<?xml", "SVG or XML"),
    (b"<!doc", "a web page"), (b"<html", "a web page"), (b"8BPS", "Photoshop"),
    (b"PK\x03\x04", "a ZIP archive"), (b"\xff\x0a", "JPEG XL"), (b"v/1\x01", "OpenEXR"),
    (b"\x00\x00\x00\x0cjP", "JPEG 2000"), (b"SIMPLE", "FITS"),
)  # fmt: skip
TURNED = "turned upright, as their EXIF says"
DEEP = "brought from 16 bits a pixel to 8, by the bits that are used (12 or 16)"
FRAMES = "cut to their first frame or page: there are several"
CMYK = "converted from CMYK to RGB"
SEE_THROUGH = "laid on white where they are transparent"


class UnreadableImageError(ValueError):
    """An image that cannot be read, and why."""


@dataclass
class Conversions:
    """What was done to images, by what it was: their names."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, done: Sequence[str]) -> None:
        """Put down what was done to an image."""
        for what in done:
            self.names.setdefault(what, []).append(name)

    def notes(self, file: str) -> list[str]:
        """A sentence on each kind of conversion."""
        return [
            f"{file}: {len(names):,} image{'s were' if len(names) > 1 else ' was'} {what}: "
            f"{listed(names)}."
            for what, names in self.names.items()
        ]


@dataclass(frozen=True)
class Decoded:
    """An image as it is seen.

    Attributes:
        image: Upright, mode RGB or L.
        size: Width and height of the file's picture, upright; `image` may be smaller.
        turned: The EXIF orientation by which it was turned; 1 for none.
        done: What else was done to it, for `Conversions`.
    """

    image: Image.Image
    size: tuple[int, int]
    turned: int
    done: tuple[str, ...]


def decoded(content: bytes, name: str, most: int, near: tuple[int, int] | None = None) -> Decoded:
    """The picture of an image file.

    Args:
        content: PNG, JPEG, BMP, GIF or TIFF, whatever the file's name says.
        name: What messages call it.
        most: How many pixels it may have.
        near: A size that is enough: a JPEG file may be decoded at a fraction of its own, which is
            faster.

    Raises:
        BadInput: It is too large.
        UnreadableImageError: It is no image of these kinds, with the reason, ready for "because".
        Exception: Others of `BROKEN`, of damaged files.
    """
    done: list[str] = []
    if not content:
        raise UnreadableImageError("it is empty")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > most:
                raise BadInput(_too_large(name, f"{image.width:,} x {image.height:,}", most))
            if getattr(image, "is_animated", False) and image.format != "MPO":
                done.append(FRAMES)
            size = image.size
            if near is not None:
                image.draft(None, near)
            fraction = image.size != size
            image.load()
            turned = _orientation(image)
            made = _eight_bits(image, done)
    except Image.DecompressionBombError:
        raise BadInput(_too_large(name, "far too many", most)) from None
    except UnidentifiedImageError:
        raise UnreadableImageError(_kind(content)) from None
    except OSError as error:
        if "truncated" in str(error):
            raise UnreadableImageError("it is cut off") from None
        raise
    if turned in _TURNS:
        made = made.transpose(_TURNS[turned])
        done.append(TURNED)
    if not fraction:
        size = made.size
    elif turned in _SIDEWAYS:
        size = size[::-1]
    return Decoded(made, size, turned, tuple(done))


def why(error: BaseException) -> str:
    """Why an image cannot be read, in brackets; "" where there is no more to say."""
    return f" ({error})" if isinstance(error, UnreadableImageError) else ""


def _too_large(name: str, pixels: str, most: int) -> str:
    return f"{name} has {pixels} pixels and the limit is {most:,}; make it smaller."


def _eight_bits(image: Image.Image, done: list[str]) -> Image.Image:
    if image.mode in _DEEP:
        values = np.asarray(image).astype(np.int64)
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        if low < 0 or high >= 1 << _BITS[-1]:
            raise UnreadableImageError("its pixels have 32 bits; save it with 8 or 16")
        done.append(DEEP)
        bits = next(b for b in _BITS if high < 1 << b)
        return Image.fromarray((values >> (bits - 8)).astype(np.uint8))
    if image.mode == "F":
        raise UnreadableImageError("its pixels are floating-point numbers; save 8 or 16 bits")
    if image.mode in _SEE_THROUGH or "transparency" in image.info:
        layer = image.convert("RGBA")
        if np.asarray(layer.getchannel("A")).min() < 255:
            done.append(SEE_THROUGH)
            paper = Image.new("RGBA", layer.size, "white")
            paper.alpha_composite(layer)
            return paper.convert("RGB")
    if image.mode == "CMYK":
        done.append(CMYK)
    return image.convert("L" if image.mode in ("L", "1", "LA") else "RGB")


def _orientation(image: Image.Image) -> int:
    """How EXIF says that a picture lies; 1 where it says nothing that can be read."""
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except (*BROKEN, KeyError, TypeError, IndexError):
        return 1
    return value if isinstance(value, int) and value in _TURNS else 1


def _kind(content: bytes) -> str:
    """What a file is that is none of the images that are read."""
    start = content[:300].lstrip(b"\xef\xbb\xbf \r\n\t")
    named: Mapping[bytes, str] = dict(_OTHER_KINDS)
    if content[4:8] == b"ftyp":
        return "it is HEIC, AVIF or a video; save it as JPEG or PNG"
    for mark, kind in named.items():
        if start[: len(mark)].lower() == mark.lower():
            return f"it is {kind}; save it as JPEG or PNG"
    return "it is damaged, or of another kind; save it as JPEG or PNG"
