"""Estimated time and memory of a fit, updated with settings and data."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from scant.errors import BadInput
from scant.runs.limits import Size, check_cost, cost_of, hours_text, size_of
from scant.studies.auto import listed
from scant.studies.base import Counts
from scant.tables.schema import counts
from scant.training.everything import once
from scant_dashboard.controls.status import duration
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.template import text

STEERED = "The author of this lesson's link may pause and stop the runs that you start here."


class Estimate:
    """A line below the form with the estimate; empty if rows or settings are unknown."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._sizes: dict[str, Size | None] = {}  # of uploads, which are immutable
        self.panel = text("", visible=False)
        page.form.watch(self.refresh)
        page.data.watch(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Update the estimate from the form and the data."""
        result = self._size(self._page.data.value)
        own = not self._page.entry.offers(self._page.data.value)
        message = self._format(self._page.form.raw_values(), result, own) if result else ""
        self._page.form.set_row_count(result.rows if result else None)
        if message != self.panel.object:
            self.panel.param.update(object=message, visible=bool(message))

    def of(self, rows: int, columns: int, counted: Counts) -> str:
        """Return the estimate for a visitor's table of this size; "" if there is none."""
        page, form = self._page, self._page.form
        start = page.start_of(page.data.value)
        own = form.rebased(start, page.entry.settings.for_predictions)
        return self._format({**form.raw_values(), **own}, Size(rows, columns, counted), own=True)

    def _format(self, values: Mapping[str, Any], size: Size, own: bool) -> str:
        entry = self._page.entry
        if entry.estimate is None:
            return ""
        limits = self._page.service.limits
        try:
            settings = entry.settings.parse(values)
        except BadInput:
            return ""
        try:
            _, chosen = entry.settled(once(settings), *size)
            cost = cost_of(entry, settings, size, own)
            assert cost is not None, "this study has an estimate"
            check_cost(cost, limits.hours, None)
        except BadInput as error:  # the same error as on Train
            return f"<p class='error' role='note'>{html.escape(str(error))}</p>"
        parts = entry.parts(settings, size.rows, size.counts) if entry.parts else ""
        allowed = f"; this server allows {hours_text(limits.hours * 3600)} a run"
        others = own and getattr(settings, "baselines", True)
        what = "a fit and the tools beside it take" if others else "a fit takes"
        more = f" {STEERED}" if self._page.lesson.presenter else ""
        return (
            f"<p class='quiet' role='note'>{parts} {html.escape(listed(chosen))} As set here, "
            f"{what} about {duration(cost.seconds)} and {memory(cost.bytes)} on one core"
            f"{allowed if limits.hours else ''}.{more}</p>"
        )

    def of_table(self, frame: pd.DataFrame) -> str:
        """Return the estimate for a visitor's table."""
        return self.of(*frame.shape, counts(frame, self._page.entry.table))

    def _size(self, data: str) -> Size | None:
        """Return the size of the chosen data without generating them; None if unknown."""
        page = self._page
        try:
            settings = page.entry.settings.parse(page.form.raw_values())
        except BadInput:
            return None
        folder, store = page.visit.site.data_dir, page.service.store
        if all(data != source.name for source in page.entry.sources):
            if data and data not in self._sizes:
                self._sizes[data] = size_of(page.entry, settings, data, store)
            return self._sizes.get(data)
        return size_of(page.entry, settings, data, store, folder)


def memory(size: float) -> str:
    """Format bytes with the precision of an estimate."""
    return f"{size / 1e9:.1f} GB" if size >= 0.95e9 else f"{round(size / 1e7) * 10} MB"
