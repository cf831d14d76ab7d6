"""Citations of a study, as HTML."""

from __future__ import annotations

from html import escape

from scant.studies import Entry


def citations(study: Entry) -> str:
    """Return a study's citations as paragraphs, with links to their DOIs."""
    cited = ""
    for citation in study.citations:
        doi = escape(citation.doi)
        link = f" <a href='https://doi.org/{doi}'>doi:{doi}</a>" if doi else ""
        cited += f"<p>{escape(citation.text)}{link}</p>"
    return cited
