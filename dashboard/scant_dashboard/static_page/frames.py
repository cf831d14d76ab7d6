"""Successive states of a page as numbered parts, and the parts that differ between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from panel.viewable import Viewable

from scant_dashboard.static_page.markup import PLACEHOLDER, Markup, filled

STYLES = "styles"  # key of the style sheets, which grow with new kinds of parts


class Panelled(Protocol):
    """A page, or another object with a layout."""

    @property
    def panel(self) -> Viewable:
        """The layout."""


@dataclass(frozen=True)
class Frame:
    """A page at one moment.

    Attributes:
        root: Number of the part that contains all others.
        shells: HTML by number (`Markup.shells`), and the style element by `STYLES`.
    """

    root: str
    shells: Mapping[str, str]

    def html(self, key: str) -> str:
        """Return the element of a part, with its contents."""
        return filled(self.shells, self.shells[key])

    def within(self, key: str) -> Iterator[str]:
        """Yield a part and all parts within it, outermost first."""
        yield key
        for match in PLACEHOLDER.finditer(self.shells[key]):
            yield from self.within(match[1])

    def since(self, before: Frame) -> Iterator[str]:
        """Yield the smallest parts that differ from `before`, in the page's order."""
        for key in (STYLES, self.root):
            yield from self._differing(key, before)

    def _differing(self, key: str, before: Frame) -> Iterator[str]:
        if self.shells[key] != before.shells.get(key):
            yield key
            return
        for match in PLACEHOLDER.finditer(self.shells[key]):
            yield from self._differing(match[1], before)


class Frames:
    """Captures successive frames of a page.

    The numbers are valid for this object only; another one may number the same page differently.

    Args:
        page: A study's page, or another object with a panel; its figures must not be in a document.
        live: Whether controls are to be operable (`Markup`).

    Attributes:
        markup: Converts the parts.
    """

    def __init__(self, page: Panelled, live: bool = True) -> None:
        self._page, self.markup = page, Markup(live)
        self.last: Frame | None = None

    def capture(self) -> Frame:
        """Return the current state of the page; unchanged shells are identical strings."""
        match = PLACEHOLDER.fullmatch(self.markup.placeholder(self._page.panel))
        assert match is not None, "a placeholder contains its part's number"
        styles = f"<style data-part='{STYLES}'>{self.markup.styles()}</style>"
        made = Frame(match[1], {**self.markup.shells, STYLES: styles})
        before = self.last.shells if self.last is not None else {}
        keys = [STYLES, *made.within(made.root)]
        self.markup.keep(set(keys))
        new = made.shells
        self.last = Frame(
            made.root, {k: before[k] if before.get(k) == new[k] else new[k] for k in keys}
        )
        return self.last

    def whole(self) -> str:
        """Return the current page: its style element, and one element with everything else."""
        frame = self.capture()
        return "".join(map(frame.html, (STYLES, frame.root)))

    def changed(self) -> dict[str, str]:
        """Return the elements changed since the previous capture, by their `data-part`.

        Each replaces the element with its number, which brings the page up to date.

        Raises:
            ValueError: There was no previous capture.
        """
        before = self.last
        if before is None:
            raise ValueError("ask for the whole page first")
        now = self.capture()
        return {key: now.html(key) for key in now.since(before)}


def topmost(keys: Iterable[str], frame: Frame) -> list[str]:
    """Return the keys that are not within other keys, in the frame's order."""
    remaining, result, covered = set(keys), list[str](), set[str]()
    for root in (STYLES, frame.root):
        for key in frame.within(root):
            if key in remaining and key not in covered:
                result.append(key)
                covered.update(frame.within(key))
    return result
