"""Files and tables predicted by a fitted study: `scant predict`, and downloads of the pages."""

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

UPLOADED_ROWS = 1_000_000  # that a page has predicted at once; packed, they may take no room
MAPS = (".geojson", ".gpkg")
COLUMNS, HEADING = "columns.md", "# Columns of these predictions"


@dataclass(frozen=True)
class PredictedFile:
    """What was written.

    Attributes:
        path: The file.
        dictionary: The data dictionary beside it.
        rows: Of the file.
        outside: Those that lie outside the training data.
        notes: What was inferred of the table, or looks suspicious.
        totals: Predicted parts against observed totals, where the rows make up polygons of a map.
        beside: Further files: densities, totals.
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
    """Predict the rows of a file, however many, piece by piece, into another file.

    Nothing is left where this fails, and an earlier file of that name stays as it was.

    Args:
        study: Fitted or restored.
        source: A table (`book.xlsx#Sheet2` for one of several), or a ZIP of images where the study
            takes those.
        out: Its ending names the format.
        progress: Called with the share of the table that is done, and the number of rows.
        densities: How predictive densities are written too: "qp", as an ensemble beside the file
            (`density_file.beside`); "columns", as columns of the file; or "", not at all.

    Raises:
        BadInput: The table lacks what the model needs, a cell cannot be used (the sentence names
            file, column and row), the file cannot be written, or the study has no densities.
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
    """Columns that a study may add beside those of its catalog."""
    return (*column_specs("target"), *getattr(study, "further", ()))


def _totals(
    study: FittedStudy, rows: list[pd.DataFrame] | None, out: Path, notes: list[str]
) -> pd.DataFrame | None:
    """Predicted parts against observed totals, written beside the predictions of a map."""
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
    """Where predicted parts are compared with observed totals."""
    return out.with_name(f"{out.name.split('.')[0]}.totals.csv")


def predicted(study: FittedStudy, piece: Piece, query: pd.DataFrame, file: str) -> pd.DataFrame:
    """The rows of a piece as they came, with the study's columns behind them.

    Args:
        study: Fitted.
        piece: Rows of the file.
        query: The same, as the study takes them.
        file: What sentences call it.

    Raises:
        BadInput: As `predict_file`.
    """
    try:
        told = study.predict(query)
    except BadInput as error:
        sentence = str(error)
        raise BadInput(sentence if file in sentence else f"{file}: {sentence}") from None
    added = told.iloc[:, query.shape[1] :]
    return with_columns(piece.frame, {str(name): added[name].to_numpy() for name in added})


def check_file(settings: Settings, source: Path | str) -> tuple[str, ...]:
    """Whether a file can be predicted, as far as can be told before there is a model; the notes.

    Raises:
        BadInput: As `predict_file`.
    """
    spec = entry(settings.study)
    source, part = path_and_part(str(source))
    seen: list[str] = []
    for piece in _opened(settings, spec, source, part)[1]:
        _as_schema(settings, spec, piece, source.name, [], seen, {})
    return tuple(dict.fromkeys(seen))


def result_name(source: Path | str, alone: bool = True) -> str:
    """What the predictions of a file are called: in its format, of images as CSV.

    Args:
        source: The file.
        alone: Whether they lie in a folder of their own; elsewhere the file's name stands in front.
    """
    path, _ = path_and_part(str(source))
    own = "" if is_archive(path.name, path) else ending(path)
    if alone:
        return f"predictions{own or '.csv'}"
    return f"{path.name[: -len(own)] if own else path.stem}.predictions{own or '.csv'}"


def _query(
    study: FittedStudy, spec: Entry, piece: Piece, file: str, notes: list[str]
) -> pd.DataFrame:
    """A piece as a fitted study takes it; `notes` gets those on the first rows."""
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
    """A piece under the names of the study's schema.

    `known` says how the table of the fit was read (`Table.reading`).
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
    """The learned column, where a setting names it."""
    setting = spec.table.target_setting
    return str(getattr(settings, setting)) if setting else None


def _header(spec: Entry, study: FittedStudy) -> str:
    """What the user calls the learned column; "" where that is the schema's own name."""
    mapping = study.metadata.get(READING, {}).get("mapping", {})
    own = next((header for header, to in mapping.items() if to in spec.table.targets), "")
    return _target(spec, study.settings) or own


def _opened(
    settings: Settings, spec: Entry, source: Path, part: str
) -> tuple[Style, Iterator[Piece]]:
    """A file's rows; those of a ZIP of images at once."""
    regular(source)
    if not spec.table.images or not is_archive(source.name, source):
        return pieces(source, spec.table.maximum_columns, part)
    size = int(getattr(settings, "size", SIDE))
    table = read_image_table(source, spec.table, size=size, purpose="predict")
    frame = table.frame.set_axis(table.rows + 2 if table.rows[0] == 0 else table.rows)
    own = {str(name): from_series(str(name), frame[name]) for name in frame}
    return Style(), iter([Piece(frame, own, 1.0, table.notes)])


def _whole(rows: Iterator[Piece]) -> Iterator[Piece]:
    """All rows at once, for a study whose rows depend on each other."""
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
    """Write the data dictionary; a `columns.md` of another's making stays."""
    path = out.with_name(COLUMNS)
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(HEADING):
        path = out.with_name(f"{out.name}.{COLUMNS}")
    path.write_text(text, encoding="utf-8")
    return path


# --- downloads of the pages ---------------------------------------------------------------------


def predict_upload(study: FittedStudy, name: str, content: bytes) -> FilePrediction:
    """A file that a visitor sent, predicted: a ZIP of the same format and its data dictionary.

    Args:
        study: Fitted.
        name: Of the file, as the browser says it.
        content: Its bytes.

    Raises:
        BadInput: As `predict_file`.
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
    """The table that a run was trained on, predicted: a ZIP with what each row was for.

    Columns are those of the table without pixels and pictures, its identifiers, `role`, and the
    study's own. A study that draws a map adds the map of all of its tasks.

    Args:
        study: Of the run, fitted.
        data: The run's data set.
        table: An upload as Parquet; None: the data set is opened by its name.

    Raises:
        BadInput: The table is gone, or cannot be used any more.
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
    """Predictions of polygons as maps, in the formats that can be written here."""
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
