"""Put results of `scant reproduce STUDY --out FOLDER` into data/results.

    python scripts/merge_results.py FOLDER [--only TEXT] [--pool]

Rows take the place of those with the same experiment, method and metric, or follow the others of
their experiment; the hours of the whole study are then unknown. With `--pool` their repeats are
added to the stored ones: they must be others, such as further folds, and date and machine are then
those of the last. Tests over all runs (`compared` of a study) are left as they are. Data of figures
are copied, unless some rows are chosen.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from scant.reproduce.figure_files import FOLDER
from scant.reproduce.results import COLUMNS
from scant.reproduce.runner import ROWS
from scant.studies.published import KEYS

STORED = Path(__file__).parent.parent / "data" / "results"
Row = dict[Any, str]  # by column


def merged(stored: pd.DataFrame, new: pd.DataFrame, pool: bool = False) -> pd.DataFrame:
    """Return stored rows of results with new ones; values of both tables are texts."""
    rows = stored.to_dict("records")
    for row in new[new["seconds"] != ""].to_dict("records"):
        at = next((k for k, old in enumerate(rows) if _key(old) == _key(row)), None)
        if at is not None:
            rows[at] = pooled(rows[at], row) if pool and rows[at]["ours"] else row
            continue
        of_experiment = [k for k, old in enumerate(rows) if old["experiment"] == row["experiment"]]
        rows.insert(of_experiment[-1] + 1 if of_experiment else len(rows), row)
    return pd.DataFrame(rows, columns=COLUMNS).assign(study_hours="")


def pooled(one: Row, other: Row) -> Row:
    """Return the row of the repeats of two rows."""
    counts = [int(row["repeats"]) for row in (one, other)]
    means = [float(row["ours"]) for row in (one, other)]
    squares = [float(row["spread"] or 0) ** 2 + m**2 for row, m in zip((one, other), means)]

    def mean(values: list[float]) -> float:
        return sum(n * value for n, value in zip(counts, values)) / sum(counts)

    spread = math.sqrt(max(0.0, mean(squares) - mean(means) ** 2))
    seconds = mean([float(row["seconds"]) for row in (one, other)])
    numbers = {"ours": round(mean(means), 4), "spread": round(spread, 4), "repeats": sum(counts),
               "seconds": round(seconds, 1)}  # fmt: skip
    return other | {name: str(value) for name, value in numbers.items()}


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in KEYS)


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def main(
    folder: Path,
    only: Annotated[str, typer.Option(help="Text in 'experiment, method' of the rows.")] = "",
    pool: Annotated[bool, typer.Option(help="Add the repeats to stored ones.")] = False,
) -> None:
    results = _read(folder / ROWS)
    results = results[(results["ours"] != "") & (results["quick"] == "False")]
    results = results[[only in f"{e}, {m}" for e, m in results[["experiment", "method"]].values]]
    for study, rows in results.groupby("study"):
        file = STORED / f"{study}.csv"
        merged(_read(file), rows, pool).to_csv(file, index=False)
        print(f"{study}: {len(rows)} rows")
    for data in () if only else (folder / FOLDER).glob("*.csv"):
        shutil.copy(data, STORED / FOLDER)
        print(data.name)


if __name__ == "__main__":
    typer.run(main)
