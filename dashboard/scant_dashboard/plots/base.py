"""The base class of plots, and the views that pass data to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import panel as pn

from scant.events import Report, Snapshot
from scant.tables.schema import READING
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.theme import Figure, models, name_tools
from scant_dashboard.translate import later, tr

TARGETS = ("z", "y", "time")  # names of learned numbers in the studies' tables
NOTHING = later("Nothing to show yet.")
MAX_LIST_LENGTH = 32
PERMANENT = "kept"  # tag of sources that `clear` must not empty: legends need a row to draw from
SIDE_BY_SIDE = """
:host { display: grid !important; gap: 12px; max-height: none !important;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least, 13.75rem)), 1fr)); }
:host > * { width: auto !important; min-width: 0; max-height: none !important; }
.scroll-button { display: none !important; }
"""


class View:
    """Base class of views. Colors suit light and dark pages, so `restyle` does nothing."""

    def restyle(self, dark: bool) -> None:
        """Switch between dark and light."""

    def say(self) -> None:
        """Put the text alternative on the figures, for screen readers."""


class Plot(View):
    """A plot: its figures, their layout, and its text alternative.

    Attributes:
        title: Heading above the plot.
        alt: Text alternative: one or two sentences that state what the plot shows now.
        figures: Its Bokeh figures.
        panel: The layout of the figures, created once.
        target: Name of the learned column in axis labels, color bars and legends; "" for none.
    """

    target = ""
    _usual = ""

    def __init__(self, title: str, *figures: Figure) -> None:
        self.title = title
        self.alt = ""
        self.figures = figures
        # Bokeh cannot compute the range of a figure without data: two invisible corners define it.
        self.corners = columns("x", "y")
        for f in figures:
            if _follows_data(f.x_range) and _follows_data(f.y_range):
                f.scatter("x", "y", source=self.corners, alpha=0)
            _drop_unused_glyphs(f)
            name_tools(f)
        panes = [pn.pane.Bokeh(f, sizing_mode="stretch_width", margin=0) for f in figures]
        self.panel: Any = panes[0] if len(panes) == 1 else _side_by_side(panes)
        self.describe(NOTHING)
        self.say()

    def describe(self, text: str) -> None:
        """Set the text alternative; `say` puts it on the figures."""
        self.alt = text
        if (text == NOTHING) == (_length(self.corners) == 0):
            ends = [0, 1] if text == NOTHING else []
            self.corners.data = {"x": _as_float32(ends), "y": _as_float32(ends)}

    def call_target(self, name: str) -> None:
        """Label the learned column by its name in the user's table; "" restores the default."""
        self._usual = self._usual or self.target
        name, current = name or self._usual, self.target
        if not current or name == current:
            return
        self.target = name

        def renamed(label: str) -> str:
            return re.sub(rf"(?<!\w){re.escape(current)}(?!\w)", lambda _: name, label)

        for f in self.figures:
            for axis in f.axis:
                axis.axis_label = renamed(str(axis.axis_label or ""))
            for bar in f.select({"type": models.ColorBar}):
                if bar.title:
                    bar.title = renamed(bar.title)
            for item in (item for legend in f.legend for item in legend.items):
                item.label = {"value": renamed(item.label.value)}

    def say(self) -> None:
        """Put the text alternative on the figures; called less often than updates occur."""
        for f in self.figures:
            f.html_attributes = {"role": "img", "aria-label": f"{tr(self.title)}. {tr(self.alt)}"}

    def clear(self) -> None:
        """Remove the data."""
        for f in self.figures:
            for source in {r.data_source for r in f.renderers if hasattr(r, "data_source")}:
                if PERMANENT not in source.tags:
                    empty(source)
        self.describe(NOTHING)


class PlotView(View):
    """A view with one plot, `plot`, and its text alternative."""

    plot: Any

    @property
    def alt(self) -> str:
        """The plot's text alternative."""
        return str(self.plot.alt)

    def say(self) -> None:
        self.plot.say()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.plot.clear()


