"""Links between the two tabs of the Mitosis page, which are separate studies."""

from __future__ import annotations

from html import escape

from panel.viewable import Viewable

from scant.studies import STUDIES
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.template import text

TABS = {"mitosis": "A rare class", "multiview": "Many views"}


def tabs(page: PageContext) -> Viewable:
    """Return links to both tabs, for `views.PageViews.above`."""
    keep = "?present" if page.present else ""
    links = "".join(
        f"<a href='./{study}{keep}'{_current(study == page.entry.name)}>{escape(message)}</a>"
        for study, message in TABS.items()
        if study in STUDIES
    )
    return text(f"<nav class='tabs' aria-label='Parts of this page'>{links}</nav>")


def _current(current: bool) -> str:
    return " aria-current='page'" if current else ""
