"""The protocol through which panels use a study's page.

`PageContext` is for views and panels of the pages, and what a page file's `views(page)` is given;
`ControlsContext` adds what controls hear from each other. Both belong to one browser session, and
everything happens on its document.
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
    """The study, the visitor, the run on show, and what can be asked of its fitted model.

    Attributes:
        entry: The catalog entry.
        visit: Who came, with which address.
        service: The `scant.runs.RunService`.
        run: The run on show; None until one is open.
    """

    entry: Entry
    visit: SessionContext
    service: Any
    run: RunState | None

    @property
    def present(self) -> bool:
        """Whether controls are hidden and type is large."""

    def guess_first(self, **params: Any) -> GuessFirst:
        """A question of the page, which a room may be asked; `params` are its attributes."""

    @property
    def mine(self) -> bool:
        """Whether the run on show was started from this browser."""

    def say(self, sentence: str, kind: str = "info") -> None:
        """Say one sentence (plain text; "info", "warning" or "error"); "" takes it back."""

    def link(self, **query: Any) -> str:
        """This page's address with the run and settings on show, changed by `query`.

        Settings go by name; `run=None` drops the run, for links such as "train the same with …".
        """

    def read(self, at_once: bool = False) -> None:
        """A view has changed of its own accord; its caption should say so."""

    def ask(
        self,
        question: str,
        then: Callable[[dict[str, np.ndarray]], None],
        last: Callable[[], None] = lambda: None,
        **query: Any,
    ) -> None:
        """Ask the fitted model of the run on show; returns at once, with a busy mark on the page.

        `then(answer)` is called later on the session's document, inside `hold`, where writing to
        data sources is safe (after an `await` it would not be). An answer that came too late is
        dropped: a newer question of the same word was asked, `unask(question)` was called, or
        another run opened. `last()` is called in any case. A `BadInput` is said on the page.
        """

    def unask(self, question: str) -> None:
        """An answer that is still to come is not wanted any more."""

    def background(
        self,
        work: Coroutine[Any, Any, Any],
        then: Callable[[Any], None],
        refused: Callable[[str], None] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> None:
        """Await `work` off the document, then call `then(result)` and `last()` on it.

        A refusal is said on the page or given to `refused`.
        """

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document, as soon as it is free."""

    def open(self, run: str) -> None:
        """Put a run on show. Raises `NotFound` where this page has no such run."""

    def submit(self, values: Mapping[str, Any], data: str) -> Coroutine[Any, Any, str]:
        """A new run of the visitor's own on this study; its id."""

    def train_beside(self, changed: Mapping[str, Any]) -> None:
        """Train the run on show again with settings changed, and lay both side by side."""

    def address(self) -> None:
        """Let the browser's address name the run on show, without loading anything."""


class FormWords(Protocol):
    """The form as it stands."""

    widgets: dict[str, Any]

    def raw_values(self) -> dict[str, Any]:
        """Settings by name, not checked yet."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed()` called whenever a setting changes."""

    def moved(self, before: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that nobody has changed since one start, as they are at another."""

    def say_rows(self, rows: int | None) -> None:
        """Tell how many rows the chosen data have."""


class ChosenData(Protocol):
    """The table that a run would use."""

    @property
    def value(self) -> str:
        """A source's name, or `upload:<id>`."""

    def changed(self) -> None:
        """What is known of the chosen table has changed."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed()` called whenever another table is chosen."""


class RunEstimate(Protocol):
    """What a run would cost, in words."""

    def of(self, rows: int, columns: int, counted: Counts) -> str:
        """That of a table of this size."""

    def of_table(self, frame: pd.DataFrame) -> str:
        """That of a table."""


class ControlsContext(PageContext, Protocol):
    """What controls need besides: the hub, the views, and each other's state.

    Attributes:
        hub: Histories of runs.
        views: What the page file supplied.
        lesson: How a teacher wants the page to be met.
    """

    hub: Hub
    views: PageViews
    lesson: Lesson

    @property
    def form(self) -> FormWords:
        """The settings."""

    @property
    def data(self) -> ChosenData:
        """The choice of data."""

    @property
    def estimate(self) -> RunEstimate:
        """The estimate of the next run."""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """What the keys of present mode step through: a figure's title, what to say."""
