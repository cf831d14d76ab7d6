"""Tables of outputs in replicas: the long form, its arrays, held-out replicas.

A row is one value `y` of one `output` at the input `x` in one of its replicas. A replica belongs to
its output; where two outputs have a replica of the same name, both were taken from the same sample
(one embryo, one trial), as the expression of many genes is. What a file may hold stands in `TABLE`,
so that the common reader (`scant.tables.read.read_table`) checks it cell by cell; `of` makes arrays
of a table that was read, `Replicas.frame` a table of arrays. `x` and `y` are in the table's units.
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

NEW = -1  # the index of a replica that training lacked
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
        outputs: Names, in order of first appearance.
        replicas: Names of each output's replicas, in order of first appearance in the table.
        samples: All replicas' names; a name that several outputs share stands for one sample.
        output: Index into `outputs`.
        replica: Index into `replicas[output]`; `NEW` for one that training lacked.
        sample: Index into `samples`; `NEW` for a name that training lacked.
        x: Inputs.
        y: Values; NaN where only a prediction is wanted.
        test: Rows that are kept out of training.
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
        """The table in long form, of rows whose replicas are known; `of` gives the arrays back."""
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
    """The arrays of a long-form table, such as `read_table(file, TABLE).frame`.

    Args:
        frame: Columns as in `TABLE`; `y` and `test` may be absent.
        outputs: The outputs a model was trained on. None: those of the table.
        replicas: The replicas of each of them; others in the table are `NEW`. None: the table's.
        name: What messages call the table.
        rows: The row of each line, for messages (`Table.rows`); counted from 0 where None.

    Raises:
        BadInput: A column is absent, an output was not trained on, x is no finite number, or `test`
            is neither 0 nor 1.
    """
    at = np.arange(len(frame)) if rows is None else np.asarray(rows)
    for column in ("output", "replica", "x"):
        if column not in frame:
            raise BadInput(
                f"{name} has no column {column!r}; the table needs the columns output, replica, x "
                "and y."
            )
    names = [str(w) for w in frame["output"]]
    repeats = [str(w) for w in frame["replica"]]
    known = list(dict.fromkeys(names if outputs is None else outputs))
    output = _index(names, known)
    lost = np.flatnonzero(output < 0)
    if len(lost):
        raise BadInput(
            f"{name}, column 'output', row {at[lost[0]]}: the model was not trained on "
            f"{names[lost[0]]!r}; its outputs are {listed(known)}."
        )
    # In one order for all outputs, so that a grid of them has the same sample in the same column.
    observed = list(
        dict.fromkeys(repeats if replicas is None else [r for rs in replicas for r in rs])
    )
    pairs = set(zip(names, repeats))
    own = (
        [[r for r in observed if (o, r) in pairs] for o in known]
        if replicas is None
        else [list(rs) for rs in replicas]
    )
    places = [{r: i for i, r in enumerate(rs)} for rs in own]
    return Replicas(
        outputs=known,
        replicas=own,
        samples=observed,
        output=output,
        replica=np.array([places[d].get(r, NEW) for d, r in zip(output, repeats)], dtype=np.int64),
        sample=_index(repeats, observed),
        x=finite(frame, ["x"], name, at)[:, 0],
        y=_values(frame),
        test=_marked(frame, name, at),
    )


def held_out(data: Replicas, split: str, seed: int = 0) -> Rows:
    """The rows that a split keeps out of training.

    Args:
        data: The table.
        split: "as marked"; "half of the points" of each replica (the odd one is learned from); "one
            replica of each output", of those outputs that have two or more.
        seed: Of the draw.
    """
    if split == "as marked":
        return data.test.copy()
    rng = np.random.default_rng([seed, SPLITS.index(split)])
    out = np.zeros(len(data), dtype=bool)
    for d, names in enumerate(data.replicas):
        if split == "half of the points":
            for r in range(len(names)):
                mine = np.flatnonzero((data.output == d) & (data.replica == r))
                out[rng.permutation(mine)[: len(mine) // 2]] = True
        elif len(names) > 1:
            out |= (data.output == d) & (data.replica == rng.integers(len(names)))
    return out


def hidden_rows(data: Replicas, hidden: str, seed: int = 0) -> Rows:
    """The rows of the replicas that a setting hides.

    Args:
        data: The table.
        hidden: A list with commas of `output/replica`, `*/replica` (in every output), `output/*k`
            (k of its replicas, drawn at random) and `*/*k` (k of every output's); "" hides nothing.
        seed: Of the draws.

    Raises:
        BadInput: It names an output or replica that is not there, or all replicas of an output.
    """
    rng = np.random.default_rng([seed, 7])
    out = np.zeros(len(data), dtype=bool)
    for entry in names_in(hidden):
        wanted, slash, replica = (part.strip() for part in entry.rpartition("/"))
        if not slash or not wanted or not replica:
            raise BadInput(
                f"Setting 'hidden': got {entry!r}; write output/replica, separated by commas."
            )
        if wanted != "*" and wanted not in data.outputs:
            raise BadInput(
                f"Setting 'hidden': there is no output {wanted!r}; the outputs are "
                f"{listed(data.outputs)}."
            )
        chosen = range(len(data.outputs)) if wanted == "*" else [data.outputs.index(wanted)]
        result = False
        for d in chosen:
            for r in _chosen(data.replicas[d], replica, rng):
                result = True
                out |= (data.output == d) & (data.replica == r)
        if not result:
            names = data.samples if wanted == "*" else data.replicas[chosen[0]]
            raise BadInput(
                f"Setting 'hidden': {wanted} has no replica {replica!r}; it has {listed(names)}."
            )
    _spare_one(data, out)
    return out


def kept_share(data: Replicas, train: Rows, keep: float, seed: int = 0) -> Rows:
    """A share of the rows that are learned from: scarcity.

    A smaller share's rows are among those of a larger one, and each output keeps two at least.

    Args:
        data: The table.
        train: The rows that may be learned from.
        keep: The share, in (0, 1].
        seed: Of the draw.
    """
    rng = np.random.default_rng([seed, 8])
    out = np.zeros(len(data), dtype=bool)
    for d in range(len(data.outputs)):
        mine = rng.permutation(np.flatnonzero(train & (data.output == d)))
        out[mine[: max(2, round(keep * len(mine)))]] = True
    return out


def _chosen(names: Sequence[str], replica: str, rng: np.random.Generator) -> list[int]:
    """Which of an output's replicas a word means."""
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


def _index(names: Sequence[str], known: Sequence[str]) -> Int[np.ndarray, " n"]:
    place = {word: i for i, word in enumerate(known)}
    return np.array([place.get(name, NEW) for name in names], dtype=np.int64)


def _values(frame: pd.DataFrame) -> Float[np.ndarray, " n"]:
    if "y" not in frame:
        return np.full(len(frame), np.nan)
    return frame["y"].to_numpy(dtype=np.float64, na_value=np.nan)


def _marked(frame: pd.DataFrame, name: str, at: np.ndarray) -> Rows:
    split = np.asarray(marks(frame) == TEST, dtype=bool)
    if "test" not in frame:
        return split
    cells = ["0" if pd.isna(v) else str(v) for v in frame["test"]]
    for row, word in zip(at, cells):
        if word not in ("0", "1", "0.0", "1.0", "False", "True"):
            raise BadInput(f"{name}, column 'test', row {row}: got {word!r}; write 0 or 1.")
    return split | np.isin(cells, ("1", "1.0", "True"))


def check(s: Any, table: pd.DataFrame, name: str) -> None:
    """Refuse a table that these settings cannot learn (`Entry.check`)."""
    hidden_rows(of(table, name=name), s.hidden, s.seed)
