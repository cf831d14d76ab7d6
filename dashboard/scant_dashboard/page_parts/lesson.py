"""The parts of a lesson's link besides run and settings.

The parameters of the query are `hide` (names of sections and figures to leave out, with commas
between), `text` (a short text to stand above the figures), `step` (the figure to begin at, counted
from 1), `guess` (questions first, answers when they are revealed), `preset` (settings by the name
of a preset; settings named beside it hold over it) and `presenter` (the code of who made the link,
and may pause and stop the runs that are started from it). What makes no sense is left out and said
in a sentence; nothing of it changes a run.
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
LONGEST = 300  # characters of a text; more belongs on a slide
NOT_FOLLOWED = "One part of the link is ignored."


@dataclass(frozen=True)
class Lesson:
    """How a teacher wants a page to be met.

    Attributes:
        hide: Sections (keys of `SECTIONS`) and figures (headings as `place.slug` writes them).
        text: Plain text to stand above the figures; "" for none.
        step: The figure to begin at, counted from 1; None begins at the top.
        guess: Whether answers are hidden until they have been guessed.
        preset: The preset to fill the form with; "" for none.
        presenter: The code of who presents it (`scant.runs.access`); "" for nobody.
        warnings: What of the link made no sense, a sentence each.
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
        """The parameters of the query that say the same, without the preset."""
        query: dict[str, Any] = {
            "hide": ",".join(sorted(self.hide)),
            "text": self.text,
            "step": self.step,
            "guess": "1" if self.guess else "",
            "presenter": self.presenter,
        }
        return {name: str(word) for name, word in query.items() if word}


def read(
    query: Mapping[str, str], titles: Iterable[str], steps: int, presets: Iterable[str]
) -> Lesson:
    """The lesson of a query.

    Args:
        query: Words of the address, by name; those that are not a lesson's are passed over.
        titles: Headings of the page's figures.
        steps: How many of them the keys step through.
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
    """Whether a word that needs no value is there, and not taken back by one."""
    return name in query and query[name].lower() not in ("0", "false", "no")


def _hide(word: str, figures: Sequence[str], warnings: list[str]) -> frozenset[str]:
    written = [slug(part) for part in word.split(",") if part.strip()]
    query = [HEADINGS.get(name, name) for name in written]
    known = {*SECTIONS, *figures}
    for name in dict.fromkeys(query):
        if name not in known:
            warnings.append(
                f"{NOT_FOLLOWED} There is nothing called {name!r} to hide; there are "
                f"{', '.join(SECTIONS)} and the figures by their headings, such as {figures[0]!r}."
            )
    return frozenset(query) & known


def _step(word: str, steps: int, warnings: list[str]) -> int | None:
    if not word:
        return None
    if word.isdecimal() and 1 <= int(word) <= steps:
        return int(word)
    warnings.append(
        f"{NOT_FOLLOWED} A lesson's step must be a whole number from 1 to {steps}, which is the "
        f"number of figures to step through; got {word[:40]!r}."
    )
    return None


def _preset(word: str, presets: Sequence[str], warnings: list[str]) -> str:
    if not word:
        return ""
    for name in presets:
        if slug(name) == slug(word):
            return name
    warnings.append(
        f"{NOT_FOLLOWED} There is no preset {word[:40]!r}; there are {', '.join(presets)}."
    )
    return ""
