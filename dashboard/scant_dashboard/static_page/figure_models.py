"""Bokeh figures as JSON, from which `assets/figures.js` draws them by BokehJS without a session.

The columns of each data source are a JSON text of their own, so that of a figure whose data changed
only these are sent again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.core.serialization import Ref, Serializer
from bokeh.core.types import ID
from bokeh.document import Document
from bokeh.model import Model

from scant_dashboard.plots.theme import SIZES, models
from scant_dashboard.template import SANS

# Tools that ask the model need the live page, which a press in their figure opens (takeover.js).
ACTING = (models.TapTool, models.BoxSelectTool, models.PolySelectTool)
LISTS = 8  # numbers above which a list is shorter as an array
# Left out: callbacks, which have no session or would need `eval`, what else needs a session, what
# is on the element around the figure, and models that BokehJS makes by itself.
OMITTED = {
    "html_attributes", "js_event_callbacks", "js_property_callbacks", "selected",
    "selection_policy", "subscribed_events", "tags", "active_drag", "active_tap",
}  # fmt: skip


def _themed(**colors: str) -> dict[str, Any]:
    """Return color, font and style of texts; `figures.js` replaces the page's CSS variables."""
    return {
        f"{part}_{name}".lstrip("_"): value
        for part, color in colors.items()
        for name, value in {
            "text_color": f"var(--{color})", "text_font": SANS, "text_font_style": "normal",
        }.items()
    }  # fmt: skip


# What Panel's Material theme sets in the browser on live pages (panel_material_ui/utils.js).
NO_LINES = {"major_tick_line_alpha": 0, "minor_tick_line_alpha": 0}
MATERIAL: dict[Any, dict[str, Any]] = {
    models.Axis: {
        **SIZES["Axis"], **_themed(major_label="quiet", axis_label="ink"), **NO_LINES,
        "axis_line_alpha": 0,
    },
    models.Legend: {
        **SIZES["Legend"], **_themed(label="ink", title="quiet"), "glyph_height": 14,
        "title_text_font_size": "0.95em", "border_line_alpha": 0, "background_fill_alpha": 0,
    },
    models.ColorBar: {
        **SIZES["ColorBar"], **_themed(title="ink", major_label="quiet"), **NO_LINES,
        "bar_line_alpha": 0, "background_fill_alpha": 0,
    },
    models.Title: {**SIZES["Title"], **_themed(_="ink")},
    models.Grid: {"grid_line_color": "var(--grid)", "grid_line_alpha": 1},
}  # fmt: skip


@dataclass(frozen=True)
class FigureModel:
    """A figure as texts.

    Attributes:
        figure: JSON of the figure and its models, as in a document of Bokeh, without data.
        sources: JSON of the columns of each data source, by the source's id.
    """

    figure: str
    sources: Mapping[str, str]


class FigureModels:
    """Converts figures, and caches the result until a model of the figure changes.

    Changes are detected through a private document to which the figures are added. Figures of
    another document are converted each time.

    Attributes:
        ids: Ids in the JSON by those of the models: numbers, the same for the same page.
    """

    def __init__(self) -> None:
        self._doc = Document()
        self._doc.on_change(self._on_change)
        self._cache: dict[str, FigureModel] = {}  # by id of the figure
        self.ids: dict[str, str] = {}
        # Ids of the figures by id of a model.
        self._owners: defaultdict[str, set[str]] = defaultdict(set)

    def __call__(self, figure: Any) -> FigureModel:
        """Return the figure as JSON; see `figure_model`."""
        if figure.document is None:
            self._doc.add_root(figure)
        if figure.document is not self._doc:
            return figure_model(figure, self.ids)
        if figure.id not in self._cache:
            for model in figure.references():
                self._owners[model.id].add(figure.id)
            self._cache[figure.id] = figure_model(figure, self.ids)
        return self._cache[figure.id]

    def _on_change(self, event: Any) -> None:
        for figure in self._owners.get(getattr(getattr(event, "model", None), "id", ""), ()):
            self._cache.pop(figure, None)


def figure_model(figure: Any, ids: MutableMapping[str, str] | None = None) -> FigureModel:
    """Return a Bokeh figure as JSON; properties with default values are left out.

    Args:
        figure: The figure.
        ids: Ids in the JSON by those of the models; new ones are added.
    """
    writer = _Writer({} if ids is None else ids)
    made = _text(writer.encode(figure))
    sources = {}
    for source in writer.sources:
        data = {name: _compact(v) for name, v in source.data.items() if _named(name, made)}
        sources[writer.ids[source.id]] = _text(writer.encode(data))
    return FigureModel(made, sources)


def is_interactive(figure: Any) -> bool:
    """Return whether a press in the figure triggers a query, which needs the live page."""
    asks = any(isinstance(tool, ACTING) for tool in figure.tools)
    return asks or "tap" in figure.js_event_callbacks


class _Writer(Serializer):
    """Encodes models without what a page without a session does not need.

    Attributes:
        ids: Ids in the JSON by those of the models.
        sources: The data sources that were met, whose columns are not encoded.
    """

    def __init__(self, ids: MutableMapping[str, str]) -> None:
        super().__init__(deferred=False)
        self.ids = ids
        self.sources: list[Any] = []

    def encode(self, obj: Any) -> Any:
        """Return a model, or another value, as JSON."""
        if not isinstance(obj, Model) or self.get_ref(obj) is not None:
            return super().encode(obj)
        number = self.ids.setdefault(obj.id, f"m{len(self.ids)}")
        self.add_ref(obj, Ref(id=ID(number)))
        values = obj.properties_with_values(include_defaults=False)
        values = {name: value for name, value in values.items() if name not in OMITTED}
        if isinstance(obj, models.Plot) and obj.tags:  # of tiles
            values["tags"] = obj.tags
        if isinstance(obj, models.ColumnDataSource):
            self.sources.append(obj)
            values.pop("data", None)
        if isinstance(obj, models.GlyphRenderer) and isinstance(obj.view.filter, models.AllIndices):
            values.pop("view", None)
        if "tools" in values:
            values["tools"] = [tool for tool in values["tools"] if _works(tool)]
        if not (isinstance(obj, models.Grid) and obj.grid_line_color is None):
            values |= next((set_ for kind, set_ in MATERIAL.items() if isinstance(obj, kind)), {})
        attributes = {name: self.encode(value) for name, value in values.items()}
        made = {"type": "object", "name": type(obj).__qualified_model__, "id": number}
        return {**made, "attributes": attributes} if attributes else made


def _works(tool: Any) -> bool:
    """Return whether a tool needs neither a session nor `eval`."""
    if isinstance(tool, (*ACTING, models.CustomAction)):
        return False
    return not (isinstance(tool, models.HoverTool) and tool.formatters)


def _named(column: str, figure: str) -> bool:
    """Return whether a figure's JSON names a column: as a field, or within a tooltip."""
    return re.search(rf'["@{{]{re.escape(column)}(?!\w)', figure) is not None


def _compact(values: Any) -> Any:
    """Return numbers in half the size; positions in pixels do not need more."""
    if isinstance(values, list) and len(values) > LISTS:
        values = np.array(values) if all(isinstance(v, float) for v in values) else values
    is_float = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return values.astype(np.float32) if is_float else values


def _text(made: Any) -> str:
    """Return JSON that may stand in a script element."""
    return json.dumps(made, separators=(",", ":")).replace("<", "\\u003c")
