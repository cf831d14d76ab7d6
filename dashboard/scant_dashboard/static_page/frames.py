"""A page as it changes: its parts by number, and those that differ from one look to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from panel.viewable import Viewable

from scant_dashboard.static_figures.drawings import Drawings
from scant_dashboard.static_page.markup import PLACE, Markup, filled

STYLES = "styles"  # the key of the style sheets, which grow when a part of a new kind comes


class Panelled(Protocol):
    """A page, or anything that is laid out."""

    @property
    def panel(self) -> Viewable:
        """What is laid out."""


@dataclass(frozen=True)
class Frame:
    """A page at one moment.

    Attributes:
        root: The number of the part that holds all others.
        shells: HTML by number (`Markup.shells`), and the style element by `STYLES`.
    """

    root: str
    shells: Mapping[str, str]

    def html(self, key: str) -> str:
        """The element of a part, with all that is in it."""
        return filled(self.shells, self.shells[key])

    def within(self, key: str) -> Iterator[str]:
        """A part and all that are in it, from outside in."""
        yield key
        for place in PLACE.finditer(self.shells[key]):
            yield from self.within(place[1])

    def since(self, before: Frame) -> Iterator[str]:
        """The smallest parts that differ from what they were, in the page's order."""
        for key in (STYLES, self.root):
            yield from self._differing(key, before)

    def _differing(self, key: str, before: Frame) -> Iterator[str]:
        if self.shells[key] != before.shells.get(key):
            yield key
            return
        for place in PLACE.finditer(self.shells[key]):
            yield from self._differing(place[1], before)


class Frames:
    """A page from look to look.

    Numbers hold as long as this object; another one of the same page may number otherwise.

    Args:
        page: A study's page, or anything with a panel; nobody else has its figures in a document.
        live: Whether controls are to be touched (`Markup`).

    Attributes:
        markup: Writes the parts.
    """

    def __init__(self, page: Panelled, live: bool = True) -> None:
        self._page, self.markup = page, Markup(live, Drawings())
        self.last: Frame | None = None

    def look(self) -> Frame:
        """The page as it stands now; shells that are as they were are the same strings."""
        place = PLACE.fullmatch(self.markup.place(self._page.panel))
        assert place is not None, "a part's place is its number"
        styles = f"<style data-part='{STYLES}'>{self.markup.styles()}</style>"
        made = Frame(place[1], {**self.markup.shells, STYLES: styles})
        before = self.last.shells if self.last is not None else {}
        shown = [STYLES, *made.within(made.root)]
        self.markup.keep(set(shown))
        new = made.shells
        self.last = Frame(
            made.root, {k: before[k] if before.get(k) == new[k] else new[k] for k in shown}
        )
        return self.last

    def whole(self) -> str:
        """The page as it stands now: its style element, and one element with all else."""
        frame = self.look()
        return "".join(map(frame.html, (STYLES, frame.root)))

    def changed(self) -> dict[str, str]:
        """What became of the page since the last look: elements by their `data-part`.

        Each takes the place of the element that has its number; that is all there is to do.

        Raises:
            ValueError: There was no look before.
        """
        before = self.last
        if before is None:
            raise ValueError("ask for the whole page first")
        now = self.look()
        return {key: now.html(key) for key in now.since(before)}


def topmost(keys: Iterable[str], frame: Frame) -> list[str]:
    """Those of `keys` that lie in no other of them, in a frame's order."""
    wanted, found, covered = set(keys), list[str](), set[str]()
    for root in (STYLES, frame.root):
        for key in frame.within(root):
            if key in wanted and key not in covered:
                found.append(key)
                covered.update(frame.within(key))
    return found
