"""The layout of a study's page: head, run bar, controls, figures, exports."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import panel as pn
from panel.viewable import Viewable

from scant.studies import Entry
from scant_dashboard.controls.run_bar import RunBar
from scant_dashboard.engine_text import translated
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.page_parts.lesson import Lesson
from scant_dashboard.page_parts.published_table import TITLE, whole_table
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.page_parts.widgets import (
    DeferredRenderer,
    collapsible,
    column,
    markdown,
    section,
)
from scant_dashboard.pages.publications.page import citations
from scant_dashboard.study_page.figure import Figure
from scant_dashboard.study_page.room_controller import RoomController
from scant_dashboard.template import style, text
from scant_dashboard.translate import later, tr


class Panelled(Protocol):
    """A control with a panel."""

    @property
    def panel(self) -> Viewable:
        """The layout of the control."""


class Sources(Panelled, Protocol):
    """The choice of data, with the upload wizard."""

    @property
    def wizard(self) -> Sequence[Viewable]:
        """Components that are placed over the page."""


class LaidOut(Protocol):
    """The parts of a study's page that `Layout` arranges."""

    entry: Entry
    visit: SessionContext
    views: PageViews
    figures: dict[int, Figure]
    lesson: Lesson
    bar: RunBar

    @property
    def present(self) -> bool:
        """Whether present mode is on, which hides controls and enlarges type."""

    @property
    def data(self) -> Sources:
        """The choice of data."""

    @property
    def form(self) -> Panelled:
        """The settings."""

    @property
    def estimate(self) -> Panelled:
        """The estimate of the next run."""

    @property
    def everything(self) -> Panelled:
        """The button to fit on all rows."""

    @property
    def replay(self) -> Panelled:
        """The replay of the run."""

    @property
    def trouble(self) -> Panelled:
        """The banner for server problems."""

    @property
    def room(self) -> RoomController:
        """The controller of the room."""

    @property
    def keep(self) -> Panelled:
        """Downloads and links."""

    @property
    def list(self) -> Panelled:
        """The runs of the study."""


# Present mode saves height for figures: the replay button is next to the state until it plays, and
# the device is omitted.
LOW = """
:host { display: flex !important; flex-flow: row wrap !important; align-items: center;
  gap: 4px 20px; }
:host > * { flex: 1 1 100% !important; width: auto !important; }
:host > .steered, :host > .status { flex: 1 1 60% !important; order: -2; }
:host > .replay:not(.playing), :host > .room { flex: 0 0 auto !important; order: -1; }
"""
# Panel's columns have no greatest height (see widgets.py), which only this style can give back.
CONTROLS = """
:host { gap: 36px; }
@media (min-width: 1000px) {
  :host { max-height: calc(100vh - 184px) !important; overflow: hidden auto; }
}
"""
TITLE_ROW = """
@media (min-width: 1000px) { :host > div { display: flex; align-items: baseline; gap: 4px 28px; }
  h1 { flex: none; font-size: 2.25rem; } p.lede { margin: 0; max-width: none; } }
@media (max-width: 699px) { p.lede { margin: 0; font-size: 1rem; line-height: 1.4; } }
"""
# The button at the end of the last line, what it expands beneath.
# On a static page, button and contents are one element.
INLINE = """
:host { display: flex !important; flex-flow: row wrap !important; align-items: flex-end;
  gap: 6px 20px; }
:host > :last-child { flex: 1 1 100% !important; }
:host > details:last-child:not([open]) { flex: 0 0 auto !important; }
"""
# Three lines; on a phone only the first, since the others would push the figure out of sight.
SUMMARY = """
:host { flex: 1 1 0 !important; }
ul { margin: 0; padding: 0; list-style: none; max-width: none; }
li { margin: 0; }
@media (min-width: 700px) { :host > div { font-size: .9375rem; line-height: 1.5; } }
@media (max-width: 699px) { :host > div { font-size: .875rem; line-height: 1.45; }
  li + li { display: none; } }
"""
STORY = """
:host > div { columns: 3 21rem; column-gap: 40px; }
p { max-width: none; }
p:first-child { margin-top: 0; }
"""
# The replay button is next to the state until it plays.
BAR = """
:host { display: flex !important; flex-flow: row wrap !important; align-items: center;
  gap: 4px 20px; }
:host > * { flex: 1 1 100% !important; width: auto !important; }
@media (min-width: 700px) {
  :host > .steered { flex: 1 1 60% !important; order: -2; }
  :host > .replay:not(.playing) { flex: 0 0 auto !important; order: -1; }
}
@media (max-width: 699px) {
  :host > .replay:not(.playing) { flex: 0 0 auto !important; margin: -44px 0 0 auto !important; }
}
"""
WITHOUT_DEVICE = "dl div:last-child:not(:first-child) { display: none; }"


