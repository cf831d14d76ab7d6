"""Downloads of the pages: predictions of an upload or of the training table as a ZIP archive."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import torch

from scant.data_sources.open import open_table, reopen_table
from scant.errors import BadInput
from scant.studies import entry
from scant.studies.densities import HasDensities
from scant.studies.predicted_columns import ROLE, FilePrediction, data_dictionary, plain
from scant.studies.predicted_table import with_columns
from scant.studies.protocol import FittedStudy, study_class
from scant.tables.geometry import COLUMN
from scant.tables.levels import LEVELS, decoded
from scant.tables.pieces import Style, write
from scant.tables.schema import READING
from scant.training import density_file
from scant.training.prediction import COLUMNS, csv_bytes, predict_file, result_name
from scant.training.query import target_header

UPLOADED_ROWS = 1_000_000  # maximum rows of an upload to predict; compressed files may be small
MAPS = (".geojson", ".gpkg")


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
        file_name = Path(name.replace("\\", "/")).name[-100:].lstrip(".") or "table.csv"
        source = Path(folder) / "given" / file_name
        source.parent.mkdir()
        source.write_bytes(content)
        out = Path(folder) / result_name(source)
        densities = density_file.QP if isinstance(study, HasDensities) else ""
        result = predict_file(study, source, out, bounded, densities)
        files = {out.name: out.read_bytes(), COLUMNS: result.dictionary.read_bytes()}
        files |= {path.name: path.read_bytes() for path in result.beside}
        return FilePrediction(
            _zipped(files), result.rows, result.outside, result.notes, result.totals
        )


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
        frame, ignored = open_table(spec, data, settings), pd.DataFrame()
    else:
        stored = pd.read_parquet(io.BytesIO(table), use_threads=False)
        read = reopen_table(spec, stored, settings)
        frame, ignored = read.frame, read.ignored
    roles = study_class(spec.name)(settings, frame, torch.device("cpu")).roles
    prediction = study.predict(frame)
    columns_of_file = plain(spec.table, [str(c) for c in frame])
    added = prediction.iloc[:, frame.shape[1] :]
    columns = {ROLE: roles, **{str(name): added[name].to_numpy() for name in added}}
    reading = study.metadata.get(READING, {})
    original = decoded(frame[columns_of_file], reading.get(LEVELS, {}))
    original = original.rename(
        columns={to: header for header, to in reading.get("mapping", {}).items()}
    )
    original = original.assign(**{str(n): ignored[n] for n in ignored if n not in original})
    whole = with_columns(original, columns)
    files = {"predictions.csv": csv_bytes(whole)}
    if isinstance(study, HasDensities):
        files[f"predictions.{density_file.NAME}"] = density_file.as_bytes(study, frame, original)
    every = [str(c) for c in whole]
    if hasattr(study, "map") and len(map_rows := study.map()):
        files["map.csv"] = csv_bytes(map_rows)
        every += [str(c) for c in map_rows if c not in every]
    files |= _as_maps(whole, frame)
    dictionary = data_dictionary(
        spec,
        [str(c) for c in original],
        every,
        target_header(spec, study),
        getattr(study, "further", ()),
    )
    return _zipped({**files, COLUMNS: dictionary.encode()})


def _as_maps(whole: pd.DataFrame, frame: pd.DataFrame) -> dict[str, bytes]:
    """Encode predictions of polygons as maps in the supported formats."""
    if COLUMN not in frame:
        return {}
    polygons = whole.assign(**{COLUMN: frame[COLUMN].to_numpy()})
    files = {}
    with tempfile.TemporaryDirectory(prefix="scant-") as folder:
        for ending in MAPS if find_spec("pyogrio") else MAPS[:1]:
            path = Path(folder) / f"predictions{ending}"
            write(iter([polygons]), path, Style())
            files[path.name] = path.read_bytes()
    return files


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
