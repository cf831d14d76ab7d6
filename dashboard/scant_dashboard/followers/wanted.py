"""Which page of which run somebody follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from scant.studies import STUDIES
from scant_dashboard.page_parts import lesson

# Of an address: what needs a session. Answers to guesses are told to who reveals them, not to all.
LIVE_ONLY = {"present", "guess", "compare", "file"}
SHARED = sorted(lesson.PARAMETERS - LIVE_ONLY)
LONGEST = 1_000  # characters of a parameter; a lesson's text has 300


@dataclass(frozen=True)
class Wanted:
    """Who wants the same is shown the same page.

    Attributes:
        study: Whose page it is.
        run: The run's id.
        lesson: The parameters of the lesson that the link is of.
    """

    study: str
    run: str
    lesson: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, study: str, query: Mapping[str, str]) -> Wanted | None:
        """What the address of a study's page asks for; None where that needs a session."""
        parts = tuple((name, query[name]) for name in SHARED if query.get(name))
        known = study in STUDIES and not LIVE_ONLY & set(query)
        run = query.get("run", "")
        if (
            not run
            or not known
            or any(len(word) > LONGEST for word in (run, *dict(parts).values()))
        ):
            return None
        return cls(study, run, parts)

    @property
    def query(self) -> dict[str, str]:
        """The address' query, for who builds the page."""
        return {"run": self.run, **dict(self.lesson)}

    def address(self) -> str:
        """The query of the stream; `of` reads it again."""
        return urlencode({"study": self.study, **self.query})
