"""HDF5 by h5py: one table of a file, in any of the forms in which tables are stored.

These are a compound dataset (PyTables, `to_hdf(format="table", data_columns=True)`), a group of
columns of one length (RAIL's `tables_io`), a matrix, and pandas' own fixed form of numbers. pandas'
reader is not used: it unpickles what a file holds, and runs whatever code that contains.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats.registry import (
    Content,
    Format,
    Opener,
    Rows,
    Style,
    check_size,
    chosen,
)

EVERY = slice(None)  # row
_CHUNK = 8192  # rows of a column that lie together in a file
_MOST_OBJECTS = 50_000  # groups and datasets
_MOST_VALUES = 200  # of a row in a matrix that becomes as many columns


def _read(data: bytes, file: str, part: str) -> Content:
    with _opened(io.BytesIO(data), file) as opened:
        name, table, parts, notes = _chosen(opened, file, part)
        frame = pd.DataFrame(_columns(table, file))
    if not len(frame):
        raise BadInput(f"{file}, table {name!r} has no rows; add data.")
    return Content(frame, notes, parts if len(parts) > 1 else (), name)


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as source, _opened(source.stream, file) as opened:
        _, table, _, notes = _chosen(opened, file, part)
        total = _height(table)
        for start in range(0, total, rows):
            end = min(start + rows, total)
            frame = pd.DataFrame(_columns(table, file, slice(start, end)))
            yield Rows(frame, end / total, () if start else notes)


@contextmanager
def _opened(stream: BufferedIOBase, file: str) -> Iterator[Any]:
    import h5py

    try:
        with h5py.File(stream, "r") as opened:
            yield opened
    except BadInput:
        raise
    except Exception as error:  # HDF5 raises many kinds
        raise BadInput(f"{file} is a damaged HDF5 file, or none; write it again.") from error


def _chosen(opened: Any, file: str, part: str) -> tuple[str, Any, tuple[str, ...], tuple[str, ...]]:
    """The wanted table with its name, the names of all, and a note where one was chosen."""
    tables = _tables(opened, file)
    if not tables:
        raise BadInput(
            f"{file} holds no table: no dataset with fields, no columns of one length and "
            "no matrix; write one."
        )
    parts = tuple(tables)
    name = chosen(parts, part, file, "table")
    several = len(parts) > 1 and not part
    notes = (f"{file} holds {len(parts)} tables; {name!r} was read.",) if several else ()
    return name, tables[name], parts, notes


def _tables(opened: Any, file: str) -> dict[str, Any]:
    """What can be read as a table, by its path: datasets, and groups of datasets of one length."""
    import h5py

    made: dict[str, Any] = {}
    waiting, count = [opened], 0
    while waiting:
        group = waiting.pop(0)
        plain: dict[str, Any] = {}
        for name in group:
            count += 1
            if count > _MOST_OBJECTS:
                raise BadInput(f"{file} has more than {_MOST_OBJECTS:,} datasets; keep the table.")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue  # it leads elsewhere, perhaps to another file of this machine
            child = group[name]
            if isinstance(child, h5py.Dataset):
                if child.dtype.names or (child.ndim == 2 and child.dtype.kind in "iufb"):
                    made[child.name.strip("/")] = child
                plain[name] = child
            elif count < _MOST_OBJECTS:
                waiting.append(child)
        if table := _pandas_fixed(group, plain) or _even(plain):
            path = group.name.strip("/") or "/"
            own = {d.name.strip("/") for d in plain.values()}
            made = {n: d for n, d in made.items() if n not in own}
            made[path] = table
    return made


def _even(plain: dict[str, Any]) -> dict[str, Any]:
    """Datasets as columns of one length, matrices beside them as several; nothing otherwise."""
    flat = [d for d in plain.values() if d.ndim == 1 and not d.dtype.names]
    if len(plain) < 2 or not flat:
        return {}
    made: dict[str, Any] = {}
    for name, dataset in plain.items():
        if dataset.dtype.names or dataset.ndim not in (1, 2) or len(dataset) != len(flat[0]):
            return {}
        if dataset.ndim == 1:
            made[name] = dataset
        elif dataset.dtype.kind not in "iufb" or dataset.shape[1] > _MOST_VALUES:
            return {}
        else:
            made |= {f"{name}_{i + 1}": (dataset, i) for i in range(dataset.shape[1])}
    return made


def _pandas_fixed(group: Any, plain: dict[str, Any]) -> dict[str, Any]:
    """The blocks of a data frame that pandas wrote in its fixed form: names to (matrix, column)."""
    made: dict[str, Any] = {}
    for i in range(len(plain)):
        values, items = plain.get(f"block{i}_values"), plain.get(f"block{i}_items")
        if values is None or items is None or items.dtype.kind != "S" or values.ndim != 2:
            break
        for column, item in enumerate(items[:]):
            made[item.decode("utf-8", errors="replace")] = (values, column)
    return made


def _height(table: Any) -> int:
    first = next(iter(table.values())) if isinstance(table, dict) else table
    return int((first[0] if isinstance(first, tuple) else first).shape[0])


def _columns(table: Any, file: str, rows: slice = EVERY) -> dict[str, Any]:
    """The columns of a dataset, or of a group of them; of some rows."""
    made: dict[str, Any] = {}
    if isinstance(table, dict):
        check_size(file, len(range(*rows.indices(_height(table)))), len(table))
        blocks: dict[str, Any] = {}
        for name, column in table.items():
            if isinstance(column, tuple):
                values, at = column
                if values.name not in blocks:
                    blocks[values.name] = _cells(values, file, rows)
                made[name] = blocks[values.name][:, at]
            else:
                made[name] = _cells(column, file, rows)
        return made
    if table.dtype.names:
        cells = _cells(table, file, rows)
        for name in table.dtype.names:
            if cells[name].ndim != 1:
                raise BadInput(
                    f"{file}, table {table.name!r}: the field {name!r} holds several values a row; "
                    "write it with a column for each (in pandas: data_columns=True)."
                )
            made[name] = cells[name]
        if list(made)[:1] == ["index"] and "CLASS" in table.attrs:  # PyTables, as pandas writes
            del made["index"]
    else:
        cells = _cells(table, file, rows)
        made = {f"column {i + 1}": cells[:, i] for i in range(cells.shape[1])}
    return {n: _text(c) for n, c in made.items()}


def _cells(dataset: Any, file: str, rows: slice) -> np.ndarray:
    """Rows of a dataset in memory, once it is known that it fits and lies in this very file."""
    import h5py

    if dataset.external or dataset.is_virtual:
        raise BadInput(f"{file}, {dataset.name!r}: the data lie in another file; write one file.")
    kind, fields = dataset.dtype, len(dataset.dtype.names or ()) or 1
    first, last, _ = rows.indices(dataset.shape[0])
    cells = (last - first) * int(np.prod(dataset.shape[1:]))
    check_size(file, last - first, cells // max(last - first, 1) * fields)
    if cells * kind.itemsize > 4 * LIMIT_BYTES:
        size = cells * kind.itemsize / 1e6
        raise BadInput(f"{file} unpacks to {size:,.0f} MB; keep fewer rows.")
    if not kind.hasobject:
        return _text(dataset[rows])
    if kind.names or dataset.ndim != 1 or h5py.check_string_dtype(kind) is None:
        raise BadInput(
            f"{file}, {dataset.name!r}: its cells are neither numbers nor words; write plain ones."
        )
    # Many rows may share a long word: by pieces, so that no piece outgrows the limit.
    step, size, made = max(1, LIMIT_BYTES // dataset.file.id.get_filesize()), 0, []
    for start in range(first, last, step):
        made += dataset.asstr(errors="replace")[start : min(start + step, last)].tolist()
        size += sum(map(len, made[start - first :]))
        if size > LIMIT_BYTES:
            raise BadInput(f"{file} holds more than {LIMIT_BYTES / 1e6:,.0f} MB of words.")
    return np.array(made, dtype=object)


def _text(cells: np.ndarray) -> np.ndarray:
    """Words of fixed length as text; other cells as they are."""
    if cells.dtype.kind == "S":
        return np.char.decode(cells, "utf-8", errors="replace").astype(object)
    return cells


def _write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    import h5py

    with h5py.File(path, "w", track_order=True) as out:
        group, done = out.create_group("table", track_order=True), 0
        for frame in frames:
            for name in frame:
                own, column = str(name).replace("/", "∕"), frame[name]
                if own not in group:
                    group.create_dataset(
                        own, (0,), _kind(column), maxshape=(None,), chunks=(_CHUNK,)
                    )
                cells = group[own]
                cells.resize((done + len(frame),))
                cells[done:] = (
                    column.fillna("").astype(str).to_numpy(dtype=object)
                    if cells.dtype.hasobject
                    else column.to_numpy(dtype=cells.dtype, na_value=np.nan)
                )
            done += len(frame)


def _kind(column: pd.Series) -> Any:
    """The type of a column in a file; whole numbers, such as ids, keep all digits."""
    import h5py

    if not pd.api.types.is_numeric_dtype(column.dtype):
        return h5py.string_dtype()
    own = column.dtype
    return own if isinstance(own, np.dtype) and own.kind in "iu" else np.dtype(np.float64)


FORMATS = (
    Format(
        "HDF5",
        (".h5", ".hdf5", ".hdf"),
        _read,
        lambda data: data.startswith(b"\x89HDF"),
        _write,
        pieces=_pieces,
    ),
)
