"""Protocols through which views and controls use their page.

`PageContext` is for views and panels; a page file's `views(page)` receives one. `ControlsContext`
adds the state that controls share. Both belong to one browser session, and all callbacks run on
its document.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd

from scant.studies import Entry
from scant.studies.base import Counts
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.live.hub import Hub
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.lesson import Lesson
from scant_dashboard.page_parts.views import PageViews


class PageContext(Protocol):
    """The study, the visitor, the current run, and access to its fitted model.

    Attributes:
        entry: The catalog entry.
        visit: The visitor's session, with the page's address.
        service: The `scant.runs.RunService`.
        run: The current run; None until one is open.
    """

    entry: Entry
    visit: SessionContext
    service: Any
    run: RunState | None

    @property
    def present(self) -> bool:
        """Whether present mode is on, which hides controls and enlarges type."""

    def guess_first(self, **params: Any) -> GuessFirst:
        """Create a question, which may be put to a room; `params` are `GuessFirst`'s attributes."""

    @property
    def owns_run(self) -> bool:
        """Whether the current run was started from this browser."""

    def say(self, sentence: str, kind: str = "info") -> None:
        """Show one sentence of plain text as "info", "warning" or "error"; "" removes it."""

    def link(self, **query: Any) -> str:
        """Return this page's address with its run and settings, changed by `query`.

        Settings are given by name; `run=None` drops the run, for links such as "train the same with
        …".
        """

    def read(self, at_once: bool = False) -> None:
        """Update the captions after a view has changed by itself."""

    def ask(
        self,
        question: str,
        then: Callable[[dict[str, np.ndarray]], None],
        last: Callable[[], None] = lambda: None,
        **query: Any,
    ) -> None:
        """Query the fitted model of the current run; returns at once and marks the page as busy.

        `then(answer)` is called later on the session's document, inside `hold`, where writing to
        data sources is safe (it would not be after an `await`). The answer is dropped if meanwhile
        the same question was asked again, `cancel_question(question)` was called, or another run
        opened. `last()` is called in any case. A `BadInput` is shown on the page.
        """

    def cancel_question(self, question: str) -> None:
        """Drop the pending answer to this question."""

    def background(
        self,
        work: Coroutine[Any, Any, Any],
        then: Callable[[Any], None],
        refused: Callable[[str], None] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> None:
        """Await `work` off the document, then call `then(result)` and `last()` on it.

        An error of bad input is shown on the page or passed to `refused`.
        """

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document as soon as it is free."""

    def open(self, run: str) -> None:
        """Open a run of this page. Raises `NotFound` if there is no such run."""

    def submit(self, values: Mapping[str, Any], data: str) -> Coroutine[Any, Any, str]:
        """Submit a new run of this study for the visitor; return its id."""

    def train_variant(self, changed: Mapping[str, Any]) -> None:
        """Train the current run again with changed settings, and show the two side by side."""

    def address(self) -> None:
        """Put the current run into the browser's address without loading anything."""


class SettingsControls(Protocol):
    """The form of the settings."""

    widgets: dict[str, Any]

    def raw_values(self) -> dict[str, Any]:
        """Return the settings by name, not validated yet."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` whenever a setting changes."""

    def rebased(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that still have their default, with their default at another start.

        Args:
            before: Defaults of the first start, by name, where they differ from the study's.
            start: Defaults of the other start, likewise.
        """

    def set_row_count(self, rows: int | None, used: int | None = None) -> None:
        """Pass on the number of rows of the chosen data, None if unknown, and of those learned."""


class DataChoice(Protocol):
    """The choice of the table that a run uses."""

    @property
    def value(self) -> str:
        """The name of a source, or `upload:<id>`."""

    def changed(self) -> None:
        """Update the page after properties of the chosen table have changed."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` whenever another table is chosen."""


class RunEstimate(Protocol):
    """Estimated cost of a run, as a sentence."""

    def of(self, rows: int, columns: int, counted: Counts) -> str:
        """Return the estimate for a table with these numbers of rows and columns."""

    def of_table(self, frame: pd.DataFrame) -> str:
        """Return the estimate for a table."""

    def own_check(self, answers: Mapping[str, str]) -> Callable[[pd.DataFrame, str], None] | None:
        """Return the check of a visitor's table by the settings; it raises `BadInput`."""


class ControlsContext(PageContext, Protocol):
    """A page as its controls use it: with the hub, the views and the state of the other controls.

    Attributes:
        hub: States of runs, shared by all sessions.
        views: The views from the page file.
        lesson: The lesson in the page's address.
    """

    hub: Hub
    views: PageViews
    lesson: Lesson

    @property
    def form(self) -> SettingsControls:
        """The settings."""

    @property
    def data(self) -> DataChoice:
        """The choice of data."""

    @property
    def estimate(self) -> RunEstimate:
        """The estimate of the next run."""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Steps of present mode: (title of a figure, text to show with it)."""

    def start_of(self, data: str) -> Mapping[str, Any]:
        """Return the settings from which the form starts for these data."""
