"""What a file of annotations holds, checked entry by entry."""

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

LIMIT_BYTES = 50_000_000  # of a file of annotations
MOST = 200_000  # annotations of a file
LONGEST = 200  # characters of a class or a labeler
LONGEST_NAME = 500  # characters of a picture's name
MOST_SIDE = 1_000_000  # pixels: beyond it nothing is a place in a picture
_LATEST = 1e11  # seconds since 1970
_UPLOADED = re.compile(r"data/upload/(?:\d+/)?(?:[0-9a-f]{8}-)?(.+)")  # by Label Studio


@dataclass
class Entries:
    """The annotations of a file, and what was passed over.

    Attributes:
        file: What messages call it.
        annotations: In the order of the file.
        passed_over: How many there were of what is no box and no label of a whole picture.
        messages: Further notes.
    """

    file: str
    annotations: list[Annotation] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """A sentence on each kind of what was passed over."""
        counted = (f"{n:,} {what}" for what, n in self.passed_over.items())
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
        """Take one annotation.

        Args:
            where: The entry, as messages name it behind the file.
            picture: A name, a path or an address.
            label: The class.
            box: Left, top, width and height in pixels; what reaches out of the picture is cut off.
            size: Of the picture.
            labeler: Who gave it.
            created: When: seconds since 1970, or a date and time as ISO 8601 has them.
            unsure: Whether they were not sure.

        Raises:
            BadInput: A name or a class that is no text, numbers that are none, a box without
                width or height or outside of its picture, or too many entries.
        """
        if len(self.annotations) >= MOST:
            raise BadInput(f"{self.file} holds more than {MOST:,} annotations; give fewer.")
        at = f"{self.file}, {where}"
        own = None if size is None else _size(size, at)
        time = _time(created)
        if time is None and created not in (None, ""):
            self.passed_over["times could not be read and were left out"] += 1
        self.annotations.append(
            Annotation(
                picture_name(picture, at),
                text(label, f"{at}, class"),
                None if box is None else _box(box, own, at),
                own,
                text(labeler, f"{at}, labeler"),
                time,
                _yes(unsure),
            )
        )


def text(value: Any, where: str, longest: int = LONGEST) -> str:
    """A name on one line, without signs that cannot be seen.

    Raises:
        BadInput: It is neither text nor a whole number, or too long.
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: got {str(value)[:40]!r}; give a name.")
    plain = unicodedata.normalize("NFC", str(value)[: 4 * longest])
    seen = (" " if c.isspace() else c for c in plain if c.isspace() or _visible(c))
    made = " ".join("".join(seen).split())
    if len(made) > longest:
        raise BadInput(f"{where}: a name of over {longest} characters; shorten it.")
    return made


def picture_name(value: Any, where: str) -> str:
    """The name of a picture's file, from a name, a path or an address.

    It is only compared with names of files; none is ever opened by it. Folders that lead up are
    left out.

    Raises:
        BadInput: It is no text, or names nothing.
    """
    if not isinstance(value, str):
        raise BadInput(f"{where}: the picture is {str(value)[:40]!r}; give its file's name.")
    word = value.strip().replace("\\", "/")
    if "://" in word or word.startswith("/"):
        parts = urlsplit(word) if word.count("[") == word.count("]") == 0 else None
        path = word if parts is None else parts.path
        if parts is not None and parts.query.startswith("d="):  # Label Studio's local files
            path = parts.query[2:]
        word = unquote(path)
        if (uploaded := _UPLOADED.search(word)) is not None:
            word = uploaded[1]
    parts_of = (part.strip() for part in text(word, where, LONGEST_NAME).split("/"))
    made = "/".join(part for part in parts_of if part not in NOWHERE)
    if not made:
        raise BadInput(f"{where}: no picture is named; give the name of its file.")
    return made


NOWHERE = ("", ".", "..")  # folders of a path that are none


def number(value: Any, where: str) -> float:
    """A finite number that can be a place in a picture.

    Raises:
        BadInput: It is none.
    """
    made = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            made = float(value)
        except (ValueError, OverflowError):
            made = math.nan
    if not abs(made) <= MOST_SIDE:
        got = str(value)[:40]
        raise BadInput(f"{where}: got {got!r}; give a number of pixels.")
    return made


def moment(seconds: float) -> str:
    """A time as ISO 8601 has it, to the microsecond; `Entries.add` reads it."""
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
    drawn = f"{left:g}, {top:g}, {width:g}, {height:g}"
    if width <= 0 or height <= 0:
        raise BadInput(
            f"{where}: the box {drawn} has no width or no height; give left, top, width and height."
        )
    if size is None:
        return left, top, width, height
    right, bottom = min(left + width, size[0]), min(top + height, size[1])
    if left < 0 or top < 0 or right < left + width or bottom < top + height:
        left, top = max(left, 0.0), max(top, 0.0)
        width, height = round(right - left, 6), round(bottom - top, 6)
        if width <= 0 or height <= 0:
            raise BadInput(
                f"{where}: the box {drawn} lies outside of the picture of {size[0]:,} x "
                f"{size[1]:,} pixels; correct it."
            )
    return left, top, width, height


def _time(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            try:
                made = datetime.fromisoformat(value.strip())
                value = (made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError):
                return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LATEST else None


def _yes(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("1", "yes", "true", "y", "unsure")
    return bool(value)
