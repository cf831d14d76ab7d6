"""The publications behind the studies, as their pages cite them, in one list."""

from __future__ import annotations

import html

from scant.studies import STUDIES, Entry, entry
from scant_dashboard.server import prefix
from scant_dashboard.server.answers import Answer, html_page


class Publications(Answer):
    """Lists the publications of every study; takes no browser session."""

    def get(self) -> None:
        """Send the list, with a link to each study's page."""
        under = prefix.of(self.request)
        parts = (
            f"<h2><a href='{html.escape(under)}/{study.name}'>{html.escape(study.title)}</a></h2>"
            + citations(study)
            for study in map(entry, STUDIES)
        )
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(html_page("Publications", "".join(parts), under))


def citations(study: Entry) -> str:
    """Return a study's citations as paragraphs, with links to their DOIs."""
    cited = ""
    for citation in study.citations:
        doi = html.escape(citation.doi)
        link = f" <a href='https://doi.org/{doi}'>doi:{doi}</a>" if doi else ""
        cited += f"<p>{html.escape(citation.text)}{link}</p>"
    return cited
