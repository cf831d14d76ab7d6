"""The bar that joins the Mitosis page's two tabs, each a study with an address of its own."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from panel.viewable import Viewable

from dashboard.shell import text
from engine.catalog import STUDIES

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage

TABS = {"mitosis": "A rare class", "events": "Many views"}


def tabs(page: StudyPage) -> Viewable:
    """Links to both tabs, for `views.Views.above`."""
    keep = "?present" if page.present else ""
    links = "".join(
        f"<a href='./{study}{keep}'{_here(study == page.entry.name)}>{escape(said)}</a>"
        for study, said in TABS.items()
        if study in STUDIES
    )
    return text(f"<nav class='tabs' aria-label='Parts of this page'>{links}</nav>")


def _here(current: bool) -> str:
    return " aria-current='page'" if current else ""
