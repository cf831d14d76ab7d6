"""Validation of the entries of an annotation file."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from scant.errors import BadInput
from scant.tables.annotations.annotation import Annotation, Box, rounded

LIMIT_BYTES = 50_000_000  # maximum size of an annotation file
MOST = 200_000  # maximum number of annotations of a file
MAX_CHARACTERS = 200  # of a class or a labeler
MAX_NAME_CHARACTERS = 500  # of the name of a picture
MAX_PIXELS = 1_000_000  # maximum coordinate in a picture
_MAX_TIME = 1e11  # Unix time in seconds
_UPLOADED = re.compile(
    r"data/upload/(?:\d+/)?(?:[0-9a-f]{8}-)?(.+)"
)  # path of an upload in Label Studio


@dataclass
class Entries:
    """Annotations of a file and counts of ignored entries.

    Attributes:
        file: Name of the file for messages.
        annotations: Annotations in the order of the file.
        passed_over: Numbers of ignored entries by description.
        messages: Further notes.
    """

    file: str
    annotations: list[Annotation] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """Sentences on the kinds of ignored entries."""
        counted = (f"{description}: {n:,}" for description, n in self.passed_over.items())
        return [f"{self.file}: {message}." for message in (*self.messages, *counted)]

    def add(
        self,
        where: str,
        picture: Any,
        label: Any,
        box: Sequence[Any] | None = None,
        size: Sequence[Any] | None = None,
        *,
        labeler: Any = "",
        created: Any = None,
        unsure: Any = False,
    ) -> None:
        """Validate and add an annotation.

        Args:
            where: Position of the entry in the file for messages.
            picture: Name, path or URL of the picture.
            label: Class.
            box: Left, top, width and height in pixels; the box is clipped to the picture.
            size: Width and height of the picture in pixels.
            labeler: Name of the annotator.
            created: Unix time in seconds, or date and time in ISO 8601.
            unsure: True if the annotator was uncertain.

        Raises:
            BadInput: A name or class is not text, a number is invalid, the box is empty or outside
                the picture, or there are too many entries.
        """
        if len(self.annotations) >= MOST:
            raise BadInput(f"{self.file} holds more than {MOST:,} annotations; give fewer.")
        location = f"{self.file}, {where}"
        dimensions = None if size is None else _size(size, location)
        time = _time(created)
        if time is None and created not in (None, ""):
            self.passed_over["unreadable times, which were left out"] += 1
        self.annotations.append(
            Annotation(
                picture_name(picture, location),
                text(label, f"{location}, class"),
                None if box is None else _box(box, dimensions, location),
                dimensions,
                text(labeler, f"{location}, labeler"),
                time,
                _yes(unsure),
            )
        )


def text(value: Any, where: str, longest: int = MAX_CHARACTERS) -> str:
    """Normalize a name to one line without invisible characters.

    Raises:
        BadInput: The value is neither text nor an integer, or is too long.
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: got {str(value)[:40]!r}; give a name.")
    normalized = unicodedata.normalize("NFC", str(value)[: 4 * longest])
    visible = (" " if c.isspace() else c for c in normalized if c.isspace() or _visible(c))
    name = " ".join("".join(visible).split())
    if len(name) > longest:
        raise BadInput(f"{where}: a name of over {longest} characters; shorten it.")
    return name


def picture_name(value: Any, where: str) -> str:
    """Return the path of a picture from a name, path or URL, without references to parent folders.

    The result is only compared with names of files and never opened.

    Raises:
        BadInput: The value is not text or is empty.
    """
    if not isinstance(value, str):
        raise BadInput(f"{where}: the picture is {str(value)[:40]!r}; give its file's name.")
    name = value.strip().replace("\\", "/")
    if "://" in name or name.startswith("/"):
        parts = urlsplit(name) if name.count("[") == name.count("]") == 0 else None
        path = name if parts is None else parts.path
        if parts is not None and parts.query.startswith("d="):  # Label Studio's local files
            path = parts.query[2:]
        name = unquote(path)
        if (uploaded := _UPLOADED.search(name)) is not None:
            name = uploaded[1]
    parts_of = (part.strip() for part in text(name, where, MAX_NAME_CHARACTERS).split("/"))
    joined = "/".join(part for part in parts_of if part not in NOWHERE)
    if not joined:
        raise BadInput(f"{where}: no picture is named; give the name of its file.")
    return joined


NOWHERE = ("", ".", "..")  # parts of a path that are not folders


def number(value: Any, where: str) -> float:
    """Convert to a finite number of pixels.

    Raises:
        BadInput: The value is not a number or is too large.
    """
    result = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            result = float(value)
        except (ValueError, OverflowError):
            result = math.nan
    if not abs(result) <= MAX_PIXELS:
        got = str(value)[:40]
        raise BadInput(f"{where}: got {got!r}; give a number of pixels.")
    return result


def moment(seconds: float) -> str:
    """Format a Unix time in ISO 8601 with microseconds, as `Entries.add` reads it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _visible(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")


def _size(size: Sequence[Any], where: str) -> tuple[int, int]:
    width, height = (number(v, f"{where}, size of the picture") for v in size)
    if min(width, height) < 1:
        raise BadInput(f"{where}: a picture of {width:g} x {height:g} pixels; give its size.")
    return round(width), round(height)


def _box(box: Sequence[Any], size: tuple[int, int] | None, where: str) -> Box:
    if len(box) != 4:
        raise BadInput(f"{where}: a box of {len(box)} numbers; give left, top, width and height.")
    left, top, width, height = rounded(
        (number(box[0], where), number(box[1], where), number(box[2], where), number(box[3], where))
    )
    shown = f"{left:g}, {top:g}, {width:g}, {height:g}"
    if width <= 0 or height <= 0:
        raise BadInput(
            f"{where}: the box {shown} has no width or no height; give left, top, width and height."
        )
    if size is None:
        return left, top, width, height
    right, bottom = min(left + width, size[0]), min(top + height, size[1])
    if left < 0 or top < 0 or right < left + width or bottom < top + height:
        left, top = max(left, 0.0), max(top, 0.0)
        width, height = round(right - left, 6), round(bottom - top, 6)
        if width <= 0 or height <= 0:
            raise BadInput(
                f"{where}: the box {shown} lies outside of the picture of {size[0]:,} x "
                f"{size[1]:,} pixels; correct it."
            )
    return left, top, width, height


def _time(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            try:
                parsed = datetime.fromisoformat(value.strip())
                value = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError):
                return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_TIME else None


def _yes(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("1", "yes", "true", "y", "unsure")
    return bool(value)
