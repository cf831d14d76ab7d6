"""Text files of the Human Fertility Database: period rates by age and birth order.

`asfrRRbo.txt` (Lexis squares) has a title, the date of the last change, an optional blank line, a
header (`Year Age ASFR ASFR1 … ASFR5p`, with `Code` first for several countries) and rows separated
by blanks. `.` is a missing rate; `12-` and `55+` are open age intervals. Downloads require an
account at www.humanfertility.org.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.studies.aggregation.simulate.fertility import AGES, experiment
from scant.studies.split import TEST
from scant.tables.assembly import noted
from scant.tables.column_matching import listed
from scant.tables.encoding import decode, load
from scant.tables.read import read_frame
from scant.tables.schema import Table, TableSchema

STEP = 5  # years, the width of a box
_PREAMBLE = 6  # maximum number of lines before the header
_AGE = re.compile(r"\d{1,2}[-+]?")
_ADVICE = "give the period file asfrRRbo.txt of the Human Fertility Database"


def is_rates(content: bytes) -> bool:
    """Return True if a file begins like a file of period rates by age and birth order."""
    head = content[:2000].decode("utf-8", errors="replace").splitlines()[:_PREAMBLE]
    return any({"Year", "Age", "ASFR1"} <= set(line.split()) for line in head)


def read_births(
    source: Path | bytes, schema: TableSchema, *, name: str | None = None, purpose: str = "fit"
) -> Table:
    """Read a file of rates as the published experiment with single cells and 5 x 5 year boxes.

    Args:
        source: Path or content of the file.
        schema: Columns that the study takes.
        name: Name of the file for messages; by default the name of the path.
        purpose: "fit" or "predict", as in `read_table`.

    Raises:
        BadInput: The file is invalid (see `read_rates`) or has too few cells.
    """
    file = name or (source.name if isinstance(source, Path) else "asfrRRbo.txt")
    cells = read_rates(source, name=file)
    read = read_frame(experiment(cells, STEP), schema, name=file, purpose=purpose)
    fine = int((read.frame["task"] == "first births").sum())
    test = int((read.frame["split"] == TEST).sum())
    message = (
        f"{file}: {len(cells):,} cells of one year of age and one calendar year were turned into "
        f"{fine:,} single cells of first births, {test:,} of them held out, "
        f"and {len(read.frame) - fine:,} averages over boxes of {STEP} x {STEP} years; the command "
        "scant data births makes boxes of another width."
    )
    return noted(replace(read, notes=(message, *read.notes)))


def read_rates(
    source: Path | bytes,
    *,
    country: str | None = None,
    ages: tuple[int, int] = AGES,
    years: tuple[int, int] | None = None,
    name: str | None = None,
) -> pd.DataFrame:
    """Read the cells of a country for `scant.studies.aggregation.simulate.fertility`.

    Args:
        source: Path or content of the file.
        country: Code of the country ("CAN"), required if the file has several.
        ages: Half-open range of ages in years, without the open intervals (`12-`, `55+`).
        years: Half-open range of calendar years; None for all.
        name: Name of the file for messages; by default the name of the path.

    Returns:
        Table sorted by year and age with `age_lo`, `age_hi`, `year_lo`, `year_hi` (years), and
        `order1` … for each birth order except the open one (births per woman and year), NaN for
        missing rates.

    Raises:
        BadInput: The file has another format, an invalid or duplicate cell, no such country, or no
            cell in the range.
    """
    file = name or (source.name if isinstance(source, Path) else "asfrRRbo.txt")
    text, _ = decode(load(source, file), file)
    lines = text.splitlines()
    at = _header(lines, file)
    names = lines[at].split()
    numbered = [(row, line.split()) for row, line in enumerate(lines[at + 1 :], at + 2)]
    numbered = [(row, values) for row, values in numbered if values]
    for row, values in numbered:
        if len(values) != len(names):
            raise BadInput(
                f"{file}, row {row}: {len(values)} words where the header has {len(names)}; "
                "correct the row or download the file again."
            )
    if not numbered:
        raise BadInput(f"{file} has a header but no rows; download it again.")
    table = pd.DataFrame([w for _, w in numbered], columns=names, index=[r for r, _ in numbered])
    return _cells(_of_country(table, country, file), ages, years, file)


def _header(lines: list[str], file: str) -> int:
    """Return the index of the header line after a check of its columns."""
    for at, line in enumerate(lines[:_PREAMBLE]):
        columns = line.split()
        if "Cohort" in columns:
            raise BadInput(f"{file} has rates by cohort, not by year; {_ADVICE}.")
        if "Year" in columns and "Age" in columns:
            if "ASFR1" not in columns:
                raise BadInput(
                    f"{file}, row {at + 1}: there is no column 'ASFR1', the columns are "
                    f"{listed(columns)}; {_ADVICE}."
                )
            duplicates = [w for w in columns if columns.count(w) > 1]
            if duplicates:
                raise BadInput(
                    f"{file}, row {at + 1}: column {duplicates[0]!r} occurs twice; {_ADVICE}."
                )
            return at
    raise BadInput(f"{file} has no header with Year and Age in its first lines; {_ADVICE}.")


def _of_country(table: pd.DataFrame, country: str | None, file: str) -> pd.DataFrame:
    if "Code" not in table:
        return table
    codes = list(dict.fromkeys(table["Code"]))
    if country is None and len(codes) == 1:
        return table
    if country not in codes:
        got = (
            "name one of them, or keep only its rows"
            if country is None
            else f"there is no {country!r}"
        )
        raise BadInput(f"{file} holds {len(codes)} countries ({listed(codes)}); {got}.")
    return table[table["Code"] == country]


def _cells(
    table: pd.DataFrame, ages: tuple[int, int], years: tuple[int, int] | None, file: str
) -> pd.DataFrame:
    age = table["Age"]
    wrong = ~age.map(lambda word: bool(_AGE.fullmatch(word)))
    if wrong.any():
        row = table.index[wrong][0]
        raise BadInput(
            f"{file}, column 'Age', row {row}: got {age[row]!r}, which is not an age; download the "
            "file again."
        )
    table = table[~age.str.endswith(("-", "+"))]
    lo, year = _numbers(table, "Age", file), _numbers(table, "Year", file)
    first, last = years or (-np.inf, np.inf)
    selected = (lo >= ages[0]) & (lo < ages[1]) & (year >= first) & (year < last)
    if not selected.any():
        raise BadInput(
            f"{file} has no cell of ages {ages[0]} to {ages[1] - 1}"
            + (f" and years {first:g} to {last - 1:g}" if years else "")
            + "; choose another range."
        )
    table, lo, year = table[selected], lo[selected], year[selected]
    cells = pd.DataFrame({"age_lo": lo, "age_hi": lo + 1, "year_lo": year, "year_hi": year + 1})
    for column in table:
        order = re.fullmatch(r"ASFR(\d)", str(column))
        if order:
            cells[f"order{order[1]}"] = _numbers(table, str(column), file)
    again = cells.duplicated(["age_lo", "year_lo"]).to_numpy()
    if again.any():
        row = table.index[again][0]
        raise BadInput(
            f"{file}, row {row}: another row has the same year and age; keep one of them."
        )
    return cells.sort_values(["year_lo", "age_lo"], ignore_index=True)


def _numbers(table: pd.DataFrame, column: str, file: str) -> np.ndarray:
    """Convert a column of nonnegative numbers to float64, with NaN for missing rates."""
    cells = table[column]
    values: np.ndarray = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    missing = (cells == ".").to_numpy() & column.startswith("ASFR")
    wrong = ~missing & ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row, word = table.index[wrong][0], cells[wrong].iloc[0]
        raise BadInput(
            f"{file}, column {column!r}, row {row}: got {word!r}, which is not a number from zero "
            "up; correct the cell or write '.' for a missing rate."
        )
    return values