class DataView(PlotView):
    """A view of a plot; `feed` passes it arrays of a snapshot or report."""

    def __init__(self, plot: Any, feed: Callable[[Any, Mapping[str, Any]], None]) -> None:
        self.plot = plot
        self.feed = feed

    @property
    def title(self) -> str:
        """The plot's heading."""
        return str(self.plot.title)

    @property
    def panel(self) -> Any:
        """The layout."""
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
    """Return the learned column's name in the user's table, with unit; "" if it is standard."""
    if metadata.get("target", TARGETS[0]) != TARGETS[0]:  # a setting names it
        return str(metadata["target"])
    return header(metadata, *TARGETS)


def header(metadata: Mapping[str, Any], *names: str) -> str:
    """Return the user's header of the column mapped to one of `names`; "" if not renamed."""
    mapping = metadata.get(READING, {}).get("mapping", {})
    return next((str(own) for own, to in mapping.items() if to in names), "")


def array_view(
    plot: Any, *arrays: str, labels: Sequence[str] = (), needs: str = "", without: str = NOTHING
) -> DataView:
    """Return a view that calls `plot.show` with `arrays` and then with `labels` of the metadata.

    Args:
        plot: The plot.
        *arrays: Names of arrays of the snapshot or report.
        labels: Keys of the metadata.
        needs: Name of an array; while it is empty, the figures are hidden, since their axes and
            color bars would be those of the previous run.
        without: Text alternative while `needs` is empty.
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
    """Set columns, patching numbers in place if length and non-numeric columns are unchanged.

    Numbers are sent as float32; a patch keeps the visitor's selection. Only changed columns are
    sent, because updates go to every viewer of a run, five times a second.
    """
    arrays = {k: _as_float32(v) for k, v in columns.items()}
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
    """Return short arrays as lists, sent inline; longer ones take two binary messages."""
    return values.tolist() if len(values) <= MAX_LIST_LENGTH else values


def hide_empty_legend_items(plot: Figure) -> None:
    """Show only legend items with finite data."""
    for item in plot.legend[0].items:
        item.visible = any(map(_draws, item.renderers))


def empty(source: Any) -> None:
    """Remove all rows of a source."""
    source.data = {k: values[:0] for k, values in source.data.items()}  # of the same dtype


def columns(*names: str, name: str | None = None) -> Any:
    """Return a source with these columns and no rows; the page's scripts find it by `name`."""
    data = {column: np.empty(0, dtype=np.float32) for column in names}
    return models.ColumnDataSource(data, name=name)


def _as_float32(values: object) -> np.ndarray:
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype.kind in "fiub" else array


def _draws(renderer: Any) -> bool:
    """Whether a glyph has a finite y coordinate."""
    glyph = renderer.glyph
    at = next(getattr(glyph, name) for name in ("y2", "y", "y0") if hasattr(glyph, name))
    heights = np.asarray(renderer.data_source.data[getattr(at, "field", at)], float)
    return bool(np.isfinite(heights).any())


def _length(source: Any) -> int:
    return len(next(iter(source.data.values()), ()))


def _follows_data(axis: Any) -> bool:
    """Whether an axis range follows the data of all glyphs."""
    return not isinstance(axis, models.FactorRange) and not getattr(axis, "renderers", None)


def _drop_unused_glyphs(plot: Figure) -> None:
    """Remove glyphs of states that never occur, because every model costs session time."""
    pickable = any(isinstance(tool, models.TapTool) for tool in plot.tools)
    for renderer in plot.renderers:
        if isinstance(renderer, models.GlyphRenderer):
            renderer.muted_glyph = None  # our legends hide glyphs instead
            if not pickable:
                renderer.nonselection_glyph = None


def _side_by_side(panes: list[Any]) -> Any:
    """Lay out panes side by side, wrapping on narrow pages."""
    return pn.Column(*panes, stylesheets=[SIDE_BY_SIDE], sizing_mode="stretch_width", margin=0)
