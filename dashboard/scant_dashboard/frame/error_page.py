"""The error page: one sentence instead of a traceback."""

from __future__ import annotations

import html

from scant_dashboard.template import PageContent, text
from scant_dashboard.translate import tr


def error_page(title: str, sentence: str) -> PageContent:
    """Return a page with an error message and a link to the gallery."""
    return PageContent(
        title,
        [
            text(
                f"<h1>{html.escape(title)}</h1><p class='lede' role='alert'>{html.escape(sentence)}"
                f"</p><p><a href='./'>{tr('Back to the gallery')}</a></p>"
            )
        ],
    )
