"""Prediction of files and tables with a fitted study, for `scant predict` and pages."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from scant.data_sources.open import open_table, path_and_part, reopen_table, with_covariates
from scant.errors import BadInput
from scant.studies import Entry, Settings, entry
from scant.studies.base import ArraySpec
from scant.studies.densities import HasDensities, column_specs
from scant.studies.predicted_columns import ROLE, FilePrediction, data_dictionary, plain
from scant.studies.predicted_table import FILE, with_columns
from scant.studies.protocol import FittedStudy, study_class
from scant.tables.assembly import assemble
from scant.tables.cells import Cells, from_series
from scant.tables.checks import Diagnostics
from scant.tables.column_matching import as_before, suggest
from scant.tables.csv_safety import safe_for_spreadsheet
from scant.tables.encoding import regular
from scant.tables.geometry import COLUMN
from scant.tables.images.image_table import SIDE, is_archive, read_image_table
from scant.tables.intervals import CLOSED, bounds
from scant.tables.levels import LEVELS, NOT_LEARNED, UNSEEN, decoded
from scant.tables.pieces import Piece, Style, ending, pieces, write
from scant.tables.schema import READING
from scant.training import density_file

UPLOADED_ROWS = 1_000_000  # maximum rows of an upload to predict; compressed files may be small
MAPS = (".geojson", ".gpkg")
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

    The output file is replaced only after success.

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
    style, rows = _opened(study.settings, spec, source, part)
    seen: list[str] = []
    names: tuple[list[str], list[str]] = ([], [])
    count = [0, 0]
    summed: list[pd.DataFrame] | None = [] if getattr(study, "further", ()) else None

    def told(tell: density_file.Tell) -> Iterator[pd.DataFrame]:
        for piece in _whole(rows) if getattr(study, "together", "") else rows:
            query = _query(study, spec, piece, source.name, seen)
            if summed is not None:
                summed.append(query)
            frame = tell(piece.frame, query, predicted(study, piece, query, source.name))
            names[0][:], names[1][:] = list(map(str, piece.frame)), list(map(str, frame))
            count[0] += len(frame)
            flags = [c for c in names[1] if c not in names[0] and c.endswith("outside")]
            count[1] += int(frame[flags].to_numpy().sum())
            progress(piece.share, count[0])
            yield frame

    try:
        with tempfile.TemporaryDirectory(prefix=".scant-", dir=out.parent) as folder:
            made, ensemble = Path(folder) / out.name, Path(folder) / "ensemble"
            with density_file.opened(study, densities, ensemble) as tell:
                write(told(tell), made, style)
            progress(1.0, count[0])
            os.replace(made, out)
            beside: list[Path] = []
            if ensemble.exists():
                beside.append(density_file.beside(out))
                os.replace(ensemble, beside[0])
                seen.insert(0, density_file.NOTE.format(beside[0].name))
            words = data_dictionary(spec, *names, _header(spec, study), _further(study))
            dictionary = _dictionary(out, words)
            totals = _totals(study, summed, out, seen)
            if totals is not None:
                beside.append(totals_beside(out))
    except OSError as error:
        raise BadInput(f"{out} cannot be written ({error.strerror}); name another place.") from None
    notes = tuple(dict.fromkeys(seen))
    return PredictedFile(out, dictionary, count[0], count[1], notes, totals, tuple(beside))


def _further(study: FittedStudy) -> tuple[ArraySpec, ...]:
    """Return columns that the study may add to those in its catalog."""
    return (*column_specs("target"), *getattr(study, "further", ()))


def _totals(
    study: FittedStudy, rows: list[pd.DataFrame] | None, out: Path, notes: list[str]
) -> pd.DataFrame | None:
    """Write predicted and observed totals of polygons of a map, if available."""
    told: Any = study
    if not rows or (made := told.totals(pd.concat(rows))) is None:
        return None
    table, sentence = made
    path = totals_beside(out)
    path.write_bytes(_csv(table))
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
        told = study.predict(query)
    except BadInput as error:
        sentence = str(error)
        raise BadInput(sentence if file in sentence else f"{file}: {sentence}") from None
    added = told.iloc[:, query.shape[1] :]
    return with_columns(piece.frame, {str(name): added[name].to_numpy() for name in added})


def check_file(settings: Settings, source: Path | str) -> tuple[str, ...]:
    """Check before training that a file can be predicted, and return the notes.

    Raises:
        BadInput: An error of `predict_file`.
    """
    spec = entry(settings.study)
    source, part = path_and_part(str(source))
    seen: list[str] = []
    for piece in _opened(settings, spec, source, part)[1]:
        _as_schema(settings, spec, piece, source.name, [], seen, {})
    return tuple(dict.fromkeys(seen))


def result_name(source: Path | str, alone: bool = True) -> str:
    """Return the file name of predictions, in the format of the source or CSV for images.

    Args:
        source: File to predict.
        alone: True for a separate folder, False to prefix the name of the source.
    """
    path, _ = path_and_part(str(source))
    own = "" if is_archive(path.name, path) else ending(path)
    if alone:
        return f"predictions{own or '.csv'}"
    return f"{path.name[: -len(own)] if own else path.stem}.predictions{own or '.csv'}"


def _query(
    study: FittedStudy, spec: Entry, piece: Piece, file: str, notes: list[str]
) -> pd.DataFrame:
    """Convert a block of rows to the format of a fitted study, and add to `notes`."""
    known = study.metadata.get(READING, {})
    return _as_schema(study.settings, spec, piece, file, study.inputs, notes, known)


def _as_schema(
    settings: Settings,
    spec: Entry,
    piece: Piece,
    file: str,
    inputs: list[str],
    notes: list[str],
    known: Mapping[str, Any],
) -> pd.DataFrame:
    """Convert a block of rows to the schema of the study.

    `known` has the options with which the training table was read (`Table.reading`).
    """
    reads: list[str] | None = inputs or None
    findings = Diagnostics(file, piece.frame.index.to_numpy())
    cells = piece.cells
    if spec.table.boxes:
        cells, _ = bounds(cells, findings, known.get(CLOSED, {}))
    names = list(cells)
    mapping = as_before(names, spec.table, known["mapping"]) if "mapping" in known else None
    if reads is not None and spec.table.boxes:  # a dimension is a point or a box
        there = set((mapping or suggest(names, spec.table)).values())
        reads = [name for name in reads if name in there]
    table = assemble(
        cells,
        spec.table,
        findings,
        mapping=mapping,
        target=_target(spec, settings),
        missing_codes=known.get("missing_codes", {}),
        levels=known.get(LEVELS),
        purpose="predict",
        features=reads if spec.table.features else None,
    )
    if findings.problems:
        more = len(findings.problems) - 1
        also = f" ({more} more problem{'s' * (more > 1)} in this table.)" if more else ""
        raise BadInput(findings.problems[0] + also)
    table = with_covariates(table, settings)
    late = [note for note in table.notes if NOT_LEARNED in note]
    notes += late if notes else [*piece.notes, *table.notes]
    query = table.frame.set_axis(piece.frame.index)
    query.attrs = {FILE: file, UNSEEN: table.frame.attrs.get(UNSEEN, [])}
    return query


def _target(spec: Entry, settings: Settings) -> str | None:
    """Return the name of the target column in the settings, if any."""
    setting = spec.table.target_setting
    return str(getattr(settings, setting)) if setting else None


def _header(spec: Entry, study: FittedStudy) -> str:
    """Return the header of the target column; "" for the name in the schema."""
    mapping = study.metadata.get(READING, {}).get("mapping", {})
    own = next((header for header, to in mapping.items() if to in spec.table.targets), "")
    return _target(spec, study.settings) or own


def _opened(
    settings: Settings, spec: Entry, source: Path, part: str
) -> tuple[Style, Iterator[Piece]]:
    """Iterate over blocks of rows of a file; a ZIP archive of images is one block."""
    regular(source)
    if not spec.table.images or not is_archive(source.name, source):
        return pieces(source, spec.table.maximum_columns, part)
    size = int(getattr(settings, "size", SIDE))
    table = read_image_table(source, spec.table, size=size, purpose="predict")
    frame = table.frame.set_axis(table.rows + 2 if table.rows[0] == 0 else table.rows)
    own = {str(name): from_series(str(name), frame[name]) for name in frame}
    return Style(), iter([Piece(frame, own, 1.0, table.notes)])


def _whole(rows: Iterator[Piece]) -> Iterator[Piece]:
    """Join all blocks, for a study with dependent rows."""
    every = list(rows)
    cells = {}
    for name in every[0].cells:
        parts = [piece.cells[name] for piece in every]
        texts = [part.text for part in parts if part.text is not None]
        cells[name] = Cells(
            name,
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.empty for part in parts]),
            np.concatenate([part.bad for part in parts]),
            pa.concat_arrays(texts) if len(texts) == len(parts) else None,
        )
    yield Piece(pd.concat([piece.frame for piece in every]), cells, 1.0, every[0].notes)


def _dictionary(out: Path, text: str) -> Path:
    """Write the data dictionary without replacing another `columns.md`."""
    path = out.with_name(COLUMNS)
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(HEADING):
        path = out.with_name(f"{out.name}.{COLUMNS}")
    path.write_text(text, encoding="utf-8")
    return path


# --- downloads of the pages ---------------------------------------------------------------------


def predict_upload(study: FittedStudy, name: str, content: bytes) -> FilePrediction:
    """Predict an uploaded file; the result is a ZIP archive with a data dictionary.

    Args:
        study: Fitted study.
        name: File name from the browser.
        content: Content of the file.

    Raises:
        BadInput: An error of `predict_file`.
    """

    def bounded(share: float, rows: int) -> None:
        if rows > UPLOADED_ROWS:
            raise BadInput(
                f"{name} has over {UPLOADED_ROWS:,} rows; `scant predict` takes any number on your "
                "own machine, or send it in parts."
            )

    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        given = Path(name.replace("\\", "/")).name[-100:].lstrip(".") or "table.csv"
        source = Path(folder) / "given" / given
        source.parent.mkdir()
        source.write_bytes(content)
        out = Path(folder) / result_name(source)
        densities = density_file.QP if isinstance(study, HasDensities) else ""
        made = predict_file(study, source, out, bounded, densities)
        files = {out.name: out.read_bytes(), COLUMNS: made.dictionary.read_bytes()}
        files |= {path.name: path.read_bytes() for path in made.beside}
        return FilePrediction(_zipped(files), made.rows, made.outside, made.notes, made.totals)


def predict_own(study: FittedStudy, data: str, table: bytes | None) -> bytes:
    """Predict the training table of a run as a ZIP archive.

    The table has its columns except pixels and images, identifiers, `role` (use of the row in
    training) and predictions. Maps of all tasks are added if the study has them.

    Args:
        study: Fitted study of the run.
        data: Data set of the run.
        table: Upload as Parquet; None to open the data set by name.

    Raises:
        BadInput: The table does not exist any more, or is invalid.
    """
    spec = entry(study.settings.study)
    settings = study.settings
    if table is None:
        frame, beside = open_table(spec, data, settings), pd.DataFrame()
    else:
        stored = pd.read_parquet(io.BytesIO(table), use_threads=False)
        read = reopen_table(spec, stored, settings)
        frame, beside = read.frame, read.ignored
    roles = study_class(spec.name)(settings, frame, torch.device("cpu")).roles
    told = study.predict(frame)
    given = plain(spec.table, [str(c) for c in frame])
    added = told.iloc[:, frame.shape[1] :]
    columns = {ROLE: roles, **{str(name): added[name].to_numpy() for name in added}}
    known = study.metadata.get(READING, {})
    mine = decoded(frame[given], known.get(LEVELS, {}))
    mine = mine.rename(columns={to: header for header, to in known.get("mapping", {}).items()})
    mine = mine.assign(**{str(n): beside[n] for n in beside if n not in mine})
    whole = with_columns(mine, columns)
    files = {"predictions.csv": _csv(whole)}
    if isinstance(study, HasDensities):
        files[f"predictions.{density_file.NAME}"] = density_file.as_bytes(study, frame, mine)
    every = [str(c) for c in whole]
    if hasattr(study, "map") and len(drawn := study.map()):
        files["map.csv"] = _csv(drawn)
        every += [str(c) for c in drawn if c not in every]
    files |= _as_maps(whole, frame)
    words = data_dictionary(
        spec, [str(c) for c in mine], every, _header(spec, study), getattr(study, "further", ())
    )
    return _zipped({**files, COLUMNS: words.encode()})


def _as_maps(whole: pd.DataFrame, frame: pd.DataFrame) -> dict[str, bytes]:
    """Encode predictions of polygons as maps in the supported formats."""
    if COLUMN not in frame:
        return {}
    drawn = whole.assign(**{COLUMN: frame[COLUMN].to_numpy()})
    made = {}
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        for ending in MAPS if find_spec("pyogrio") else MAPS[:1]:
            path = Path(folder) / f"predictions{ending}"
            write(iter([drawn]), path, Style())
            made[path.name] = path.read_bytes()
    return made


def _csv(frame: pd.DataFrame) -> bytes:
    return str(safe_for_spreadsheet(frame).to_csv(index=False)).encode()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()
