"""How a study's page is laid out: head, run bar, controls, figures, and what comes after them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import panel as pn
from panel.viewable import Viewable

from dashboard.pages.place import Later, column, fold, markdown, section
from dashboard.pages.reproduced import TITLE, whole_table
from dashboard.shell import style, text
from engine.catalog import Entry

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage


class Layout:
    """The parts of a `StudyPage` in their places; knows no run."""

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        views = page.views
        self._message = text("", visible=False)
        self._warning = text("", visible=False)
        self._asking = text("<p class='quiet' role='note'>Asking the model…</p>", visible=False)
        self._notes = text("", visible=False)
        self._later = Later(page.visit.doc)
        self._placed: set[str] = set()
        self._late: dict[str, tuple[pn.Column, Sequence[Any]]] = {
            "Result": (column(css=style("figures")), views.result),
            "Explore": (column(css=style("figures")), views.explore),
        }
        self._result = section("Result", self._late["Result"][0], visible=False)
        self._explore = section("Explore", self._asking, self._late["Explore"][0], visible=False)
        bar = page.bar.status if page.present else page.bar.panel
        self.panel = column(
            self._head(),
            column(bar, self._warning, self._message, page.replay.panel, name="bar"),
            *([] if page.present else [self._controls()]),
            self._body(),
            name="study presenting" if page.present else "study",
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
        """Show what of the link could not be followed, for as long as the page is open."""
        self._warning.object = "".join(
            f"<p class='message warning' role='note'>{html.escape(s)}</p>" for s in sentences
        )
        self._warning.visible = bool(sentences)

    def note(self, notes: Sequence[str]) -> None:
        """Show what a run has noted."""
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        summary = f"<summary>Notes of this run ({len(notes)})</summary>"
        markup = f"<details>{summary}<ul>{items}</ul></details>"
        if self._notes.object != markup:
            self._notes.object = markup
            self._notes.visible = bool(notes)

    def reveal(self, shown: bool) -> None:
        """Show or hide what only a finished run has."""
        for part, name in ((self._result, "Result"), (self._explore, "Explore")):
            grid, views = self._late[name]
            part.visible = shown and bool(views)
            if part.visible and name not in self._placed:
                self._placed.add(name)
                self._later.fill(grid, [self._page.figures[id(v)].panel for v in views])

    def asking(self, busy: bool) -> None:
        """Mark that the model is being asked."""
        self._asking.visible = busy

    def _grid(self, views: Iterable[Any]) -> Viewable:
        return column(*(self._page.figures[id(v)].panel for v in views), css=style("figures"))

    def _head(self) -> Viewable:
        study, views = self._page.entry, self._page.views
        title = text(
            f"<h1>{html.escape(study.title)}</h1><p class='lede'>{html.escape(study.question)}</p>"
        )
        above = [] if views.above is None else [column(views.above, name="above")]
        if self._page.present:
            return column(*above, title, name="head")
        story: list[Any] = [*markdown(views.story)]
        if views.equations:
            story += fold("Equations", column(*markdown(views.equations)))
        return column(*above, title, column(*story), name="head", css=style("head"))

    def _controls(self) -> Viewable:
        page = self._page
        return column(
            section("Data", page.data.panel),
            section("Settings", page.estimate.panel, page.form.panel),
            name="controls",
            css=":host { gap: 36px; }",
        )

    def _reproduced(self) -> list[Viewable]:
        markup = whole_table(self._page.entry.name)
        return [section(TITLE, text(markup))] if markup else []

    def _body(self) -> Viewable:
        page = self._page
        training = section(
            "Training", self._grid([page.views.trace, *page.views.live]), self._notes
        )
        after: list[Any] = (
            []
            if page.present
            else [
                *self._reproduced(),
                section("Keep", page.keep.panel),
                section("Runs", page.list.panel),
                section("Limits and sources", text(_sources(page.entry))),
            ]
        )
        return column(
            training, self._result, self._explore, *after, name="body", css=":host { gap: 56px; }"
        )


def _sources(study: Entry) -> str:
    limits = "".join(f"<li>{html.escape(limit)}</li>" for limit in study.limits)
    cited = ""
    for citation in study.citations:
        doi = html.escape(citation.doi)
        link = f" <a href='https://doi.org/{doi}'>doi:{doi}</a>" if doi else ""
        cited += f"<p>{html.escape(citation.text)}{link}</p>"
    return (f"<ul>{limits}</ul>" if limits else "") + cited
