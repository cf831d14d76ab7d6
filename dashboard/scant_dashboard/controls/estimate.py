"""Estimated time and memory of a fit, updated with settings and data."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

import pandas as pd

from scant.errors import BadInput
from scant.runs.limits import Size, check_cost, check_upload, cost_of, hours_text, size_of
from scant.studies.auto import Choices, listed
from scant.studies.base import Counts
from scant.tables.schema import counts
from scant.training.everything import once
from scant_dashboard.controls.status import duration
from scant_dashboard.engine_text import translated
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.template import text
from scant_dashboard.translate import ENGLISH, later, spoken, tr

STEERED = later("The author of this lesson's link may pause and stop the runs that you start here.")
# Sentences on a fit, and on a fit that general tools are compared with.
COST = (
    later("With these settings, a fit takes about {time} and {memory} on one core."),
    later(
        "With these settings, a fit and the methods compared with it take about {time} and "
        "{memory} on one core."
    ),
)
LIMITED_COST = (
    later(
        "With these settings, a fit takes about {time} and {memory} on one core; this server "
        "allows {limit} per run."
    ),
    later(
        "With these settings, a fit and the methods compared with it take about {time} and "
        "{memory} on one core; this server allows {limit} per run."
    ),
)


class Estimate:
    """A line below the form with the estimate; empty if rows or settings are unknown."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._checks = count(1)
        self._check = 0  # number of the latest check of an upload
        self._sizes: dict[str, Size | None] = {}  # of uploads, which are immutable
        self.panel = text("", visible=False)
        page.form.watch(self.refresh)
        page.data.watch(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Update the estimate from the form and the data."""
        result = self._size(self._page.data.value)
        own = not self._page.entry.offers(self._page.data.value)
        try:
            settings = self._page.entry.settings.parse(self._page.form.raw_values())
            message = self._format(settings, result, own) if result else ""
        except BadInput:
            settings, message = None, ""
        parts = self._page.entry.parts
        used = (
            parts(settings, result.rows, result.counts).train
            if settings and result and parts
            else 0
        )
        self._page.form.set_row_count(result.rows if result else None, used)
        self._show(message)
        self._check = next(self._checks)
        if own and result:
            self._check_upload()

    def _show(self, message: str) -> None:
        if message != self.panel.object:
            self.panel.param.update(object=message, visible=bool(message))

    def _check_upload(self) -> None:
        """Show why the run would be refused, if so, once the table was read for it."""
        page, number = self._page, self._check
        try:
            settings = page.entry.settings.parse(page.form.raw_values())
        except BadInput:
            return

        def show(sentence: str) -> None:
            if self._check == number:
                self._show(refused(sentence))

        page.background(
            asyncio.to_thread(
                check_upload, page.entry, settings, page.data.value, page.service.store
            ),
            lambda _: None,
            refused=show,
        )

    def own_check(self, answers: Mapping[str, str]) -> Callable[[pd.DataFrame, str], None] | None:
        """Return the check of a visitor's table by the form's settings; None if they are wrong.

        It may be called in another thread.

        Args:
            answers: Settings in place of the form's.
        """
        try:
            return partial(self._page.entry.check_table, self._settings_for_own(answers))
        except BadInput:
            return None

    def _settings_for_own(self, answers: Mapping[str, str] = {}) -> Any:
        """Return the settings from which a fit to a visitor's table starts."""
        page, form = self._page, self._page.form
        start = page.start_of(page.data.value)
        own = form.rebased(start, page.entry.settings.for_predictions)
        return page.entry.settings.parse({**form.raw_values(), **own, **answers})

    def of(self, rows: int, columns: int, counted: Counts) -> str:
        """Return the estimate for a visitor's table of this size; "" if there is none."""
        try:
            settings = self._settings_for_own()
        except BadInput:
            return ""
        return self._format(settings, Size(rows, columns, counted), own=True)

    def _format(self, settings: Any, size: Size, own: bool) -> str:
        entry = self._page.entry
        if entry.estimate is None:
            return ""
        limits = self._page.service.limits
        try:
            _, chosen = entry.settled(once(settings), *size)
            cost = cost_of(entry, settings, size, own)
            assert cost is not None, "this study has an estimate"
            check_cost(cost, limits.hours, None)
        except BadInput as error:  # the same error as on Train
            return refused(str(error))
        parts = entry.parts(settings, size.rows, size.counts) if entry.parts else ""
        others = bool(own and getattr(settings, "baselines", True))
        sentence = tr(
            (LIMITED_COST if limits.hours else COST)[others],
            time=duration(cost.seconds),
            memory=memory(cost.bytes),
            limit=hours_text(limits.hours * 3600),
        )
        more = f" {tr(STEERED)}" if self._page.lesson.presenter else ""
        return (
            f"<p class='quiet' role='note'>{translated(str(parts))} "
            f"{html.escape(_chosen(entry.settings, chosen))} {sentence}{more}</p>"
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


def _chosen(settings: Any, choices: Choices) -> str:
    """List what was chosen from the data, in other languages by the labels of the form."""
    if spoken() == ENGLISH:
        return listed(choices)
    if not choices:
        return ""
    parts = []
    for name, (value, why) in choices.items():
        shown = tr("{n:,}", n=value) if isinstance(value, int) else tr(str(value))
        parts.append(f"{tr(str(settings.param[name].label))} {shown} ({translated(why)})")
    return tr("Chosen from the data: {parts}.", parts="; ".join(parts))


def refused(sentence: str) -> str:
    """Return the markup of a reason why a run would be refused."""
    return f"<p class='error' role='note'>{html.escape(translated(sentence))}</p>"


def memory(size: float) -> str:
    """Format bytes with the precision of an estimate."""
    if size >= 0.95e9:
        return tr("{n:.1f} GB", n=size / 1e9)
    return tr("{n} MB", n=round(size / 1e7) * 10)
