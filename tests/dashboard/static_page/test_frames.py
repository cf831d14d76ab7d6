"""Parts of a page that have changed, put in the places of those before, make the page of now."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from typing import Any

import panel as pn
import panel_material_ui as pmui
import pytest
from bokeh.plotting import figure
from hypothesis import given, settings
from hypothesis import strategies as st

from scant_dashboard.static_page.frames import Frames, topmost

VOID = {"input", "img", "br", "link", "meta"}


class Places(HTMLParser):
    """Where the element with a certain `data-part` begins and ends in a page."""

    def __init__(self, html: str, part: str) -> None:
        super().__init__()
        self._starts = [0]
        for line in html.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._part, self._depth = part, 0
        self.begin = self.end = -1
        self.feed(html)

    def _at(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.begin < 0 and dict(attrs).get("data-part") == self._part:
            self.begin = self._at()
        if self.begin >= 0 and self.end < 0 and tag not in VOID:
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        if self.begin >= 0 and self.end < 0:
            self._depth -= 1
            if not self._depth:
                self.end = self._at() + len(f"</{tag}>")


def put(page: str, changed: dict[str, str]) -> str:
    """The page with elements in the places of those that have their numbers."""
    for part, html in changed.items():
        at = Places(page, part)
        assert 0 <= at.begin < at.end, part
        page = page[: at.begin] + html + page[at.end :]
    return page


class Toy:
    """A page of all kinds of parts."""

    def __init__(self) -> None:
        self.plot = figure(x_range=(0, 1), y_range=(0, 1))
        self.line = self.plot.line([0, 1], [0, 1])
        self.words = pn.pane.HTML("<p>words</p>")
        self.other = pn.pane.HTML("<p>other</p>")
        self.tick = pmui.Checkbox(label="tick")
        self.inner = pn.Column(self.words, pn.pane.Bokeh(self.plot))
        self.panel = pn.Column(self.inner, pn.FlexBox(self.tick), self.other)

    def act(self, what: str, how: int) -> None:
        """One of the changes that happen to a page."""
        match what:
            case "draw":
                self.line.data_source.data = {"x": [0, 1], "y": [0, how / 10]}
            case "say":
                self.words.object = f"<p>{how}<br>{escape('<!--part 0-->')}</p>"
            case "hide":
                (self.words, self.inner, self.tick, self.other)[how % 4].visible ^= True
            case "tick":
                self.tick.value = bool(how % 2)
            case "hold":
                self.inner.objects = [pn.pane.HTML(str(n)) for n in range(how)] + [self.words]
            case "style":
                self.other.stylesheets = [f":host {{ margin: {how}px }}"]


acts = st.lists(
    st.tuples(st.sampled_from(["draw", "say", "hide", "tick", "hold", "style"]), st.integers(0, 9)),
    max_size=4,
)


@settings(deadline=None, max_examples=30)
@given(st.lists(acts, min_size=1, max_size=5))
def test_changes_one_after_another_make_the_page_of_now(rounds: list[list[Any]]) -> None:
    toy = Toy()
    frames = Frames(toy)
    page = frames.whole()
    for several in rounds:
        for what, how in several:
            toy.act(what, how)
        page = put(page, frames.changed())
        assert page == frames.whole()


def test_only_the_smallest_part_that_differs_is_told() -> None:
    toy = Toy()
    frames = Frames(toy)
    with pytest.raises(ValueError, match="whole page first"):
        frames.changed()
    frames.whole()
    assert frames.changed() == {}
    toy.act("say", 3)
    (html,) = frames.changed().values()
    assert html.startswith("<div data-part=")
    assert "<p>3<br>" in html
    assert "class='plot'" not in html
    toy.act("draw", 3)
    (html,) = frames.changed().values()
    assert html.startswith("<script data-part=")
    assert html.count("<script") == 1  # the data only
    toy.act("hide", 1)
    (html,) = frames.changed().values()
    assert html.startswith("<template data-part=")
    toy.act("hide", 1)
    (html,) = frames.changed().values()
    assert "class='plot'" in html
    assert "<p>3<br>" in html


def test_topmost_parts_hold_all_that_changed() -> None:
    toy = Toy()
    frames = Frames(toy)
    frame = frames.capture()
    root, inner, *leaves = list(frame.within(frame.root))
    assert topmost([leaves[0], leaves[1]], frame) == leaves[:2]
    assert topmost([leaves[1], inner, leaves[-1]], frame) == [inner, leaves[-1]]
    assert topmost([*leaves, root], frame) == [root]
