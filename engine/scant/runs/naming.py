"""Names of runs for lists, tabs and exports."""

from __future__ import annotations

from scant.errors import BadInput, NotFound
from scant.store import RunRecord, Store
from scant.store.trouble import StoreTrouble
from scant.studies import entry
from scant.studies.base import Counts


def run_name(run: RunRecord, store: Store) -> str:
    """Name a run by study, data and rows learned from: "redshift · galaxies.csv · n = 800".

    The rows are left out where they are not known without reading the table, as of tables whose
    column `split` divides them.
    """
    study = entry(run.study)
    source = next((s for s in study.sources if s.name == run.data), None)
    data, rows = (source.title if source else "a deleted table"), None
    counts: Counts = source.counts if source else {}
    try:
        settings = study.settings.parse(run.settings)
        if source is not None:
            size = source.rows_and_columns(settings)
            rows = size[0] if size else None
        else:
            upload = store.upload(run.data.removeprefix("upload:"))
            data = upload.name
            rows = None if "split" in upload.columns else upload.rows
        n = study.parts(settings, rows, counts).train if study.parts and rows else rows
    except (BadInput, NotFound, StoreTrouble):  # a run of an earlier version, or a deleted table
        n = None
    return " · ".join([study.title.lower(), data, *([f"n = {n:,}"] if n else [])])
