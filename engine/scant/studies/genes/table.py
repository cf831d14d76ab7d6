"""Tables of outputs in replicas: the long form, its arrays, held-out replicas.

A row is one value `y` of one `output` at the input `x` in one of its replicas. A replica belongs to
its output; replicas of the same name in two outputs are of the same sample (one embryo, one trial),
like the expression of many genes. `TABLE` lists the columns of a file, so that the common reader
(`scant.tables.read.read_table`) checks it cell by cell; `of` converts such a table to arrays,
`Replicas.frame` converts arrays to a table. `x` and `y` are in the table's units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.studies.query import names_in
from scant.studies.split import COLUMNS, TEST, marks
from scant.tables.as_finite import finite
from scant.tables.column_matching import listed
from scant.tables.schema import Column, RowNumbers, TableSchema

Rows = Bool[np.ndarray, " n"]

NEW = -1  # index of a replica without training rows
SPLITS = ("as marked", "half of the points", "one replica of each output")

TABLE = TableSchema(
    columns=(
        Column(
            "output",
            "label",
            required=False,
            default="all",
            doc="what was measured: a gene, a channel, a sensor",
            aliases=("gene", "channel", "sensor", "series", "probe", "task"),
        ),
        Column(
            "replica",
            "label",
            minimum_levels=2,
            doc="which repetition the row belongs to; the same name in two outputs says that both "
            "were measured on the same sample",
            aliases=("replicate", "repetition", "repeat", "trial", "embryo", "subject", "sample"),
        ),
        Column(
            "x",
            dates=True,
            doc="the input, such as a time; replicas need not share theirs",
            aliases=("time", "time_h", "time_s", "hour", "hours", "frame", "t", "age"),
        ),
        Column(
            "y",
            target=True,
            doc="the value",
            aliases=("value", "expression", "expression_level", "level", "angle"),
        ),
        Column(
            "test",
            "label",
            required=False,
            missing=True,
            levels=("0", "1"),
            synonyms=(("false", "0"), ("no", "0"), ("true", "1"), ("yes", "1")),
            doc="1 keeps a row out of training, to be predicted and scored; empty: 0",
            aliases=("held_out", "heldout"),
        ),
        *COLUMNS,
    ),
    replicas=True,
    minimum_rows=4,
)


@dataclass(frozen=True)
class Replicas:
    """Values of outputs in replicas, as arrays in the order of the table's rows.

    Attributes:
        outputs: Names of the outputs, in order of first appearance.
        replicas: Names of each output's replicas, in order of first appearance in the table.
        samples: Names of all replicas; one name is one sample in all outputs.
        output: Index into `outputs`.
        replica: Index into `replicas[output]`; `NEW` without training rows.
        sample: Index into `samples`; `NEW` without training rows.
        x: Inputs.
        y: Values; NaN in rows that are only predicted.
        test: Rows that are held out of training.
    """

    outputs: list[str]
    replicas: list[list[str]]
    samples: list[str]
    output: Int[np.ndarray, " n"]
    replica: Int[np.ndarray, " n"]
    sample: Int[np.ndarray, " n"]
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    test: Bool[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.x)

    def frame(self) -> pd.DataFrame:
        """Convert to a table in long form, if all replicas are known; `of` is the inverse."""
        columns: dict[str, object] = {
            "output": [self.outputs[d] for d in self.output],
            "replica": [self.samples[s] for s in self.sample],
            "x": self.x,
            "y": self.y,
        }
        if self.test.any():
            columns["test"] = self.test.astype(np.int64)
        return pd.DataFrame(columns)


def of(
    frame: pd.DataFrame,
    outputs: Sequence[str] | None = None,
    replicas: Sequence[Sequence[str]] | None = None,
    *,
    name: str = "the table",
    rows: RowNumbers | None = None,
) -> Replicas:
    """Convert a long-form table, such as `read_table(file, TABLE).frame`, to arrays.

    Args:
        frame: Columns as in `TABLE`; `y` and `test` may be absent.
        outputs: The outputs a model was trained on. None: those of the table.
        replicas: The replicas of each of them; others in the table are `NEW`. None: the table's.
        name: Name of the table for messages.
        rows: Row numbers for messages (`Table.rows`); counted from 0 where None.

    Raises:
        BadInput: A column is absent, an output is unknown, x is no finite number, or `test` is
            neither 0 nor 1.
    """
    at = np.arange(len(frame)) if rows is None else np.asarray(rows)
    for column in ("output", "replica", "x"):
        if column not in frame:
            raise BadInput(
                f"{name} has no column {column!r}; the table needs the columns output, replica, x "
                "and y."
            )
    names = [str(w) for w in frame["output"]]
    replica_of_row = [str(w) for w in frame["replica"]]
    output_names = list(dict.fromkeys(names if outputs is None else outputs))
    output = _index(names, output_names)
    unknown = np.flatnonzero(output < 0)
    if len(unknown):
        raise BadInput(
            f"{name}, column 'output', row {at[unknown[0]]}: the model was not trained on "
            f"{names[unknown[0]]!r}; its outputs are {listed(output_names)}."
        )
    # One order for all outputs, so that a grid of them has the same sample in the same column.
    sample_names = list(
        dict.fromkeys(replica_of_row if replicas is None else [r for rs in replicas for r in rs])
    )
    pairs = set(zip(names, replica_of_row))
    replica_names = (
        [[r for r in sample_names if (o, r) in pairs] for o in output_names]
        if replicas is None
        else [list(rs) for rs in replicas]
    )
    indices = [{r: i for i, r in enumerate(rs)} for rs in replica_names]
    return Replicas(
        outputs=output_names,
        replicas=replica_names,
        samples=sample_names,
        output=output,
        replica=np.array(
            [indices[d].get(r, NEW) for d, r in zip(output, replica_of_row)], dtype=np.int64
        ),
        sample=_index(replica_of_row, sample_names),
        x=finite(frame, ["x"], name, at)[:, 0],
        y=_values(frame),
        test=_marked(frame, name, at),
    )


def held_out(data: Replicas, split: str, seed: int = 0) -> Rows:
    """Mask of the rows that a split holds out.

    Args:
        data: The table.
        split: "as marked"; "half of the points" of each replica (an odd one is for training); "one
            replica of each output" with two or more.
        seed: Seed of the draw.
    """
    if split == "as marked":
        return data.test.copy()
    rng = np.random.default_rng([seed, SPLITS.index(split)])
    out = np.zeros(len(data), dtype=bool)
    for d, names in enumerate(data.replicas):
        if split == "half of the points":
            for r in range(len(names)):
                candidates = np.flatnonzero((data.output == d) & (data.replica == r))
                out[rng.permutation(candidates)[: len(candidates) // 2]] = True
        elif len(names) > 1:
            out |= (data.output == d) & (data.replica == rng.integers(len(names)))
    return out


def hidden_rows(data: Replicas, hidden: str, seed: int = 0) -> Rows:
    """Mask of the rows of replicas that a setting hides.

    Args:
        data: The table.
        hidden: Comma-separated `output/replica`, `*/replica` (in every output), `output/*k` (k of
            its replicas, drawn at random) and `*/*k` (k of every output's); "" hides nothing.
        seed: Seed of the draws.

    Raises:
        BadInput: An output or replica is unknown, or all replicas of an output are hidden.
    """
    rng = np.random.default_rng([seed, 7])
    out = np.zeros(len(data), dtype=bool)
    for entry in names_in(hidden):
        output, slash, replica = (part.strip() for part in entry.rpartition("/"))
        if not slash or not output or not replica:
            raise BadInput(
                f"Setting 'hidden': got {entry!r}; write output/replica, separated by commas."
            )
        if output != "*" and output not in data.outputs:
            raise BadInput(
                f"Setting 'hidden': there is no output {output!r}; the outputs are "
                f"{listed(data.outputs)}."
            )
        chosen = range(len(data.outputs)) if output == "*" else [data.outputs.index(output)]
        matched = False
        for d in chosen:
            for r in _chosen(data.replicas[d], replica, rng):
                matched = True
                out |= (data.output == d) & (data.replica == r)
        if not matched:
            names = data.samples if output == "*" else data.replicas[chosen[0]]
            raise BadInput(
                f"Setting 'hidden': {output} has no replica {replica!r}; it has {listed(names)}."
            )
    _spare_one(data, out)
    return out


def kept_share(data: Replicas, train: Rows, keep: float, seed: int = 0) -> Rows:
    """Mask of a share of the training rows.

    Draws are nested in the share, and each output keeps at least two rows.

    Args:
        data: The table.
        train: Mask of the training rows.
        keep: Share of them, in (0, 1].
        seed: Seed of the draw.
    """
    rng = np.random.default_rng([seed, 8])
    out = np.zeros(len(data), dtype=bool)
    for d in range(len(data.outputs)):
        candidates = rng.permutation(np.flatnonzero(train & (data.output == d)))
        out[candidates[: max(2, round(keep * len(candidates)))]] = True
    return out


def _chosen(names: Sequence[str], replica: str, rng: np.random.Generator) -> list[int]:
    """Indices of the replicas that an entry selects."""
    if replica in names:
        return [names.index(replica)]
    if replica[0] == "*" and replica[1:].isdigit():
        return [int(r) for r in rng.permutation(len(names))[: int(replica[1:])]]
    return []


def _spare_one(data: Replicas, out: Rows) -> None:
    for d, name in enumerate(data.outputs):
        if out[data.output == d].all():
            raise BadInput(
                f"Setting 'hidden': output {name!r} would have no rows left to learn from; leave "
                f"it one of its replicas {listed(data.replicas[d])}."
            )


def _index(names: Sequence[str], labels: Sequence[str]) -> Int[np.ndarray, " n"]:
    index = {label: i for i, label in enumerate(labels)}
    return np.array([index.get(name, NEW) for name in names], dtype=np.int64)


def _values(frame: pd.DataFrame) -> Float[np.ndarray, " n"]:
    if "y" not in frame:
        return np.full(len(frame), np.nan)
    return frame["y"].to_numpy(dtype=np.float64, na_value=np.nan)


def _marked(frame: pd.DataFrame, name: str, at: np.ndarray) -> Rows:
    split = np.asarray(marks(frame) == TEST, dtype=bool)
    if "test" not in frame:
        return split
    cells = ["0" if pd.isna(v) else str(v) for v in frame["test"]]
    for row, cell in zip(at, cells):
        if cell not in ("0", "1", "0.0", "1.0", "False", "True"):
            raise BadInput(f"{name}, column 'test', row {row}: got {cell!r}; write 0 or 1.")
    return split | np.isin(cells, ("1", "1.0", "True"))


def check(s: Any, table: pd.DataFrame, name: str) -> None:
    """Reject a table that these settings cannot learn (`Entry.check`)."""
    hidden_rows(of(table, name=name), s.hidden, s.seed)
