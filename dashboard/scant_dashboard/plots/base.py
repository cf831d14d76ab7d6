"""The base class of plots, and the views that feed them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import panel as pn

from scant.events import Report, Snapshot
from scant.tables.schema import READING
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.theme import Figure, models

TARGETS = ("z", "y", "time")  # names of learned numbers in the studies' tables
NOTHING = "Nothing to show yet."
FEW = 32
KEPT = "kept"  # a tag of sources that a legend is drawn from, which needs a row even of nothing
BESIDE = """
:host { display: grid !important; gap: 12px; max-height: none !important;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 13.75rem), 1fr)); }
:host > * { width: auto !important; min-width: 0; max-height: none !important; }
.scroll-button { display: none !important; }
"""


class View:
    """What all views share: colors hold on light and dark pages, so there is nothing to change."""

    def restyle(self, dark: bool) -> None:
        """Follow the visitor to dark or light."""

    def say(self) -> None:
        """Tell the current reading to a screen reader, on the figures themselves."""


class Plot(View):
    """A plot: its figures, how they are laid out, and its current reading in words.

    Attributes:
        title: The heading a page sets above it.
        alt: One or two sentences that state what the plot shows now, for those who cannot see it.
        figures: Its Bokeh figures.
        panel: What is laid out, made once.
        target: What its axes and color bars call the learned column; "" where they do not.
    """

    target = ""
    _usual = ""

    def __init__(self, title: str, *figures: Figure) -> None:
        self.title = title
        self.alt = ""
        self.figures = figures
        # Bokeh cannot frame a figure without data: two unseen corners stand in until there is some.
        self.corners = columns("x", "y")
        for f in figures:
            if _follows_data(f.x_range) and _follows_data(f.y_range):
                f.scatter("x", "y", source=self.corners, alpha=0)
            _plain(f)
        panes = [pn.pane.Bokeh(f, sizing_mode="stretch_width", margin=0) for f in figures]
        self.panel: Any = panes[0] if len(panes) == 1 else _beside(panes)
        self.describe(NOTHING)
        self.say()

    def describe(self, text: str) -> None:
        """State the current reading; `say` tells it to a screen reader."""
        self.alt = text
        if (text == NOTHING) == (_length(self.corners) == 0):
            ends = [0, 1] if text == NOTHING else []
            self.corners.data = {"x": _light(ends), "y": _light(ends)}

    def call_target(self, name: str) -> None:
        """Call the learned column as the user's table does; "": as it is called without one."""
        self._usual = self._usual or self.target
        name, known = name or self._usual, self.target
        if not known or name == known:
            return
        self.target = name
        for f in self.figures:
            bars = [bar for bar in f.select({"type": models.ColorBar}) if bar.title]
            for part, word in [*((a, "axis_label") for a in f.axis), *((b, "title") for b in bars)]:
                label = str(getattr(part, word) or "")
                again = re.sub(rf"(?<!\w){re.escape(known)}(?!\w)", lambda _: name, label)
                setattr(part, word, again)

    def say(self) -> None:
        """Put the current reading on the figures; not with every update, none could hear that."""
        for f in self.figures:
            f.html_attributes = {"role": "img", "aria-label": f"{self.title}. {self.alt}"}

    def clear(self) -> None:
        """Forget what is shown."""
        for f in self.figures:
            for source in {r.data_source for r in f.renderers if hasattr(r, "data_source")}:
                if KEPT not in source.tags:
                    empty(source)
        self.describe(NOTHING)


class PlotView(View):
    """A view of a page that reads as its one `plot` does."""

    plot: Any

    @property
    def alt(self) -> str:
        """The plot's reading."""
        return str(self.plot.alt)

    def say(self) -> None:
        self.plot.say()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self.plot.clear()


class DataView(PlotView):
    """A plot as a view of a page: `feed` says which arrays of a snapshot or report it shows."""

    def __init__(self, plot: Any, feed: Callable[[Any, Mapping[str, Any]], None]) -> None:
        self.plot = plot
        self.feed = feed

    @property
    def title(self) -> str:
        """The plot's heading."""
        return str(self.plot.title)

    @property
    def panel(self) -> Any:
        """What is laid out."""
        return self.plot.panel

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The plot's Bokeh figures."""
        return tuple(self.plot.figures)

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        if isinstance(self.plot, Plot):
            self.plot.call_target(target_name(metadata))
        self.feed(data, metadata)


