"""Colors, and the empty figure on which all plots are based.

The hues are those of Okabe and Ito, which are distinguishable with color blindness and on
projectors. Each has a contrast of at least 3 : 1 on our light and dark pages (WCAG 2.2, 1.4.11;
tested), so one palette suffices: axes and text follow the page's theme.
"""

from __future__ import annotations

from typing import Any

import bokeh.models
import bokeh.plotting
from bokeh.themes import Theme

from scant_dashboard.translate import ENGLISH, later, spoken, tr

# Bokeh's stubs type properties as stored, not as accepted, hence Any.
models: Any = bokeh.models
Figure = Any

BLUE = "#0072b2"  # the model; accent color
VERMILION = "#d55e00"  # the other methods; warnings
GREEN = "#009e73"
GRAY = "#808791"  # references: identity lines, nominal values, truth
GROUPS = (BLUE, VERMILION, GREEN, "#b8588f", "#a67c00", "#7a6fd0")  # neighbors are distinguishable
# The hues of GROUPS, in words.
HUES = (later("blue"), later("orange"), later("green"), later("pink"), later("ochre"),
        later("violet"))  # fmt: skip
MARKERS = ("circle", "triangle", "square", "diamond", "inverted_triangle", "star")  # of GROUPS
DASHES = ("solid", "dashed", "dotted", "dashdot", "dotdash", "solid")
PAPER, INK = "#ffffff", "#1d2025"  # backgrounds of plots on light and dark pages

# Small to large deviation: from accent color over gray to warning color, of constant lightness, so
# that both ends are visible on light and dark pages.
DEVIATION = (
    "#0072b2",
    "#3377a6",
    "#507b9a",
    "#687f8e",
    "#808282",
    "#977e6a",
    "#ad7853",
    "#c26c36",
    "#d55e00",
)

# Sizes that Panel's Material theme sets in the browser. HoloViews sets a document's theme to its
# own: with other sizes, all figures of a page would change once one of HoloViews' is added.
SIZES: dict[str, dict[str, Any]] = {
    "Axis": {
        "axis_label_standoff": 12, "axis_label_text_font_size": "1em",
        "axis_label_text_font_style": "normal", "major_label_text_font_size": "0.925em",
    },
    "ColorBar": {
        "title_text_font_size": "0.95em", "title_text_font_style": "normal",
        "major_label_text_font_size": "0.9em",
    },
    "Legend": {
        "spacing": 8, "glyph_width": 14, "label_standoff": 8, "label_text_font_size": "0.95em",
    },
    "Title": {"text_font_size": "1.05em"},
}  # fmt: skip
THEME = Theme(json={"attrs": SIZES})

# Bokeh's names of tools, which it does not translate.
TOOLS = {
    "PanTool": later("Pan"),
    "BoxZoomTool": later("Box Zoom"),
    "WheelZoomTool": later("Wheel Zoom"),
    "ResetTool": later("Reset"),
    "SaveTool": later("Save"),
    "TapTool": later("Tap"),
    "BoxSelectTool": later("Box Select"),
    "LassoSelectTool": later("Lasso Select"),
    "HoverTool": later("Hover"),
}
_TICK = """
if (form) return tick.toLocaleString(language, {
  style: form.endsWith("%") ? "percent" : "decimal",
  maximumFractionDigits: (form.split("[")[1] ?? "").replace(/[^0]/g, "").length,
  useGrouping: form.includes(","),
})
const decimals = (number) => (String(Number(number.toPrecision(10))).split(".")[1] ?? "").length
const digits = Math.min(10, Math.max(...ticks.map(decimals)))
return tick.toLocaleString(language, {
  minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false,
})
"""
_SVG = """
const layer = Bokeh.index.find_one(plot).export("svg")
layer.to_blob().then((blob) => { // Bokeh's functions are not async: no `await`
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name + ".svg"
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
})
"""
# An arrow onto a line, inline so that no icon is loaded from another server.
_SVG_ICON = (
    "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'>"
    "<path d='M10 3v9m-4-4l4 4 4-4M4 16h12' fill='none' stroke='%23808791' stroke-width='2'/></svg>"
)


