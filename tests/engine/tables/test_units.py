"""A row of units below the header, and first rows of data that resemble one."""

from __future__ import annotations

import numpy as np
import pytest

from scant.studies import entry
from scant.tables.read import inspect_table

SCHEMA = entry("redshift").table
RNG = np.random.default_rng(0)
DATA = {
    "name": [f"s{i}" for i in range(30)],
    "mass": [f"{v:.2f}" for v in RNG.uniform(1, 9, 30)],
    "ratio": [f"{v:.3f}" for v in RNG.uniform(0, 1, 30)],
    "count": [str(v) for v in RNG.integers(0, 4, 30)],
    "redshift": [f"{v:.4f}" for v in RNG.uniform(0, 1, 30)],
}


def file(first: dict[str, str]) -> bytes:
    names = list(first)
    rows = [names, list(first.values()), *zip(*(DATA[n] for n in names))]
    return "\n".join(",".join(row) for row in rows).encode()


@pytest.mark.parametrize(
    ("first", "names"),
    [
        ({"name": "str", "mass": "kg", "ratio": "1", "redshift": "1"}, "name mass_[kg] ratio"),
        ({"mass": "kg", "ratio": "1", "redshift": "1"}, "mass_[kg] ratio"),
        ({"mass": "kg", "count": "1", "redshift": "mag"}, "mass_[kg] count"),
        ({"name": "string", "mass": "1", "redshift": "1"}, "name mass"),
        ({"mass": "(kg)", "ratio": "-", "redshift": "1"}, "mass_[kg] ratio"),
    ],
)
def test_units_with_one_and_str_are_no_row(first: dict[str, str], names: str) -> None:
    preview = inspect_table(file(first), SCHEMA, name="own.csv")
    assert (preview.n_rows, preview.problems) == (30, ())
    assert [n.replace(" ", "_") for n in preview.names[:-1]] == names.split()
    assert "own.csv, row 2: it was read as the units of the columns." in preview.warnings


@pytest.mark.parametrize(
    "first",
    [
        {"mass": "1", "ratio": "1", "count": "1", "redshift": "1"},
        {"name": "s99", "mass": "1", "ratio": "1", "redshift": "1"},
        {"name": "s99", "mass": "1", "ratio": "-", "redshift": "1"},
        {"name": "-", "mass": "-", "ratio": "-", "redshift": "0.3"},
        {"name": "str", "count": "1", "redshift": "2"},
    ],
)
def test_a_first_row_of_ones_or_gaps_is_data(first: dict[str, str]) -> None:
    preview = inspect_table(file(first), SCHEMA, name="own.csv")
    assert preview.n_rows == 31
    assert not any("units" in w for w in preview.warnings)


def test_a_wrong_cell_among_whole_numbers_is_no_unit() -> None:
    first = {"count": "1", "mass": "n?d", "redshift": "0.5"}
    preview = inspect_table(file(first), SCHEMA, name="own.csv")
    assert preview.problems[0].startswith("own.csv, column 'mass', row 2: got 'n?d'")
