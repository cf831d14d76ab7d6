"""Writing of FITS tables in blocks; the number of rows is added to the header at the end."""

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

BLOCK = 2880  # bytes; size unit of headers and data
MAX_BYTES = 1 << 24  # bytes of rows processed at once
_NULL = -(2**63)  # code for missing integers


def astropy_fits(file: str) -> Any:
    """Import the FITS module of astropy, an optional package.

    Raises:
        BadInput: astropy is not installed.
    """
    try:
        from astropy.io import fits
    except ImportError:
        raise BadInput(
            f'{file} is a FITS file, for which astropy is needed: pip install "scant-gp[astro]".'
        ) from None
    return fits


def write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    """Write a binary table of integers, floats and text.

    Arguments are those of `Format.write`. Characters other than ASCII are replaced, since FITS does
    not support them.

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
    """Return the header, whose length does not depend on the number of rows."""
    hdu = fits.BinTableHDU(np.zeros(0, kind), name="TABLE")
    for position, name in enumerate(kind.names or (), start=1):
        if kind[name].kind == "i":
            hdu.header.set(f"TNULL{position}", _NULL, after=f"TFORM{position}")
    hdu.header["NAXIS2"] = rows
    text: str = hdu.header.tostring()
    return text.encode("ascii")


def _packed(frame: pd.DataFrame, kind: np.dtype | None) -> np.ndarray:
    """Pack rows with the dtype of earlier rows, widened for longer text."""
    columns: list[np.ndarray] = []
    for position, (_, column) in enumerate(frame.items()):
        earlier = kind[position] if kind is not None else None
        code = earlier.kind if earlier is not None else _code(column.dtype)
        if code == "S":
            texts = column.astype(object).where(column.notna(), "").astype(str)
            cells = np.array([w.encode("ascii", "replace") for w in texts], dtype="S")
            width = cells.dtype.itemsize if earlier is None else earlier.itemsize
            if cells.dtype.itemsize > width:
                width = max(cells.dtype.itemsize, 2 * width)
            columns.append(cells.astype(f"S{max(width, 1)}"))
        elif code == "i":
            columns.append(column.astype("Int64").to_numpy(">i8", na_value=_NULL))
        else:
            dtype = column.dtype if earlier is None else earlier
            size = max(4, getattr(dtype, "itemsize", 8))
            columns.append(column.to_numpy(f">f{size}", na_value=np.nan))
    names = list(kind.names or ()) if kind is not None else _names(frame)
    rows = np.empty(len(frame), [(n, c.dtype) for n, c in zip(names, columns)])
    for name, cells in zip(names, columns):
        rows[name] = cells
    return rows


def _code(kind: Any) -> str:
    """Return the kind of a written column; large unsigned integers are text to keep all digits."""
    if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_integer_dtype(kind):
        return "S" if pd.api.types.is_unsigned_integer_dtype(kind) and kind.itemsize > 4 else "i"
    return "f" if pd.api.types.is_float_dtype(kind) else "S"


def _names(frame: pd.DataFrame) -> list[str]:
    """Convert column names to ASCII, unique without regard to case."""
    names: dict[str, str] = {}
    for column in frame:
        plain = re.sub(r"[^ -~]", "_", str(column))
        candidates = (f"{plain}_{i}" if i else plain for i in count())
        name = next(n for n in candidates if n.lower() not in names)
        names[name.lower()] = name
    return list(names.values())


def _widen(out: Any, start: int, old: np.dtype, new: np.dtype, rows: int) -> None:
    """Rewrite the rows with a wider dtype, from the last block to the first."""
    step = max(1, MAX_BYTES // new.itemsize)
    for first in range((rows - 1) // step * step, -1, -step):
        size = min(step, rows - first)
        out.seek(start + first * old.itemsize)
        block = np.frombuffer(out.read(size * old.itemsize), old).astype(new)
        out.seek(start + first * new.itemsize)
        out.write(block.tobytes())
