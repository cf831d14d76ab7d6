"""Files to predict as blocks of rows in the format of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from scant.data_sources.open import with_covariates
from scant.errors import BadInput
from scant.studies import Entry, Settings
from scant.studies.predicted_table import FILE
from scant.studies.protocol import FittedStudy
from scant.tables.assembly import assemble
from scant.tables.cells import Cells
from scant.tables.checks import Diagnostics
from scant.tables.column_matching import as_before, suggest
from scant.tables.encoding import regular
from scant.tables.images.image_table import SIDE, is_archive, read_image_table
from scant.tables.intervals import CLOSED, bounds
from scant.tables.levels import LEVELS, NOT_LEARNED, UNSEEN
from scant.tables.pieces import Piece, Style, pieces
from scant.tables.schema import READING


def query_of(
    study: FittedStudy, spec: Entry, piece: Piece, file: str, notes: list[str]
) -> pd.DataFrame:
    """Convert a block of rows to the format of a fitted study, and add to `notes`."""
    reading = study.metadata.get(READING, {})
    return as_schema(study.settings, spec, piece, file, study.inputs, notes, reading)


def as_schema(
    settings: Settings,
    spec: Entry,
    piece: Piece,
    file: str,
    inputs: list[str],
    notes: list[str],
    reading: Mapping[str, Any],
) -> pd.DataFrame:
    """Convert a block of rows to the schema of the study.

    `reading` holds the options with which the training table was read (`Table.reading`).
    """
    used: list[str] | None = inputs or None
    findings = Diagnostics(file, piece.frame.index.to_numpy())
    cells = piece.cells
    if spec.table.boxes:
        cells, _ = bounds(cells, findings, reading.get(CLOSED, {}))
    names = list(cells)
    mapping = as_before(names, spec.table, reading["mapping"]) if "mapping" in reading else None
    if used is not None and spec.table.boxes:  # a dimension is a point or a box
        present = set((mapping or suggest(names, spec.table)).values())
        used = [name for name in used if name in present]
    table = assemble(
        cells,
        spec.table,
        findings,
        mapping=mapping,
        target=_target(spec, settings),
        missing_codes=reading.get("missing_codes", {}),
        levels=reading.get(LEVELS),
        purpose="predict",
        features=used if spec.table.features else None,
    )
    if findings.problems:
        n_more = len(findings.problems) - 1
        suffix = f" ({n_more} more problem{'s' * (n_more > 1)} in this table.)" if n_more else ""
        raise BadInput(findings.problems[0] + suffix)
    table = with_covariates(table, settings)
    not_learned = [note for note in table.notes if NOT_LEARNED in note]
    notes += not_learned if notes else [*piece.notes, *table.notes]
    query = table.frame.set_axis(piece.frame.index)
    query.attrs = {FILE: file, UNSEEN: table.frame.attrs.get(UNSEEN, [])}
    return query


def _target(spec: Entry, settings: Settings) -> str | None:
    """Return the name of the target column in the settings, if any."""
    setting = spec.table.target_setting
    return str(getattr(settings, setting)) if setting else None


def target_header(spec: Entry, study: FittedStudy) -> str:
    """Return the header of the target column; "" for the name in the schema."""
    mapping = study.metadata.get(READING, {}).get("mapping", {})
    mapped = next((header for header, to in mapping.items() if to in spec.table.targets), "")
    return _target(spec, study.settings) or mapped


def opened(
    settings: Settings, spec: Entry, source: Path, part: str
) -> tuple[Style, Iterator[Piece]]:
    """Iterate over blocks of rows of a file; a ZIP archive of images is one block."""
    regular(source)
    if not spec.table.images or not is_archive(source.name, source):
        return pieces(source, spec.table.maximum_columns, part)
    size = int(getattr(settings, "size", SIDE))
    table = read_image_table(source, spec.table, size=size, purpose="predict")
    frame = pd.concat([table.ignored, table.frame], axis=1)
    frame = frame.set_axis(table.rows + 2 if table.rows[0] == 0 else table.rows)
    return Style(), iter([Piece.of(frame, table.notes)])


def joined(rows: Iterator[Piece], read: Callable[[int], None]) -> Iterator[Piece]:
    """Join all blocks, for a study with dependent rows.

    Args:
        rows: Blocks of a file.
        read: Called with the number of rows so far; it may refuse more.
    """
    blocks, cells, n_rows = list[Piece](), {}, 0
    for piece in rows:
        blocks.append(piece)
        n_rows += len(piece.frame)
        read(n_rows)
    for name in blocks[0].cells:
        parts = [piece.cells[name] for piece in blocks]
        texts = [part.text for part in parts if part.text is not None]
        cells[name] = Cells(
            name,
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.empty for part in parts]),
            np.concatenate([part.bad for part in parts]),
            pa.concat_arrays(texts) if len(texts) == len(parts) else None,
        )
    yield Piece(pd.concat([piece.frame for piece in blocks]), cells, 1.0, blocks[0].notes)
