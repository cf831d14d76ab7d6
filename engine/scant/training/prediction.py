"""Prediction of files and tables with a fitted study, for `scant predict` and pages."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.data_sources.open import path_and_part
from scant.errors import BadInput
from scant.studies import Settings, entry
from scant.studies.base import ArraySpec
from scant.studies.densities import column_specs
from scant.studies.predicted_columns import data_dictionary
from scant.studies.predicted_table import checked, with_columns
from scant.studies.protocol import FittedStudy
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.images.image_table import is_archive
from scant.tables.pieces import Piece, ending, write
from scant.training import density_file
from scant.training.query import as_schema, joined, opened, query_of, target_header

COLUMNS, HEADING = "columns.md", "# Columns of these predictions"


@dataclass(frozen=True)
class PredictedFile:
    """Result of the prediction of a file.

    Attributes:
        path: Path of the file with predictions.
        dictionary: Path of the data dictionary.
        rows: Number of rows.
        outside: Number of rows outside the range of the training data.
        notes: Sentences on inferred or suspicious data.
        totals: Predicted and observed totals if the rows are parts of polygons of a map, else None.
        beside: Paths of further files with densities and totals.
    """

    path: Path
    dictionary: Path
    rows: int
    outside: int
    notes: tuple[str, ...]
    totals: pd.DataFrame | None = None
    beside: tuple[Path, ...] = ()


def predict_file(
    study: FittedStudy,
    source: Path | str,
    out: Path,
    progress: Callable[[float, int], None] = lambda share, rows: None,
    densities: str = "",
) -> PredictedFile:
    """Predict a file of any length in blocks of rows and write the result to another file.

    A file is one block if the study's rows depend on each other (`together`). The output file is
    replaced only after success.

    Args:
        study: Fitted or restored study.
        source: Table (`book.xlsx#Sheet2` for one of several), or a ZIP archive of images if the
            study takes images.
        out: Output file, whose extension is the format.
        progress: Function called with the fraction that is done and the number of rows.
        densities: Format of predictive densities: "qp" for an ensemble in a separate file
            (`density_file.beside`), "columns" for columns of the output, "" for none.

    Raises:
        BadInput: The table lacks columns, a cell is invalid (with file, column and row), the file
            cannot be written, or the study has no densities.
    """
    spec = entry(study.settings.study)
    source, part = path_and_part(str(source))
    ending(out)
    if out.resolve() == source.resolve():
        raise BadInput(f"{out.name} is the table itself; name another file for the predictions.")
    style, rows = opened(study.settings, spec, source, part)
    notes: list[str] = []
    names: tuple[list[str], list[str]] = ([], [])
    count = [0, 0]
    queries: list[pd.DataFrame] | None = [] if getattr(study, "further", ()) else None

    def blocks(add_densities: density_file.Tell) -> Iterator[pd.DataFrame]:
        whole = getattr(study, "together", False)
        for piece in joined(rows, partial(progress, 0.0)) if whole else rows:
            query = query_of(study, spec, piece, source.name, notes)
            if queries is not None:
                queries.append(query)
            frame = add_densities(piece.frame, query, predicted(study, piece, query, source.name))
            names[0][:], names[1][:] = list(map(str, piece.frame)), list(map(str, frame))
            count[0] += len(frame)
            flags = [c for c in names[1] if c not in names[0] and c.endswith("outside")]
            count[1] += int(frame[flags].to_numpy().sum())
            progress(piece.share, count[0])
            yield frame

    try:
        with tempfile.TemporaryDirectory(prefix=".scant-", dir=out.parent) as folder:
            temporary, ensemble = Path(folder) / out.name, Path(folder) / "ensemble"
            with density_file.opened(study, densities, ensemble) as add_densities:
                write(blocks(add_densities), temporary, style)
            progress(1.0, count[0])
            os.replace(temporary, out)
            further_files: list[Path] = []
            if ensemble.exists():
                further_files.append(density_file.beside(out))
                os.replace(ensemble, further_files[0])
                notes.insert(0, density_file.NOTE.format(further_files[0].name))
            text = data_dictionary(spec, *names, target_header(spec, study), _further(study))
            dictionary = _dictionary(out, text)
            totals = _totals(study, queries, out, notes)
            if totals is not None:
                further_files.append(totals_beside(out))
    except OSError as error:
        raise BadInput(f"{out} cannot be written ({error.strerror}); name another place.") from None
    unique = tuple(dict.fromkeys(notes))
    return PredictedFile(out, dictionary, count[0], count[1], unique, totals, tuple(further_files))


def _further(study: FittedStudy) -> tuple[ArraySpec, ...]:
    """Return columns that the study may add to those in its catalog."""
    return (*column_specs("target"), *getattr(study, "further", ()))


def _totals(
    study: FittedStudy, rows: list[pd.DataFrame] | None, out: Path, notes: list[str]
) -> pd.DataFrame | None:
    """Write predicted and observed totals of polygons of a map, if available."""
    areal: Any = study
    if not rows or (totals := areal.totals(pd.concat(rows))) is None:
        return None
    table, sentence = totals
    path = totals_beside(out)
    path.write_bytes(csv_bytes(table))
    notes.insert(0, f"{sentence} {path.name} lists them.")
    frame: pd.DataFrame = table
    return frame


def totals_beside(out: Path) -> Path:
    """Return the path of the file with totals."""
    return out.with_name(f"{out.name.split('.')[0]}.totals.csv")


def predicted(study: FittedStudy, piece: Piece, query: pd.DataFrame, file: str) -> pd.DataFrame:
    """Predict a block of rows and append the predicted columns.

    Args:
        study: Fitted study.
        piece: Rows of the file.
        query: Rows in the format of the study.
        file: Name of the file for messages.

    Raises:
        BadInput: An error of `predict_file`.
    """
    try:
        prediction = study.predict(query)
    except BadInput as error:
        sentence = str(error)
        raise BadInput(sentence if file in sentence else f"{file}: {sentence}") from None
    added = prediction.iloc[:, query.shape[1] :]
    return with_columns(piece.frame, {str(name): added[name].to_numpy() for name in added})


def predict(study: FittedStudy, table: pd.DataFrame) -> pd.DataFrame:
    """Predict a data frame with the headers of the training table, and append the new columns.

    Headers, missing codes and texts are read as in the training table. `study.predict` takes
    columns with the model's own names and ignores others, such as errors by another name.
    Sentences on inferred or suspicious data are in `attrs["notes"]` of the result.

    Example:
        table = scant.predict(run.study, new_galaxies)

    Raises:
        BadInput: The table has no rows, lacks columns, or a cell is invalid (with column and row).
    """
    numbered = checked(table)
    numbered = numbered.set_axis(np.arange(2, len(table) + 2))  # row numbers of a spreadsheet
    piece = Piece.of(numbered)
    notes: list[str] = []
    query = query_of(study, entry(study.settings.study), piece, "the table", notes)
    result = predicted(study, piece, query, "the table").set_axis(table.index)
    result.attrs["notes"] = list(dict.fromkeys(notes))
    return result


def check_file(settings: Settings, source: Path | str) -> tuple[str, ...]:
    """Check before training that a file can be predicted, and return the notes.

    Raises:
        BadInput: An error of `predict_file`.
    """
    spec = entry(settings.study)
    source, part = path_and_part(str(source))
    notes: list[str] = []
    for piece in opened(settings, spec, source, part)[1]:
        as_schema(settings, spec, piece, source.name, [], notes, {})
    return tuple(dict.fromkeys(notes))


def result_name(source: Path | str, alone: bool = True) -> str:
    """Return the file name of predictions, in the format of the source or CSV for images.

    Args:
        source: File to predict.
        alone: True for a separate folder, False to prefix the name of the source.
    """
    path, _ = path_and_part(str(source))
    suffix = "" if is_archive(path.name, path) else ending(path)
    if alone:
        return f"predictions{suffix or '.csv'}"
    return f"{path.name[: -len(suffix)] if suffix else path.stem}.predictions{suffix or '.csv'}"


def _dictionary(out: Path, text: str) -> Path:
    """Write the data dictionary without replacing another `columns.md`."""
    path = out.with_name(COLUMNS)
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(HEADING):
        path = out.with_name(f"{out.name}.{COLUMNS}")
    path.write_text(text, encoding="utf-8")
    return path


def csv_bytes(frame: pd.DataFrame) -> bytes:
    return str(safe_for_spreadsheet(frame).to_csv(index=False)).encode()
