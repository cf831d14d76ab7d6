"""The Human Fertility Database's own text files: period rates by age and birth order.

`asfrRRbo.txt` (Lexis squares) has a line of title, one with the date of its last change, sometimes
a blank one, then a header (`Year Age ASFR ASFR1 … ASFR5p`, `Code` in front where it holds several
countries) and rows of words separated by blanks; `.` is a missing rate, `12-` and `55+` are the
open ends of the ages. An account at www.humanfertility.org is needed to get one.
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
_PREAMBLE = 6  # lines before the header at most
_AGE = re.compile(r"\d{1,2}[-+]?")
_ADVICE = "give the period file asfrRRbo.txt of the Human Fertility Database"


def is_rates(content: bytes) -> bool:
    """Whether a file begins as those of period rates by age and birth order do."""
    head = content[:2000].decode("utf-8", errors="replace").splitlines()[:_PREAMBLE]
    return any({"Year", "Age", "ASFR1"} <= set(line.split()) for line in head)


def read_births(
    source: Path | bytes, schema: TableSchema, *, name: str | None = None, purpose: str = "fit"
) -> Table:
    """The published experiment on a file of rates: a few cells, and boxes of 5 x 5 years.

    Args:
        source: A path or the file's bytes.
        schema: What the study takes.
        name: What messages call the file; a path's own name by default.
        purpose: "fit" or "predict", as of `read_table`.

    Raises:
        BadInput: As `read_rates`; too few cells.
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
    """Cells of one country, as `scant.studies.aggregation.simulate.fertility` takes them.

    Args:
        source: A path or the file's bytes.
        country: Its code ("CAN"), needed where the file holds several.
        ages: Half-open range, years; the open ends (`12-`, `55+`) are never among them.
        years: Half-open range of calendar years; None keeps all.
        name: What messages call the file; a path's own name by default.

    Returns:
        By year, then age: `age_lo`, `age_hi`, `year_lo`, `year_hi` (years), `order1` … for each
        order of the file that is not open (births per woman and year), NaN where missing.

    Raises:
        BadInput: Another kind of file, a row or cell that cannot be read, an unknown country,
            a cell that is there twice, nothing in the range.
    """
    file = name or (source.name if isinstance(source, Path) else "asfrRRbo.txt")
    text, _ = decode(load(source, file), file)
    lines = text.splitlines()
    at = _header(lines, file)
    names = lines[at].split()
    numbered = [(row, line.split()) for row, line in enumerate(lines[at + 1 :], at + 2)]
    numbered = [(row, words) for row, words in numbered if words]
    for row, words in numbered:
        if len(words) != len(names):
            raise BadInput(
                f"{file}, row {row}: {len(words)} words where the header has {len(names)}; "
                "mend the row or download the file again."
            )
    if not numbered:
        raise BadInput(f"{file} has a header but no rows; download it again.")
    table = pd.DataFrame([w for _, w in numbered], columns=names, index=[r for r, _ in numbered])
    return _cells(_of_country(table, country, file), ages, years, file)


def _header(lines: list[str], file: str) -> int:
    """The line of the header, of a file that has what is needed."""
    for at, line in enumerate(lines[:_PREAMBLE]):
        words = line.split()
        if "Cohort" in words:
            raise BadInput(f"{file} has rates by cohort, not by year; {_ADVICE}.")
        if "Year" in words and "Age" in words:
            if "ASFR1" not in words:
                raise BadInput(
                    f"{file}, row {at + 1}: there is no column 'ASFR1', the columns are "
                    f"{listed(words)}; {_ADVICE}."
                )
            twice = [w for w in words if words.count(w) > 1]
            if twice:
                raise BadInput(f"{file}, row {at + 1}: column {twice[0]!r} is there twice.")
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
            f"{file}, column 'Age', row {row}: got {age[row]!r}, which is no age; "
            "download the file again."
        )
    table = table[~age.str.endswith(("-", "+"))]
    lo, year = _numbers(table, "Age", file), _numbers(table, "Year", file)
    first, last = years or (-np.inf, np.inf)
    kept = (lo >= ages[0]) & (lo < ages[1]) & (year >= first) & (year < last)
    if not kept.any():
        raise BadInput(
            f"{file} has no cell of ages {ages[0]} to {ages[1] - 1}"
            + (f" and years {first:g} to {last - 1:g}" if years else "")
            + "; choose another range."
        )
    table, lo, year = table[kept], lo[kept], year[kept]
    cells = pd.DataFrame({"age_lo": lo, "age_hi": lo + 1, "year_lo": year, "year_hi": year + 1})
    for column in table:
        order = re.fullmatch(r"ASFR(\d)", str(column))
        if order:
            cells[f"order{order[1]}"] = _numbers(table, str(column), file)
    again = cells.duplicated(["age_lo", "year_lo"]).to_numpy()
    if again.any():
        row = table.index[again][0]
        raise BadInput(f"{file}, row {row}: its year and age are there twice; keep one of them.")
    return cells.sort_values(["year_lo", "age_lo"], ignore_index=True)


def _numbers(table: pd.DataFrame, column: str, file: str) -> np.ndarray:
    """A column as float64, NaN for `.`; a rate or a year is finite and not below zero."""
    cells = table[column]
    values: np.ndarray = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    missing = (cells == ".").to_numpy() & column.startswith("ASFR")
    wrong = ~missing & ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row, word = table.index[wrong][0], cells[wrong].iloc[0]
        raise BadInput(
            f"{file}, column {column!r}, row {row}: got {word!r}, which is not "
            "a number from zero up; mend the cell or write '.' for a missing rate."
        )
    return values
