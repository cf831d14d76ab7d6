"""What a fit will take: said before Train, and again whenever settings or data change."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from dashboard.controls.status import duration
from dashboard.shell import text
from engine.catalog.entry import Counts
from engine.datasets.sources import fetched_path
from engine.datasets.tables import counts
from engine.errors import BadInput, NotFound

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage


MOST_CELLS = 10_000_000  # of a table whose labels are counted; those of a larger one are guessed


class Size(NamedTuple):
    """What an estimate is told of a table."""

    rows: int
    columns: int
    counts: Counts


class Estimate:
    """One quiet line beside the form; nothing where rows or settings are not known."""

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._sizes: dict[str, Size | None] = {}  # of uploads, which do not change
        self.panel = text("", visible=False)
        page.form.watch(self.refresh)
        page.data.watch(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Say what the form and the data come to by now."""
        found = self._size(self._page.data.value)
        said = self.of(*found) if found else ""
        if said != self.panel.object:
            self.panel.param.update(object=said, visible=bool(said))

    def of(self, rows: int, columns: int, counted: Counts) -> str:
        """A line on a fit to a table of this size; "" where nobody can tell."""
        entry = self._page.entry
        if entry.estimate is None:
            return ""
        try:
            settings = entry.settings.parse(self._page.form.words())
        except BadInput:
            return ""
        seconds, size = entry.estimate(settings, rows, columns, counted)
        return (
            f"<p class='quiet' role='note'>As set here, a fit takes about {duration(seconds)} and "
            f"{memory(size)} on one core.</p>"
        )

    def of_table(self, frame: pd.DataFrame) -> str:
        """The same of a table that is here."""
        return self.of(*frame.shape, counts(frame, self._page.entry.table))

    def _size(self, data: str) -> Size | None:
        """Of the chosen data, which are not made for it."""
        page = self._page
        source = next((s for s in page.entry.sources if s.name == data), None)
        if source is None:
            if data and data not in self._sizes:
                self._sizes[data] = self._of_upload(data)
            return self._sizes.get(data)
        if source.kind == "fetched" and page.visit.site.fetches.here(data):
            try:
                kept = read_metadata(fetched_path(data, page.visit.site.data_dir))
            except (OSError, ArrowException):  # Train will say what is wrong with it
                return None
            return Size(kept.num_rows, kept.num_columns, source.counts)
        try:
            found = source.rows_and_columns(page.entry.settings.parse(page.form.words()))
        except BadInput:
            return None
        return Size(*found, source.counts) if found else None

    def _of_upload(self, data: str) -> Size | None:
        own, store = data.removeprefix("upload:"), self._page.service.store
        try:
            record = store.upload(own)
            if record.deleted:
                return None
            rows, columns = record.rows, len(record.columns)
            table = self._page.entry.table
            known: Counts = {name: {} for name in record.columns}
            labels = [c.name for c in table.columns if c.kind == "label" and c.name in known]
            if not labels or rows * columns > MOST_CELLS:
                return Size(rows, columns, known)
            frame = pd.read_parquet(BytesIO(store.upload_parquet(own)), columns=labels)
        except NotFound:
            return None
        return Size(rows, columns, {**known, **counts(frame, table)})


def memory(size: float) -> str:
    """Bytes as a person says them, no finer than an estimate is."""
    return f"{size / 1e9:.1f} GB" if size >= 0.95e9 else f"{round(size / 1e7) * 10} MB"
