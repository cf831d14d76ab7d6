"""Parameters of a lesson in a page's address, besides run and settings.

The parameters of the query are `hide` (comma-separated names of sections and figures to leave
out), `text` (a short text above the figures), `step` (the first figure to show, counted from 1),
`guess` (answers are hidden until revealed), `preset` (settings of a named preset; settings in the
query take precedence) and `presenter` (the code of the author of the link, who may pause and stop
the runs started from it). Invalid parameters are ignored with a warning; none changes a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scant.runs.access import presenter_named
from scant.studies.aliases import HEADINGS
from scant_dashboard.page_parts.published_table import TITLE
from scant_dashboard.page_parts.widgets import slug

PARAMETERS = {"preset", "hide", "text", "step", "guess", "presenter"}  # of the query
SECTIONS = {
    "story": "Story and equations",
    "train": "Train, Pause and Stop",
    "replay": "Replay",
    "data": "Data",
    "settings": "Settings",
    "training": "Training",
    "result": "Result",
    "explore": "Explore",
    slug(TITLE): TITLE,
    "keep": "Keep",
    "runs": "Runs",
    "limits-and-sources": "Limits and sources",
}
LONGEST = 300  # characters of the text
NOT_FOLLOWED = "One part of the link is ignored."


@dataclass(frozen=True)
class Lesson:
    """A teacher's adjustments to a page.

    Attributes:
        hide: Sections (keys of `SECTIONS`) and figures (headings as `widgets.slug` writes them).
        text: Plain text above the figures; "" for none.
        step: The first figure to show, counted from 1; None starts at the top.
        guess: Whether answers are hidden until they have been guessed.
        preset: The preset that fills the form; "" for none.
        presenter: The presenter's code (`scant.runs.access`); "" for none.
        warnings: A sentence for each part of the link that was ignored.
    """

    hide: frozenset[str] = frozenset()
    text: str = ""
    step: int | None = None
    guess: bool = False
    preset: str = ""
    presenter: str = ""
    warnings: Sequence[str] = field(default=(), compare=False)

    def hides(self, title: str) -> bool:
        """Whether the section or figure under this heading is left out."""
        return slug(title) in self.hide

    def query(self) -> dict[str, str]:
        """Return the query parameters of this lesson, without the preset."""
        query: dict[str, Any] = {
            "hide": ",".join(sorted(self.hide)),
            "text": self.text,
            "step": self.step,
            "guess": "1" if self.guess else "",
            "presenter": self.presenter,
        }
        return {name: str(value) for name, value in query.items() if value}


def read(
    query: Mapping[str, str], titles: Iterable[str], steps: int, presets: Iterable[str]
) -> Lesson:
    """Parse the lesson in a query.

    Args:
        query: Query of the address; parameters that are not a lesson's are ignored.
        titles: Headings of the page's figures.
        steps: Number of figures in present mode.
        presets: Names of the study's presets.
    """
    warnings: list[str] = []
    hide = _hide(query.get("hide", ""), [slug(title) for title in titles], warnings)
    text = " ".join(query.get("text", "").split())
    if len(text) > LONGEST:
        warnings.append(
            f"The text of this lesson has {len(text)} characters; the first {LONGEST} are shown."
        )
        text = text[:LONGEST].rstrip() + "…"
    return Lesson(
        hide,
        text,
        _step(query.get("step", ""), steps, warnings),
        on(query, "guess"),
        _preset(query.get("preset", ""), list(presets), warnings),
        presenter_named(query.get("presenter", "")),
        tuple(warnings),
    )


def on(query: Mapping[str, str], name: str) -> bool:
    """Whether a flag is in the query, with no value or one other than 0, false and no."""
    return name in query and query[name].lower() not in ("0", "false", "no")


def _hide(value: str, figures: Sequence[str], warnings: list[str]) -> frozenset[str]:
    written = [slug(part) for part in value.split(",") if part.strip()]
    query = [HEADINGS.get(name, name) for name in written]
    names = {*SECTIONS, *figures}
    for name in dict.fromkeys(query):
        if name not in names:
            warnings.append(
                f"{NOT_FOLLOWED} There is nothing called {name!r} to hide; there are "
                f"{', '.join(SECTIONS)} and the figures by their headings, such as {figures[0]!r}."
            )
    return frozenset(query) & names


def _step(value: str, steps: int, warnings: list[str]) -> int | None:
    if not value:
        return None
    if value.isdecimal() and 1 <= int(value) <= steps:
        return int(value)
    warnings.append(
        f"{NOT_FOLLOWED} A lesson's step must be a whole number from 1 to {steps}, which is the "
        f"number of figures to step through; got {value[:40]!r}."
    )
    return None


def _preset(value: str, presets: Sequence[str], warnings: list[str]) -> str:
    if not value:
        return ""
    for name in presets:
        if slug(name) == slug(value):
            return name
    warnings.append(
        f"{NOT_FOLLOWED} There is no preset {value[:40]!r}; there are {', '.join(presets)}."
    )
    return ""