def new_figure(
    name: str, x: str = "", y: str = "", *, height: int = 300, tools: str = "", **options: Any
) -> Figure:
    """Return an empty figure in the common style.

    Args:
        name: Name of saved files.
        x: Label of the horizontal axis, with its unit.
        y: Label of the vertical axis, with its unit.
        height: Pixels; the width follows the page.
        tools: Bokeh tools besides pan, zoom, reset and save.
        **options: Passed on to `bokeh.plotting.figure`.
    """
    plot: Any = bokeh.plotting.figure(
        height=height,
        sizing_mode="stretch_width",
        tools=",".join(filter(None, ["pan,box_zoom,wheel_zoom,reset,save", tools])),
        active_drag=None,  # on a touch screen a finger scrolls the page, not the plot
        active_scroll=None,
        x_axis_label=x,
        y_axis_label=y,
        **{"min_border_left": 56, **options},
    )
    save_svg = models.CustomJS(args={"plot": plot, "name": name}, code=_SVG)
    plot.add_tools(
        models.CustomAction(description=tr("Save as SVG"), callback=save_svg, icon=_SVG_ICON)
    )
    apply_style(plot)
    return plot


def apply_style(plot: Figure) -> None:
    """Apply the common style, with a transparent background."""
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.outline_line_color = None
    plot.background_fill_alpha = 0
    plot.border_fill_alpha = 0
    plot.grid.grid_line_color = GRAY
    plot.grid.grid_line_alpha = 0.15
    plot.xgrid.visible = False
    for axis in plot.axis:
        axis.minor_tick_line_color = None
        axis.axis_line_alpha = 0.4
        axis.axis_label_text_font_style = "normal"
        if isinstance(axis.formatter, models.BasicTickFormatter):
            axis.formatter = tick_labels()


def name_tools(plot: Figure) -> None:
    """Describe the tools of a figure in the session's language."""
    if spoken() == ENGLISH:
        return
    for tool in plot.tools:
        if name := TOOLS.get(type(tool).__name__):
            tool.description = tool.description or tr(name)


def tick_labels(form: str = "") -> Any:
    """Return a formatter of tick labels in the session's language, never scientific.

    Args:
        form: A format of `NumeralTickFormatter`; "" writes as many decimals as the ticks need.
    """
    language = spoken()
    if language != ENGLISH:  # BokehJS comes without other languages
        args = {"language": language, "form": form}
        return models.CustomJSTickFormatter(args=args, code=_TICK)
    if form:
        return models.NumeralTickFormatter(format=form)
    return models.BasicTickFormatter(use_scientific=False)


def activate_box_select(plot: Figure) -> None:
    """Make box selection the active drag tool of a figure on which boxes are drawn."""
    plot.toolbar.active_drag = plot.select_one(models.BoxSelectTool)


def color_bar(plot: Figure, colors: Any, means: str, side: str = "right", **options: Any) -> Any:
    """Add a thin color bar and return it.

    Args:
        plot: The figure.
        colors: The color mapper.
        means: Title of the bar.
        side: Where it is placed.
        **options: Passed on to `bokeh.models.ColorBar`.
    """
    thin = {"height" if side in ("above", "below") else "width": 8}
    if spoken() != ENGLISH:
        options.setdefault("formatter", tick_labels())
    bar = models.ColorBar(
        color_mapper=colors,
        title=means,
        title_text_font_style="normal",
        title_text_font_size="12px",
        major_label_policy=models.NoOverlap(),
        padding=4,
        border_line_alpha=0,
        **thin,
        **options,
    )
    plot.add_layout(bar, side)
    return bar


def place_legend_above(plot: Figure, stacked: bool = False) -> None:
    """Move the legend above the plot, where it covers nothing; clicking an entry hides its glyph.

    Args:
        plot: The figure.
        stacked: Whether entries are stacked vertically, for names too long for one row on a phone.
    """
    legend = plot.legend[0]
    plot.center.remove(legend)
    plot.add_layout(legend, "above")
    # Panel's Material theme would set the size relative to the surrounding text.
    wrapped = "" if stacked else ".bk-grid { display: flex; flex-wrap: wrap; width: auto; }"
    legend.stylesheets = [f":host {{ font-size: 0.8rem; max-width: 100%; }} {wrapped}"]
    legend.update(
        orientation="vertical" if stacked else "horizontal",
        location="left",
        label_text_font_size="12px",
        label_standoff=6,
        label_height=14,
        glyph_height=14,
        glyph_width=18,
        border_line_alpha=0,
        background_fill_alpha=0,
        margin=0,
        padding=2,
        spacing=2 if stacked else 14,
        click_policy="hide",
    )
