"""Wide tables turned long, one value a row: outputs in replicas, and several values of a box.

Genes are measured in samples, each at a time and in a replica. In the tables of that field genes
are rows and samples columns ("24h_rep1"), or samples rows and genes columns.
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
_LONGEST = 500  # characters of a sample's name; of images in base64 the search takes minutes


class Sample(NamedTuple):
    """What the name of a sample says."""

    x: float
    replica: str


def samples(names: Sequence[str]) -> list[Sample] | None:
    """Time and replica of samples by their names ("WT_24h_2"); None where they tell no times.

    The replica is what the name says beside the time.
    """
    if any(len(name) > _LONGEST for name in names):
        return None
    found = [_TIME.search(name) for name in names]
    if all(found):
        made = [_sample(n, m.span(), m[1] or m[2]) for n, m in zip(names, found) if m]
    else:
        numbers = [list(_NUMBER.finditer(name)) for name in names]
        count = {len(n) for n in numbers}
        if count != {2}:
            return None
        places = [i for i in range(2) if not any(n[i][1].lower() in _REPLICA for n in numbers)]
        if not places:
            return None
        place = max(places, key=lambda i: len({n[i][2] for n in numbers}))
        made = [_sample(name, n[place].span(2), n[place][2]) for name, n in zip(names, numbers)]
    return made if len({s.x for s in made}) > 1 and len(set(made)) == len(made) else None


def long_form(
    cells: Mapping[str, Cells], rows: Int[np.ndarray, " n"], schema: TableSchema
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str] | None:
    """The columns output, replica, x and y of a wide table, the row of each, and what was done.

    None where the table is no wide one.
    """
    mapping = suggest(list(cells), schema)
    columns = {to: cells[name] for name, to in mapping.items()}
    if "y" in columns:
        return None
    values = [
        c for n, c in cells.items()
        if mapping[n] == n and not c.is_text and not c.empty.all() and not is_identifier(n)
    ]  # fmt: skip
    named = [c for n, c in cells.items() if c.is_text and not are_dates(c)]
    if "x" not in columns and len(values) > 2 and named:
        timed = samples([c.name for c in values])
        if timed:
            genes = columns.get("output", named[0])
            return _long(values, [s.x for s in timed], [s.replica for s in timed], genes, rows)
    if "output" in columns or len(values) < 2:
        return None
    x, replicas = columns.get("x"), columns.get("replica")
    if x is None:
        source = replicas or (named[0] if named else None)
        timed = samples([str(w) for w in source.labels()]) if source is not None else None
        if timed is None:
            return None
        times, repeats = [s.x for s in timed], [s.replica for s in timed]
    else:
        if are_dates(x):
            return None
        times = x.values.tolist()
        replicas = replicas or (named[0] if len(named) == 1 else None)
        repeats = _occurrences(times) if replicas is None else [str(w) for w in replicas.labels()]
    if len(set(repeats)) < 2:
        return None
    return _turned(values, times, repeats, rows)


def tasks(
    cells: Mapping[str, Cells], rows: Int[np.ndarray, " n"], mapping: Mapping[str, str]
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], dict[str, str]]:
    """Columns that are all mapped to y below each other, each a task of its own by its header.

    Beside a column of tasks a task is a pair of both. Without several such columns all comes back
    as it was.
    """
    values = [c for n, c in cells.items() if mapping.get(n, n) == "y"]
    if len(values) < 2:
        return dict(cells), rows, dict(mapping)
    k = len(values)
    outer = next((c for n, c in cells.items() if mapping.get(n, n) == "task"), None)
    named = {c.name for c in (*values, *([outer] if outer else []))} | {"task", "y"}
    repeated = {
        n: replace(
            c,
            values=np.tile(c.values, k),
            empty=np.tile(c.empty, k),
            bad=np.tile(c.bad, k),
            text=None if c.text is None else pa.concat_arrays([c.text] * k),
        )
        for n, c in cells.items()
        if n not in named
    }
    within = [""] * len(rows) if outer is None else [f"{w} · " if w else "" for w in outer.labels()]
    task = pa.array([f"{w}{c.name}" for c in values for w in within], pa.string())
    made = {"task": from_text("task", task), "y": _joined("y", values)}
    kept = {n: to for n, to in mapping.items() if n not in named}
    return {**repeated, **made}, np.tile(rows, k), kept


def _long(
    values: Sequence[Cells],
    x: Sequence[float],
    replicas: Sequence[str],
    genes: Cells,
    rows: Int[np.ndarray, " n"],
) -> tuple[dict[str, Cells], Int[np.ndarray, " m"], str]:
    """Of genes in rows and samples in columns."""
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
    """Of samples in rows and genes in columns."""
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
    nothing = np.zeros(len(x), dtype=bool)
    made = {
        "output": from_text("output", output.fill_null("")),
        "replica": from_text("replica", replica),
        "x": Cells("x", x, np.isnan(x), nothing),
        "y": _joined("y", values),
    }
    return made, rows, f"it has {note}; it was turned long, one value a row"


def _joined(name: str, columns: Sequence[Cells]) -> Cells:
    """Columns below each other."""
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
    """How often each time was there before: rows of the same time are different replicas."""
    count: dict[float, int] = {}
    made = []
    for time in times:
        count[time] = count.get(time, 0) + 1
        made.append(str(count[time]))
    return made
