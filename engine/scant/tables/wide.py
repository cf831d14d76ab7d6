"""Conversion of wide tables to long ones with one value for each row.

Gene expression is measured in samples, each at one time and in one replica. Such tables have rows
for genes and columns for samples (such as "24h_rep1"), or the other way around.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from scant.tables.cells import Cells, from_text
from scant.tables.column_matching import is_identifier, suggest
from scant.tables.dates import are_dates
from scant.tables.schema import TableSchema

_UNIT = r"h|hr|hrs|hours?|min|mins|minutes?|d|days?|s|sec|w|wk|weeks?|hpf|hpi|dpf|dpi|m|months?"
_WORD = r"t|tp|time|timepoint|day|d|hour|h|hr|week|wk|w|stage|min|month"
_TIME = re.compile(
    rf"(?i)(?<![a-z0-9.])(?:(?:{_WORD})[ _=.-]?(\d+(?:\.\d+)?)(?:{_UNIT})?"
    rf"|(\d+(?:\.\d+)?)[ _]?(?:{_UNIT}))(?![a-z0-9])"
)
_NUMBER = re.compile(r"([a-z]*)[ _.#-]?(\d+(?:\.\d+)?)", re.IGNORECASE)
_REPLICA = {"rep", "r", "replicate", "embryo", "e", "sample", "subject", "mouse", "bio", "b", "run"}
_EDGES = " _-.:/|()[]"
_MAX_CHARACTERS = 500  # of a sample's name; the search takes minutes for base64 images


class Sample(NamedTuple):
    """Time and replica of a sample."""

    x: float
    replica: str


def samples(names: Sequence[str]) -> list[Sample] | None:
    """Parse time and replica from the names of samples, such as "WT_24h_2".

    The replica is the remainder of the name. Returns None if the names have no times.
    """
    if any(len(name) > _MAX_CHARACTERS for name in names):
        return None
    matches = [_TIME.search(name) for name in names]
    if all(matches):
        parsed = [_sample(n, m.span(), m[1] or m[2]) for n, m in zip(names, matches) if m]
    else:
        numbers = [list(_NUMBER.finditer(name)) for name in names]
        count = {len(n) for n in numbers}
        if count != {2}:
            return None
        positions = [i for i in range(2) if not any(n[i][1].lower() in _REPLICA for n in numbers)]
        if not positions:
            return None
        position = max(positions, key=lambda i: len({n[i][2] for n in numbers}))
        parsed = [
            _sample(name, n[position].span(2), n[position][2]) for name, n in zip(names, numbers)
        ]
    return parsed if len({s.x for s in parsed}) > 1 and len(set(parsed)) == len(parsed) else None


def long_form(
    cells: Mapping[str, Cells], rows: Int[np.ndarray, " n"], schema: TableSchema
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str] | None:
    """Convert a wide table to the columns output, replica, x and y.

    Returns:
        Columns, row numbers in the file, and a note; None if the table is not wide.
    """
    mapping = suggest(list(cells), schema)
    columns = {to: cells[name] for name, to in mapping.items()}
    if "y" in columns:
        return None
    values = [
        c for n, c in cells.items()
        if mapping[n] == n and not c.is_text and not c.empty.all() and not is_identifier(n)
    ]  # fmt: skip
    text_columns = [c for n, c in cells.items() if c.is_text and not are_dates(c)]
    if "x" not in columns and len(values) > 2 and text_columns:
        parsed = samples([c.name for c in values])
        if parsed:
            genes = columns.get("output", text_columns[0])
            return _long(values, [s.x for s in parsed], [s.replica for s in parsed], genes, rows)
    if "output" in columns or len(values) < 2:
        return None
    x, replicas = columns.get("x"), columns.get("replica")
    if x is None:
        source = replicas or (text_columns[0] if text_columns else None)
        parsed = samples([str(w) for w in source.labels()]) if source is not None else None
        if parsed is None:
            return None
        times, replica_names = [s.x for s in parsed], [s.replica for s in parsed]
    else:
        if are_dates(x):
            return None
        times = x.values.tolist()
        replicas = replicas or (text_columns[0] if len(text_columns) == 1 else None)
        replica_names = (
            _occurrences(times) if replicas is None else [str(w) for w in replicas.labels()]
        )
    if len(set(replica_names)) < 2:
        return None
    return _turned(values, times, replica_names, rows)


def tasks(
    cells: Mapping[str, Cells], rows: Int[np.ndarray, " n"], mapping: Mapping[str, str]
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], dict[str, str]]:
    """Concatenate several columns that are mapped to y, as one task for each header.

    With a task column, each pair of task and header is a task. Tables with at most one such column
    are returned unchanged.
    """
    values = [c for n, c in cells.items() if mapping.get(n, n) == "y"]
    if len(values) < 2:
        return dict(cells), rows, dict(mapping)
    k = len(values)
    task_column = next((c for n, c in cells.items() if mapping.get(n, n) == "task"), None)
    replaced = {c.name for c in (*values, *([task_column] if task_column else []))} | {"task", "y"}
    tiled = {
        n: replace(
            c,
            values=np.tile(c.values, k),
            empty=np.tile(c.empty, k),
            bad=np.tile(c.bad, k),
            text=None if c.text is None else pa.concat_arrays([c.text] * k),
        )
        for n, c in cells.items()
        if n not in replaced
    }
    prefixes = (
        [""] * len(rows)
        if task_column is None
        else [f"{w} · " if w else "" for w in task_column.labels()]
    )
    task = pa.array([f"{w}{c.name}" for c in values for w in prefixes], pa.string())
    stacked = {"task": from_text("task", task), "y": _joined("y", values)}
    remaining = {n: to for n, to in mapping.items() if n not in replaced}
    return {**tiled, **stacked}, np.tile(rows, k), remaining


def _long(
    values: Sequence[Cells],
    x: Sequence[float],
    replicas: Sequence[str],
    genes: Cells,
    rows: Int[np.ndarray, " n"],
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str]:
    """Convert a table with rows for genes and columns for samples."""
    n = len(rows)
    output = pa.array(np.tile(genes.labels(), len(values)), pa.string(), from_pandas=True)
    replica = pa.array(np.repeat(replicas, n), pa.string())
    note = f"a column for each sample: {n:,} outputs in {len(values):,} samples"
    return _stacked(
        values, output, replica, np.repeat(np.array(x), n), np.tile(rows, len(values)), note
    )


def _turned(
    values: Sequence[Cells],
    x: Sequence[float],
    replicas: Sequence[str],
    rows: Int[np.ndarray, " n"],
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str]:
    """Convert a table with rows for samples and columns for genes."""
    n = len(rows)
    output = pa.array(np.repeat([c.name for c in values], n), pa.string())
    replica = pa.array(np.tile(replicas, len(values)), pa.string())
    note = f"a column for each output: {len(values):,} outputs in {n:,} samples"
    return _stacked(
        values, output, replica, np.tile(np.array(x), len(values)), np.tile(rows, len(values)), note
    )


def _stacked(
    values: Sequence[Cells],
    output: pa.Array,
    replica: pa.Array,
    x: np.ndarray,
    rows: Int[np.ndarray, " m"],
    note: str,
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str]:
    none_bad = np.zeros(len(x), dtype=bool)
    columns = {
        "output": from_text("output", output.fill_null("")),
        "replica": from_text("replica", replica),
        "x": Cells("x", x, np.isnan(x), none_bad),
        "y": _joined("y", values),
    }
    return columns, rows, f"it has {note}; it was reshaped to one value per row"


def _joined(name: str, columns: Sequence[Cells]) -> Cells:
    """Concatenate columns."""
    numbers, empty, bad = (
        np.concatenate([getattr(c, part) for c in columns]) for part in ("values", "empty", "bad")
    )
    texts = [c.text for c in columns]
    text = None if any(t is None for t in texts) else pa.concat_arrays(texts)
    return Cells(name, numbers, empty, bad, text)


def _sample(name: str, span: tuple[int, int], x: str) -> Sample:
    rest = f"{name[: span[0]].rstrip(_EDGES)} {name[span[1] :].lstrip(_EDGES)}".strip(_EDGES)
    return Sample(float(x), rest or "1")


def _occurrences(times: Sequence[float]) -> list[str]:
    """Number the rows of each time, as names of replicas."""
    count: dict[float, int] = {}
    names = []
    for time in times:
        count[time] = count.get(time, 0) + 1
        names.append(str(count[time]))
    return names
