"""Predictive densities beside predictions: a file of them, or columns of the table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.predictive import MixturePredictive
from scant.studies.densities import MOST, HasDensities
from scant.studies.predicted_table import with_columns
from scant.tables.column_matching import is_identifier
from scant.tables.formats.qp_ensemble import MixtureWriter, identifiers
from scant.tables.pieces import ROWS, ending

NAME = "densities.hdf5"  # or the end of one
QP, AS_COLUMNS = "qp", "columns"  # how they are written
NOTE = f"The predictive density of each row, as at most {MOST} Gaussians, is in {{}}; qp.read opens"
NOTE += " it."

# From rows as they came, as the study takes them, and with its predictions: to what is written.
Tell = Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]


def beside(out: Path) -> Path:
    """Where the densities lie beside the predictions of a file."""
    return out.with_name(f"{out.name[: -len(ending(out))]}.{NAME}")


@contextmanager
def opened(study: object, form: str, path: Path) -> Iterator[Tell]:
    """Densities beside predictions that are written piece by piece.

    Args:
        study: Fitted.
        form: "qp", "columns", or "" for none.
        path: Of the ensemble that "qp" makes.

    Raises:
        BadInput: There is no such form, or the study has no densities.
    """
    if form not in ("", QP, AS_COLUMNS):
        raise BadInput(f"Densities are written as {QP!r} or {AS_COLUMNS!r}, not as {form!r}.")
    if not form:
        yield lambda rows, query, predicted: predicted
        return
    if not isinstance(study, HasDensities):
        raise BadInput("This study has no densities to write; leave the option 'densities' out.")
    tell = study.densities
    if form == AS_COLUMNS:
        yield lambda rows, query, predicted: with_columns(predicted, tell(query).columns())
        return
    with MixtureWriter(path) as file:

        def written(
            rows: pd.DataFrame, query: pd.DataFrame, predicted: pd.DataFrame
        ) -> pd.DataFrame:
            add_rows(file, tell(query), rows, [str(name) for name in query])
            return predicted

        yield written


def add_rows(
    file: MixtureWriter,
    densities: MixturePredictive,
    table: pd.DataFrame,
    inputs: Collection[str] = (),
) -> None:
    """Write the densities of rows, their mode, mean and median, and what tells them apart.

    That is the table's first column of identifiers, else the number of the row, from 0.

    Args:
        file: Where to.
        densities: Of these rows, a few Gaussians each.
        table: The rows as they came.
        inputs: Columns that the study reads: none of these tells rows apart.
    """
    own = next((n for n in table if is_identifier(str(n)) and n not in inputs), None)
    rows = file.rows + np.arange(len(table)) if own is None else identifiers(table[own])
    point = {"zmode": densities.mode(), "zmean": densities.mean, "zmedian": densities.median()}
    ancil = {name: values.astype(np.float32) for name, values in point.items()}
    file.add(**densities.parameters(), ancil={"object_id": rows, **ancil})


def as_bytes(study: HasDensities, query: pd.DataFrame, table: pd.DataFrame) -> bytes:
    """A file of the densities of a whole table, for a ZIP.

    Args:
        study: Fitted.
        query: The table as the study takes it.
        table: The same rows with their identifiers.
    """
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        path = Path(folder) / NAME
        with MixtureWriter(path) as file:
            for at in range(0, len(query), ROWS):
                told = study.densities(query.iloc[at : at + ROWS])
                add_rows(file, told, table.iloc[at : at + ROWS])
        return path.read_bytes()
