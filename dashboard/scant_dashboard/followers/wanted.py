"""Identity of a followed page: study, run and lesson."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from scant.studies import STUDIES
from scant_dashboard.page_parts import lesson

# Parameters that need a session: an answer is sent only to the visitor who reveals it.
LIVE_ONLY = {"present", "guess", "compare", "file", "lang"}
SHARED = sorted(lesson.PARAMETERS - LIVE_ONLY)
LONGEST = 1_000  # characters of a parameter; a lesson's text has 300


@dataclass(frozen=True)
class PageKey:
    """Identifies a page; visitors with equal keys get the same page.

    Attributes:
        study: Name of the study.
        run: The run's id.
        lesson: Query parameters of the lesson, as sorted (name, value) pairs.
    """

    study: str
    run: str
    lesson: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, study: str, query: Mapping[str, str]) -> PageKey | None:
        """Return the key of a study's page, or None if its query needs a session."""
        parts = tuple((name, query[name]) for name in SHARED if query.get(name))
        followable = study in STUDIES and not LIVE_ONLY & set(query)
        run = query.get("run", "")
        if (
            not run
            or not followable
            or any(len(value) > LONGEST for value in (run, *dict(parts).values()))
        ):
            return None
        return cls(study, run, parts)

    @property
    def query(self) -> dict[str, str]:
        """Query of the page's address."""
        return {"run": self.run, **dict(self.lesson)}

    def address(self) -> str:
        """Return the query of the stream's address; `of` parses it."""
        return urlencode({"study": self.study, **self.query})
