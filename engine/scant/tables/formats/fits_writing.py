"""FITS tables written piece by piece: how many rows there are is known at last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.tables.formats.registry import Style

BLOCK = 2880  # bytes, of which headers and data are multiples
AT_ONCE = 1 << 24  # bytes of rows
_NONE = -(2**63)  # stands for a whole number that is not there


def astropy_fits(file: str) -> Any:
    """astropy's module for FITS, an optional package.

    Raises:
        BadInput: It is not installed.
    """
    try:
        from astropy.io import fits
    except ImportError:
        raise BadInput(
            f'{file} is a FITS file, for which astropy is needed: pip install "scant-gp[astro]".'
        ) from None
    return fits


def write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    """Write a binary table: whole numbers and words as such, other numbers as floats.

    Arguments are those of `Format.write`. A name or word that is not ASCII is changed, as FITS
    allows no other.

    Raises:
        BadInput: astropy is not installed.
    """
    fits = astropy_fits(path.name)
    primary = fits.PrimaryHDU().header.tostring().encode("ascii")
    kind: np.dtype | None = None
    header, done = b"", 0
    with path.open("w+b") as out:
        for frame in frames:
            rows = _packed(frame, kind)
            if kind is None:
                header = _header(fits, rows.dtype, 0)
                out.write(primary + header)
            elif rows.dtype != kind:
                _widen(out, len(primary) + len(header), kind, rows.dtype, done)
            kind = rows.dtype
            out.seek(len(primary) + len(header) + done * kind.itemsize)
            out.write(rows.tobytes())
            done += len(rows)
        assert kind is not None
        out.write(bytes(-out.tell() % BLOCK))
        out.seek(len(primary))
        out.write(_header(fits, kind, done))


def _header(fits: Any, kind: np.dtype, rows: int) -> bytes:
    """The header of a table of so many rows; as long whatever their number."""
    hdu = fits.BinTableHDU(np.zeros(0, kind), name="TABLE")
    for place, name in enumerate(kind.names or (), start=1):
        if kind[name].kind == "i":
            hdu.header.set(f"TNULL{place}", _NONE, after=f"TFORM{place}")
    hdu.header["NAXIS2"] = rows
    made: str = hdu.header.tostring()
    return made.encode("ascii")


def _packed(frame: pd.DataFrame, kind: np.dtype | None) -> np.ndarray:
    """Rows as they lie in a file: as those above them, with more room for longer words."""
    columns: list[np.ndarray] = []
    for place, (_, column) in enumerate(frame.items()):
        known = kind[place] if kind is not None else None
        code = known.kind if known is not None else _code(column.dtype)
        if code == "S":
            words = column.astype(object).where(column.notna(), "").astype(str)
            cells = np.array([w.encode("ascii", "replace") for w in words], dtype="S")
            room = cells.dtype.itemsize if known is None else known.itemsize
            if cells.dtype.itemsize > room:
                room = max(cells.dtype.itemsize, 2 * room)
            columns.append(cells.astype(f"S{max(room, 1)}"))
        elif code == "i":
            columns.append(column.astype("Int64").to_numpy(">i8", na_value=_NONE))
        else:
            own = column.dtype if known is None else known
            size = max(4, getattr(own, "itemsize", 8))
            columns.append(column.to_numpy(f">f{size}", na_value=np.nan))
    names = list(kind.names or ()) if kind is not None else _names(frame)
    rows = np.empty(len(frame), [(n, c.dtype) for n, c in zip(names, columns)])
    for name, cells in zip(names, columns):
        rows[name] = cells
    return rows


def _code(kind: Any) -> str:
    """What a column is written as: whole numbers, such as ids, keep all digits."""
    if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_integer_dtype(kind):
        return "S" if pd.api.types.is_unsigned_integer_dtype(kind) and kind.itemsize > 4 else "i"
    return "f" if pd.api.types.is_float_dtype(kind) else "S"


def _names(frame: pd.DataFrame) -> list[str]:
    """Names of columns in ASCII, all different, whatever their case."""
    made: dict[str, str] = {}
    for column in frame:
        plain = re.sub(r"[^ -~]", "_", str(column))
        tries = (f"{plain}_{i}" if i else plain for i in count())
        name = next(n for n in tries if n.lower() not in made)
        made[name.lower()] = name
    return list(made.values())


def _widen(out: Any, start: int, old: np.dtype, new: np.dtype, rows: int) -> None:
    """Give rows that are written the room of others: from the last ones on, none is overwritten."""
    step = max(1, AT_ONCE // new.itemsize)
    for first in range((rows - 1) // step * step, -1, -step):
        size = min(step, rows - first)
        out.seek(start + first * old.itemsize)
        own = np.frombuffer(out.read(size * old.itemsize), old).astype(new)
        out.seek(start + first * new.itemsize)
        out.write(own.tobytes())
