"""Decoding of image files to upright 8-bit pictures in RGB or gray."""

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
# Exceptions of zipfile and Pillow for damaged content; UnidentifiedImageError is an OSError.
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
_BITS = (12, 16)  # used bits of 16-bit pixels; most microscopes and telescopes use 12
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
DEEP = "converted from 16 bits per pixel to 8, by the bits that are used (12 or 16)"
FRAMES = "cut to their first frame or page: there are several"
CMYK = "converted from CMYK to RGB"
SEE_THROUGH = "laid on white where they are transparent"


class UnreadableImageError(ValueError):
    """Error for an unreadable image, with the reason as message."""


@dataclass
class Conversions:
    """Names of converted images, by kind of conversion."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, done: Sequence[str]) -> None:
        """Record the conversions of an image."""
        for conversion in done:
            self.names.setdefault(conversion, []).append(name)

    def notes(self, file: str) -> list[str]:
        """Return one sentence for each kind of conversion."""
        return [
            f"{file}: {len(names):,} image{'s were' if len(names) > 1 else ' was'} {conversion}: "
            f"{listed(names)}."
            for conversion, names in self.names.items()
        ]


@dataclass(frozen=True)
class Decoded:
    """Decoded image.

    Attributes:
        image: Upright image with mode RGB or L.
        size: Original upright width and height in pixels; `image` may be smaller.
        turned: EXIF orientation of the file; 1 for upright.
        done: Conversions, as in `Conversions`.
    """

    image: Image.Image
    size: tuple[int, int]
    turned: int
    done: tuple[str, ...]


def decoded(content: bytes, name: str, most: int, near: tuple[int, int] | None = None) -> Decoded:
    """Decode an image file.

    Args:
        content: Content of a PNG, JPEG, BMP, GIF or TIFF file.
        name: Name of the file for messages.
        most: Maximum number of pixels.
        near: Sufficient width and height; JPEG files may be decoded at a lower resolution, which is
            faster.

    Raises:
        BadInput: The image is too large.
        UnreadableImageError: The file has an unsupported format; the message is the reason.
        Exception: Another type in `BROKEN`, for damaged files.
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
            is_reduced = image.size != size
            image.load()
            turned = _orientation(image)
            upright = _eight_bits(image, done)
    except Image.DecompressionBombError:
        raise BadInput(_too_large(name, "far too many", most)) from None
    except UnidentifiedImageError:
        raise UnreadableImageError(_kind(content)) from None
    except OSError as error:
        if "truncated" in str(error):
            raise UnreadableImageError("it is cut off") from None
        raise
    if turned in _TURNS:
        upright = upright.transpose(_TURNS[turned])
        done.append(TURNED)
    if not is_reduced:
        size = upright.size
    elif turned in _SIDEWAYS:
        size = size[::-1]
    return Decoded(upright, size, turned, tuple(done))


def why(error: BaseException) -> str:
    """Return the reason for an unreadable image in parentheses; "" if unknown."""
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
            background = Image.new("RGBA", layer.size, "white")
            background.alpha_composite(layer)
            return background.convert("RGB")
    if image.mode == "CMYK":
        done.append(CMYK)
    return image.convert("L" if image.mode in ("L", "1", "LA") else "RGB")


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1 if it is absent or invalid."""
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except (*BROKEN, KeyError, TypeError, IndexError):
        return 1
    return value if isinstance(value, int) and value in _TURNS else 1


def _kind(content: bytes) -> str:
    """Describe the format of an unsupported file."""
    start = content[:300].lstrip(b"\xef\xbb\xbf \r\n\t")
    signatures: Mapping[bytes, str] = dict(_OTHER_KINDS)
    if content[4:8] == b"ftyp":
        return "it is HEIC, AVIF or a video; save it as JPEG or PNG"
    for signature, kind in signatures.items():
        if start[: len(signature)].lower() == signature.lower():
            return f"it is {kind}; save it as JPEG or PNG"
    return "it is damaged, or of another kind; save it as JPEG or PNG"