class Layout:
    """Arranges the parts of a page; independent of the run."""

    def __init__(self, page: LaidOut) -> None:
        self._page = page
        views = page.views
        self._message = text("", visible=False)
        self._warning = text("", visible=False)
        asking = f"<p class='quiet asking' role='note'>{tr('Asking the model…')}</p>"
        self._asking = text(asking, visible=False)
        self._notes = text("", visible=False)
        self._later = DeferredRenderer(page.visit.doc)
        self._placed: set[str] = set()
        self._deferred: dict[str, tuple[pn.Column, Sequence[Any]]] = {
            later("Result"): (column(css=style("figures")), views.result),
            later("Explore"): (column(css=style("figures")), views.explore),
        }
        self._verdict = text("", visible=False)
        self.sources = text(_sources(page.entry))
        result, everything = self._deferred["Result"][0], page.everything.panel
        # In present mode a figure stands by itself.
        parts = [result] if page.present else [self._verdict, result, everything]
        heading = "unseen" if page.present else ""
        self._result = section("Result", *parts, visible=False, heading=heading)
        self._explore = section(
            "Explore", self._asking, self._deferred["Explore"][0], visible=False, heading=heading
        )
        controls = [] if page.present else self._controls()
        self.panel = column(
            self._head(),
            self._bar(),
            *controls,
            self._body(),
            name="study" if controls else "study alone",
            css=style("study"),
        )

    def message(self, sentence: str, kind: str) -> None:
        """Show one sentence of plain text, or nothing."""
        role = "alert" if kind == "error" else "note"
        self._message.object = (
            f"<p class='message {html.escape(kind)}' role='{role}'>{html.escape(sentence)}</p>"
        )
        self._message.visible = bool(sentence)

    def warn(self, sentences: Sequence[str]) -> None:
        """Show warnings on the link, as long as the page is open."""
        self._warning.object = "".join(
            f"<p class='message warning' role='note'>{html.escape(translated(sentence))}</p>"
            for sentence in sentences
        )
        self._warning.visible = bool(sentences)

    def note(self, notes: Sequence[str]) -> None:
        """Show the notes of a run."""
        items = "".join(f"<li>{html.escape(translated(note))}</li>" for note in notes)
        summary = f"<summary>{tr('Notes of this run ({n})', n=len(notes))}</summary>"
        markup = f"<details>{summary}<ul>{items}</ul></details>"
        if self._notes.object != markup:
            self._notes.object = markup
            self._notes.visible = bool(notes)

    def reveal(self, finished: bool, explored: bool = True) -> None:
        """Show or hide the sections of a finished run, or the results alone."""
        for part, name in ((self._result, "Result"), (self._explore, "Explore")):
            grid, views = self._deferred[name]
            shown = finished and (explored or name != "Explore")
            part.visible = shown and bool(views) and not self._page.lesson.hides(name)
            if part.visible and name not in self._placed:
                self._placed.add(name)
                self._later.fill(grid, partial(self._panels, views))

    def _panels(self, views: Iterable[Any]) -> list[Viewable]:
        return [self._page.figures[id(v)].panel for v in views]

    def build(self, views: Iterable[Any]) -> None:
        """Build lazy views immediately."""
        for view in views:
            if hasattr(view, "build"):
                view.build()

    def complete(self) -> None:
        """Build all lazy and deferred parts immediately."""
        self.build(self._page.views.every())
        self._later.finish()

    def show_verdict(self, markup: str) -> None:
        """Show the verdict card, or none."""
        self._verdict.object, self._verdict.visible = markup, bool(markup)

    def show_limits(self, limits: Sequence[str]) -> None:
        """Show the limits of a run before those of the study."""
        self.sources.object = _sources(self._page.entry, limits)

    def asking(self, busy: bool) -> None:
        """Show or hide the note that a query is running."""
        self._asking.visible = busy

    def _grid(self, views: Iterable[Any]) -> Viewable:
        return column(*self._panels(views), css=style("figures"))

    def _head(self) -> Viewable:
        study, views = self._page.entry, self._page.views
        title = text(
            f"<h1>{html.escape(tr(study.title))}</h1>"
            f"<p class='lede'>{html.escape(tr(study.question))}</p>"
        )
        title.stylesheets = [*title.stylesheets, TITLE_ROW]
        if self._page.present or self._page.lesson.hides("story"):
            return column(title, name="head")
        summary, _, story = views.story.partition("\n\n")
        more = column(*markdown(story, STORY), *markdown(views.equations))
        return column(
            title,
            column(*markdown(summary, SUMMARY), *collapsible(tr("Read on"), more), css=INLINE),
            name="head", css=style("head"),
        )  # fmt: skip

    def _bar(self) -> Viewable:
        page = self._page
        steered = not page.lesson.hides("train")
        replay = [] if page.lesson.hides("replay") else [page.replay.panel]
        if page.present:
            status = page.bar.status
            status.stylesheets = [*status.stylesheets, WITHOUT_DEVICE]
        return column(
            page.bar.panel if steered else page.bar.status,
            page.trouble.panel,
            self._warning,
            self._message,
            *replay,
            *([page.room.card] if page.room.card is not None else []),
            *([] if page.present or page.lesson.hides("Data") else page.data.wizard),
            name="bar",
            css=LOW if page.present else BAR,
        )

    def _sections(self, *named: tuple[str, Sequence[Any]]) -> list[Viewable]:
        """Return the sections that have parts and are not hidden by the lesson."""
        hides = self._page.lesson.hides
        return [section(name, *parts) for name, parts in named if parts and not hides(name)]

    def _controls(self) -> list[Viewable]:
        page = self._page
        sections = self._sections(
            (later("Data"), [page.data.panel]),
            (later("Settings"), [page.estimate.panel, page.form.panel]),
        )
        return [column(*sections, name="controls", css=CONTROLS)] if sections else []

    def _body(self) -> Viewable:
        page = self._page
        message = page.lesson.text
        introduction = (
            [text(f"<p class='lesson' role='note'>{html.escape(message)}</p>")] if message else []
        )
        main = [view for view in page.views.live if view.title in page.views.main]
        main = main or list(page.views.live[:1])
        rest = [view for view in page.views.live if view not in main]
        first = column(*self._panels([page.views.trace, *main]), name="first", css=style("first"))
        notes = [] if page.present else [self._notes]
        training = section(later("Training"), first, self._grid(rest), *notes, heading="unseen")
        shown = [] if page.lesson.hides("Training") else [training]
        keep = column()
        if not page.present and not page.lesson.hides("Keep"):
            self._later.fill(keep, lambda: [page.keep.panel])
        wall = [page.room.wall.figure.panel] if page.room.wall is not None else []
        after = (
            wall
            if page.present
            else self._sections(
                (TITLE, [text(measured)] if (measured := whole_table(page.entry.name)) else []),
                (later("Keep"), [keep]),
                (later("Runs"), [page.list.panel]),
                (later("Limits and sources"), [self.sources]),
            )
        )
        return column(
            *introduction, *shown, self._result, self._explore, *after,
            name="body", css=f":host {{ gap: {0 if page.present else 56}px; }}",
        )  # fmt: skip


def _sources(study: Entry, limits: Sequence[str] = ()) -> str:
    own = (*map(translated, limits), *map(tr, study.limits))
    items = "".join(f"<li>{html.escape(limit)}</li>" for limit in own)
    return (f"<ul>{items}</ul>" if items else "") + citations(study)
