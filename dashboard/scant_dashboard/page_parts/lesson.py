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
from scant_dashboard.translate import enumerated, later, tr

PARAMETERS = {"preset", "hide", "text", "step", "guess", "presenter"}  # of the query
SECTIONS = {
    "story": later("Story and equations"),
    "train": later("Train, Pause and Stop"),
    "replay": later("Replay"),
    "data": later("Data"),
    "settings": later("Settings"),
    "training": later("Training"),
    "result": later("Result"),
    "explore": later("Explore"),
    slug(TITLE): TITLE,
    "keep": later("Keep"),
    "runs": later("Runs"),
    "limits-and-sources": later("Limits and sources"),
}
LONGEST = 300  # characters of the text


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
            tr(
                "The text of this lesson has {n:,} characters; the first {shown} are shown.",
                n=len(text),
                shown=LONGEST,
            )
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
                tr(
                    "One part of the link is ignored. There is nothing called {name!r} to hide; "
                    "there are {sections} and the figures by their headings, such as {figure!r}.",
                    name=name,
                    sections=", ".join(SECTIONS),
                    figure=figures[0],
                )
            )
    return frozenset(query) & names


def _step(value: str, steps: int, warnings: list[str]) -> int | None:
    if not value:
        return None
    if value.isdecimal() and 1 <= int(value) <= steps:
        return int(value)
    warnings.append(
        tr(
            "One part of the link is ignored. A lesson's step must be a whole number from 1 to "
            "{steps}, which is the number of figures to step through; got {value!r}.",
            steps=steps,
            value=value[:40],
        )
    )
    return None


def _preset(value: str, presets: Sequence[str], warnings: list[str]) -> str:
    if not value:
        return ""
    for name in presets:
        if slug(name) == slug(value):
            return name
    warnings.append(
        tr(
            "One part of the link is ignored. There is no preset {value!r}; there are {presets}.",
            value=value[:40],
            presets=enumerated(presets),
        )
    )
    return ""
