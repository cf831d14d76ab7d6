"""Predictive densities of predictions, in a file of their own or in columns of the table."""

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

NAME = "densities.hdf5"  # file name, or the end of one
QP, AS_COLUMNS = "qp", "columns"  # formats
NOTE = f"The predictive density of each row, as at most {MOST} Gaussians, is in {{}}; qp.read opens"
NOTE += " it."

# Function from the rows of the file, in the format of the study, and with predictions, to the
# table to write.
Tell = Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]


def beside(out: Path) -> Path:
    """Return the path of the file with densities for a file with predictions."""
    return out.with_name(f"{out.name[: -len(ending(out))]}.{NAME}")


@contextmanager
def opened(study: object, form: str, path: Path) -> Iterator[Tell]:
    """Write densities of predictions block by block.

    Args:
        study: Fitted study.
        form: "qp", "columns", or "" for none.
        path: Path of the ensemble for "qp".

    Raises:
        BadInput: The form is unknown, or the study has no densities.
    """
    if form not in ("", QP, AS_COLUMNS):
        raise BadInput(f"Densities are written as {QP!r} or {AS_COLUMNS!r}, not as {form!r}.")
    if not form:
        yield lambda rows, query, predicted: predicted
        return
    if not isinstance(study, HasDensities):
        raise BadInput("This study has no densities to write; leave the option 'densities' out.")
    densities_of = study.densities
    if form == AS_COLUMNS:
        yield lambda rows, query, predicted: with_columns(predicted, densities_of(query).columns())
        return
    with MixtureWriter(path) as file:

        def write_rows(
            rows: pd.DataFrame, query: pd.DataFrame, predicted: pd.DataFrame
        ) -> pd.DataFrame:
            add_rows(file, densities_of(query), rows, [str(name) for name in query])
            return predicted

        yield write_rows


def add_rows(
    file: MixtureWriter,
    densities: MixturePredictive,
    table: pd.DataFrame,
    inputs: Collection[str] = (),
) -> None:
    """Write the densities of rows, their mode, mean and median, and their identifiers.

    Identifiers are the table's first column of identifiers, else row numbers from 0.

    Args:
        file: Output file.
        densities: Densities of these rows, a few Gaussians each.
        table: Rows of the input file.
        inputs: Columns that the study reads; they are never identifiers.
    """
    id_column = next((n for n in table if is_identifier(str(n)) and n not in inputs), None)
    rows = file.rows + np.arange(len(table)) if id_column is None else identifiers(table[id_column])
    point = {"zmode": densities.mode(), "zmean": densities.mean, "zmedian": densities.median()}
    ancil = {name: values.astype(np.float32) for name, values in point.items()}
    file.add(**densities.parameters(), ancil={"object_id": rows, **ancil})


def as_bytes(study: HasDensities, query: pd.DataFrame, table: pd.DataFrame) -> bytes:
    """Return the content of a file with the densities of a whole table.

    Args:
        study: Fitted study.
        query: Table in the format of the study.
        table: Rows of `query` with their identifiers.
    """
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        path = Path(folder) / NAME
        with MixtureWriter(path) as file:
            for start in range(0, len(query), ROWS):
                densities = study.densities(query.iloc[start : start + ROWS])
                add_rows(file, densities, table.iloc[start : start + ROWS])
        return path.read_bytes()