def target_name(metadata: Mapping[str, Any]) -> str:
    """What the user's table calls the learned column, unit included; "" without an own name."""
    if metadata.get("target", TARGETS[0]) != TARGETS[0]:  # a setting names it
        return str(metadata["target"])
    return header(metadata, *TARGETS)


def header(metadata: Mapping[str, Any], *names: str) -> str:
    """The user's header of the column that became one of these; "" where it had that name."""
    mapping = metadata.get(READING, {}).get("mapping", {})
    return next((str(own) for own, to in mapping.items() if to in names), "")


def shown(
    plot: Any, *arrays: str, labels: Sequence[str] = (), needs: str = "", without: str = NOTHING
) -> DataView:
    """A plot as a view: its `show` takes `arrays` of what is told, then `labels` of the metadata.

    Where the array `needs` is empty, the plot says `without` in place of a reading, and its figures
    are hidden: axes and color bars of nothing would be those of the run before.
    """

    def feed(data: Any, metadata: Mapping[str, Any]) -> None:
        nothing = bool(needs) and not np.size(data.arrays[needs])
        for figure in plot.figures:
            if figure.visible == nothing:
                figure.visible = not nothing
        if nothing:
            plot.describe(without)
        else:
            plot.show(*(data.arrays[name] for name in arrays), *(metadata[name] for name in labels))

    return DataView(plot, feed)


def update_source(source: Any, **columns: object) -> None:
    """Set columns: numbers are patched in place where length and words are the same as before.

    Numbers travel as float32 bytes; a patch keeps the visitor's selection. Only columns that have
    changed travel at all: an update goes to every watcher of a run, five times a second.
    """
    arrays = {k: _light(v) for k, v in columns.items()}
    lengths = {len(v) for v in arrays.values()}
    same = arrays.keys() == source.data.keys() and lengths == {_length(source)}
    labels = {k: a for k, a in arrays.items() if a.dtype.kind != "f"}
    if not same or not all(np.array_equal(a, source.data[k]) for k, a in labels.items()):
        source.data = arrays
        return
    changed = {
        k: [(slice(0, len(v)), encode(v))]
        for k, v in arrays.items()
        if k not in labels and not np.array_equal(v, source.data[k], equal_nan=True)
    }
    if changed:
        source.patch(changed)


def encode(values: np.ndarray) -> Any:
    """A few numbers as a list, for one message; many as bytes, which travel in two of their own."""
    return values.tolist() if len(values) <= FEW else values


def name_drawn(plot: Figure) -> None:
    """Let the legend name only what has something to draw."""
    for item in plot.legend[0].items:
        item.visible = any(map(_draws, item.renderers))


def empty(source: Any) -> None:
    """Leave the columns, take the rows."""
    source.data = {k: values[:0] for k, values in source.data.items()}  # of the same kind


def columns(*names: str, name: str | None = None) -> Any:
    """A source with these columns and no rows yet; `name` is what the page's scripts find it by."""
    data = {column: np.empty(0, dtype=np.float32) for column in names}
    return models.ColumnDataSource(data, name=name)


def _light(values: object) -> np.ndarray:
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype.kind in "fiub" else array


def _draws(renderer: Any) -> bool:
    """Whether there is a finite height in the column that a line, an area or marks are drawn at."""
    glyph = renderer.glyph
    at = next(getattr(glyph, name) for name in ("y2", "y", "y0") if hasattr(glyph, name))
    heights = np.asarray(renderer.data_source.data[getattr(at, "field", at)], float)
    return bool(np.isfinite(heights).any())


def _length(source: Any) -> int:
    return len(next(iter(source.data.values()), ()))


def _follows_data(axis: Any) -> bool:
    """Whether two corners may join what an axis spans: no names, no chosen glyphs."""
    return not isinstance(axis, models.FactorRange) and not getattr(axis, "renderers", None)


def _plain(plot: Figure) -> None:
    """Leave out the looks of glyphs for states they never take: every model costs each session."""
    pickable = any(isinstance(tool, models.TapTool) for tool in plot.tools)
    for renderer in plot.renderers:
        if isinstance(renderer, models.GlyphRenderer):
            renderer.muted_glyph = None  # our legends hide
            if not pickable:
                renderer.nonselection_glyph = None


def _beside(panes: list[Any]) -> Any:
    """Side by side where there is room, one under another where there is not."""
    return pn.Column(*panes, stylesheets=[BESIDE], sizing_mode="stretch_width", margin=0)
