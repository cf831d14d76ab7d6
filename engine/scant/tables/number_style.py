"""Detection of decimal and thousands separators, for a whole file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_GROUPS = r"^[+-]?[1-9]\d{0,2}(MARK\d{3})+(POINT\d+)?$"
# Numbers in which a mark can only be a decimal or only a thousands separator.
_ONLY_DECIMAL = r"^[+-]?(\d+MARK(\d{1,2}|\d{4,})|0\d*MARK\d+|\d{4,}MARK\d+|\d+MARK\d+[eE][+-]?\d+)$"
_ONLY_THOUSANDS = r"^[+-]?\d{1,3}((MARK\d{3}){2,}(POINT\d+)?|(MARK\d{3})+POINT\d+)$"
_EITHER = r"^[+-]?[1-9]\d{0,2}MARK\d{3}$"
_SPACED = "^[+-]?\\d{1,3}([ '’\u00a0\u202f]\\d{3})+([.,]\\d+)?$"
_HEAD = 1000  # cells searched first for a decimal point


@dataclass(frozen=True)
class NumberStyle:
    """Decimal and thousands separators of a file.

    Attributes:
        decimal: "." or ",".
        thousands: ",", "." or "" (none).
        note: Sentence on the separators; "" for plain decimal points.
        unsure: An ambiguous cell as (column, position), if nothing determines the style.
        mixed: True if the file has both decimal commas and commas for thousands.
    """

    decimal: str = "."
    thousands: str = ""
    note: str = ""
    unsure: tuple[str, int] | None = None
    mixed: bool = False

    def plain(self, text: pa.StringArray) -> pa.StringArray:
        """Convert the numbers in cells to Python's format."""
        text = pc.replace_substring(text, "−", "-")  # the typographic minus of some spreadsheets
        text = _where(text, _SPACED, pc.replace_substring_regex(text, "[ '’\u00a0\u202f]", ""))
        if self.thousands:
            bare = pc.replace_substring(text, self.thousands, "")
            text = _where(text, _pattern(_GROUPS, self.thousands), bare)
        if self.decimal == ",":
            text = _where(
                text, r"^[+-]?\d*,\d+([eE][+-]?\d+)?$", pc.replace_substring(text, ",", ".")
            )
        return text


POINTS = NumberStyle()


def number_style(
    columns: Mapping[str, pa.StringArray], delimiter: str, decimal: str | None = None
) -> NumberStyle:
    """Detect the style of a file's numbers.

    A mark followed by one, two or four digits is a decimal separator, a repeated mark is a
    thousands separator, and either determines the other mark. If every mark is followed by three
    digits, the delimiter decides, and `unsure` names a cell.

    Args:
        columns: Cells as text.
        delimiter: Delimiter of the file; with commas, decimal commas are rare.
        decimal: "." or "," if given by the user.
    """
    if decimal:
        return NumberStyle(decimal, "," if decimal == "." else ".", _note(decimal, "other"))
    comma = {n: c for n, c in columns.items() if _has(c, ",")}
    by_comma = any(_any(c, _pattern(_ONLY_DECIMAL, ",")) for c in comma.values())
    grouped = any(_any(c, _pattern(_ONLY_THOUSANDS, ",")) for c in comma.values())
    if by_comma and grouped:
        return NumberStyle(unsure=_first(comma, _either(",")), mixed=True)
    if grouped:
        return NumberStyle(".", ",", _note(".", ","))
    if not comma and delimiter == ",":
        return POINTS
    points = any(_decimal_points(c) for c in columns.values())
    if not by_comma and (points or delimiter == ","):
        at = _first(comma, _pattern(_EITHER, ","))
        unsure = None if points else at
        return POINTS if at is None else NumberStyle(".", ",", _note(".", ","), unsure)
    dotted = [c for c in columns.values() if not points and _has(c, ".")]
    repeated = any(_any(c, _pattern(_ONLY_THOUSANDS, ".")) for c in dotted)
    if by_comma or repeated:
        marks = "" if points else "."
        used = any(_any(c, _pattern(_GROUPS, ".")) for c in dotted)
        return NumberStyle(",", marks, _note(",", marks if used else ""))
    for mark in ",.":
        at = _first(columns, _pattern(_EITHER, mark))
        if at is not None:
            is_group = _beside_small(columns[at[0]])
            point = mark if not is_group else "." if mark == "," else ","
            return NumberStyle(point, "," if point == "." else ".", _note(point, mark), at)
    return NumberStyle()


def _note(decimal: str, thousands: str) -> str:
    if decimal == "," and thousands:
        return "Commas inside numbers were read as decimal points, points as thousands separators."
    if decimal == ",":
        return "Commas inside numbers were read as decimal points."
    return "Commas inside numbers were read as thousands separators." if thousands == "," else ""


def _pattern(pattern: str, mark: str) -> str:
    other = "." if mark == "," else ","
    return pattern.replace("MARK", f"[{mark}]").replace("POINT", f"[{other}]")


def _either(mark: str) -> str:
    return f"{_pattern(_EITHER, mark)}|{_pattern(_GROUPS, mark)}|^[+-]?\\d*,\\d+$"


def _decimal_points(text: pa.StringArray) -> bool:
    """Return True if a column has numbers whose point can only be a decimal point."""
    pattern = _pattern(_ONLY_DECIMAL, ".")
    return _any(text[:_HEAD], pattern) or (_has(text, ".") and _any(text, pattern))


def _beside_small(text: pa.StringArray) -> bool:
    """Return True if all numbers without a mark are below 1000, as with thousands separators."""
    return _any(text, r"^[+-]?\d{1,3}$") and not _any(text, r"^[+-]?\d{4,}$")


def _first(columns: Mapping[str, pa.StringArray], pattern: str) -> tuple[str, int] | None:
    for name, text in columns.items():
        at = pc.index(pc.match_substring_regex(text, pattern), True).as_py()
        if at >= 0:
            return name, int(at)
    return None


def _has(text: pa.StringArray, mark: str) -> bool:
    return bool(pc.any(pc.match_substring(text, mark)).as_py())


def _any(text: pa.StringArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _where(text: pa.StringArray, pattern: str, other: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.match_substring_regex(text, pattern), other, text)
