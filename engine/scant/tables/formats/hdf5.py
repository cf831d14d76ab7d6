"""Tables in HDF5 files with h5py.

Supported are compound datasets (PyTables, `to_hdf(format="table", data_columns=True)`), groups of
columns of equal length (`tables_io` of RAIL), matrices, and numbers in the fixed format of pandas.
The reader of pandas is not used, because it unpickles content, which can run arbitrary code.
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

ALL_ROWS = slice(None)
_CHUNK = 8192  # rows of a chunk of a written column
_MAX_OBJECTS = 50_000  # groups and datasets of a file
_MAX_VALUES = 200  # columns of a matrix in a group


def _read(data: bytes, file: str, part: str) -> Content:
    with _opened(io.BytesIO(data), file) as opened:
        name, table, parts, notes = _select_table(opened, file, part)
        frame = pd.DataFrame(_columns(table, file))
    if not len(frame):
        raise BadInput(f"{file}, table {name!r} has no rows; add data.")
    return Content(frame, notes, parts if len(parts) > 1 else (), name)


def _pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    with open_file() as source, _opened(source.stream, file) as opened:
        _, table, _, notes = _select_table(opened, file, part)
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
        raise BadInput(f"{file} is damaged or not an HDF5 file; write it again.") from error


def _select_table(
    opened: Any, file: str, part: str
) -> tuple[str, Any, tuple[str, ...], tuple[str, ...]]:
    """Return the name of the selected table, the table, the names of all tables, and notes."""
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
    """Return datasets and groups that can be read as tables, by path."""
    import h5py

    tables: dict[str, Any] = {}
    groups, count = [opened], 0
    while groups:
        group = groups.pop(0)
        datasets: dict[str, Any] = {}
        for name in group:
            count += 1
            if count > _MAX_OBJECTS:
                raise BadInput(f"{file} has more than {_MAX_OBJECTS:,} datasets; keep the table.")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue  # links may lead to other files
            child = group[name]
            if isinstance(child, h5py.Dataset):
                if child.dtype.names or (child.ndim == 2 and child.dtype.kind in "iufb"):
                    tables[child.name.strip("/")] = child
                datasets[name] = child
            elif count < _MAX_OBJECTS:
                groups.append(child)
        if table := _pandas_fixed(group, datasets) or _equal_length(datasets):
            path = group.name.strip("/") or "/"
            column_paths = {d.name.strip("/") for d in datasets.values()}
            tables = {n: d for n, d in tables.items() if n not in column_paths}
            tables[path] = table
    return tables


def _equal_length(datasets: dict[str, Any]) -> dict[str, Any]:
    """Return datasets of equal length as columns, matrices split; empty if lengths differ."""
    flat = [d for d in datasets.values() if d.ndim == 1 and not d.dtype.names]
    if len(datasets) < 2 or not flat:
        return {}
    columns: dict[str, Any] = {}
    for name, dataset in datasets.items():
        if dataset.dtype.names or dataset.ndim not in (1, 2) or len(dataset) != len(flat[0]):
            return {}
        if dataset.ndim == 1:
            columns[name] = dataset
        elif dataset.dtype.kind not in "iufb" or dataset.shape[1] > _MAX_VALUES:
            return {}
        else:
            columns |= {f"{name}_{i + 1}": (dataset, i) for i in range(dataset.shape[1])}
    return columns


def _pandas_fixed(group: Any, datasets: dict[str, Any]) -> dict[str, Any]:
    """Return (matrix, column index) by name for a data frame in the fixed format of pandas."""
    columns: dict[str, Any] = {}
    for i in range(len(datasets)):
        values, items = datasets.get(f"block{i}_values"), datasets.get(f"block{i}_items")
        if values is None or items is None or items.dtype.kind != "S" or values.ndim != 2:
            break
        for column, item in enumerate(items[:]):
            columns[item.decode("utf-8", errors="replace")] = (values, column)
    return columns


def _height(table: Any) -> int:
    first = next(iter(table.values())) if isinstance(table, dict) else table
    return int((first[0] if isinstance(first, tuple) else first).shape[0])


def _columns(table: Any, file: str, rows: slice = ALL_ROWS) -> dict[str, Any]:
    """Read some rows of a dataset or a group of datasets as columns."""
    columns: dict[str, Any] = {}
    if isinstance(table, dict):
        check_size(file, len(range(*rows.indices(_height(table)))), len(table))
        blocks: dict[str, Any] = {}
        for name, column in table.items():
            if isinstance(column, tuple):
                values, index = column
                if values.name not in blocks:
                    blocks[values.name] = _cells(values, file, rows)
                columns[name] = blocks[values.name][:, index]
            else:
                columns[name] = _cells(column, file, rows)
        return columns
    if table.dtype.names:
        cells = _cells(table, file, rows)
        for name in table.dtype.names:
            if cells[name].ndim != 1:
                raise BadInput(
                    f"{file}, table {table.name!r}: the field {name!r} holds several values per "
                    "row; write it with a column for each (in pandas: data_columns=True)."
                )
            columns[name] = cells[name]
        if list(columns)[:1] == ["index"] and "CLASS" in table.attrs:  # PyTables, as pandas writes
            del columns["index"]
    else:
        cells = _cells(table, file, rows)
        columns = {f"column {i + 1}": cells[:, i] for i in range(cells.shape[1])}
    return {n: _text(c) for n, c in columns.items()}


def _cells(dataset: Any, file: str, rows: slice) -> np.ndarray:
    """Read rows of a dataset after a check of its size and that it is stored in this file."""
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
    # Rows may share a long word, so blocks are read that stay below the limit.
    step, size, words = max(1, LIMIT_BYTES // dataset.file.id.get_filesize()), 0, []
    for start in range(first, last, step):
        words += dataset.asstr(errors="replace")[start : min(start + step, last)].tolist()
        size += sum(map(len, words[start - first :]))
        if size > LIMIT_BYTES:
            raise BadInput(f"{file} holds more than {LIMIT_BYTES / 1e6:,.0f} MB of words.")
    return np.array(words, dtype=object)


def _text(cells: np.ndarray) -> np.ndarray:
    """Decode text of fixed length; other cells are returned unchanged."""
    if cells.dtype.kind == "S":
        return np.char.decode(cells, "utf-8", errors="replace").astype(object)
    return cells


def _write(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    import h5py

    with h5py.File(path, "w", track_order=True) as out:
        group, rows_written = out.create_group("table", track_order=True), 0
        for frame in frames:
            for name in frame:
                safe_name, column = str(name).replace("/", "∕"), frame[name]
                if safe_name not in group:
                    group.create_dataset(
                        safe_name, (0,), _kind(column), maxshape=(None,), chunks=(_CHUNK,)
                    )
                cells = group[safe_name]
                cells.resize((rows_written + len(frame),))
                cells[rows_written:] = (
                    column.fillna("").astype(str).to_numpy(dtype=object)
                    if cells.dtype.hasobject
                    else column.to_numpy(dtype=cells.dtype, na_value=np.nan)
                )
            rows_written += len(frame)


def _kind(column: pd.Series) -> Any:
    """Return the dtype of a written column; integers keep all digits."""
    import h5py

    if not pd.api.types.is_numeric_dtype(column.dtype):
        return h5py.string_dtype()
    dtype = column.dtype
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "iu" else np.dtype(np.float64)


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
