"""The contents of the page: its frame of HTML, which `assets/gp/page.js` brings to life."""

from __future__ import annotations

import html
import math
from string import Template

from panel.viewable import Viewable

from scant.studies import STUDIES, entry
from scant_dashboard.page_parts.prose import read_equations
from scant_dashboard.page_parts.widgets import collapsible, column, markdown
from scant_dashboard.template import assets, style, text
from scant_dashboard.translate import tr

TITLE = "A first Gaussian process"
# What is scarce on each study's page, after "Now the same with scarce".
SCARCE = {
    "aggregation": "single values, where only averages over areas are known",
    "redshift": "exact distances, with noisy colors and missing bands",
    "genes": "replicas, some of them never measured",
    "omniglot": "examples of each class",
    "mitosis": "examples of a rare class",
    "multiview": "labels, but many views of each row",
    "clamp": "labels, each of which costs an expert's time",
}
# The bounds of `assets/gp/state.js`, and what each parameter is.
SLIDERS = {
    "lengthscale": ("Lengthscale", 0.1, 10),
    "noise": ("Noise (deviation)", 0.01, 1),
    "outputscale": ("Outputscale (deviation)", 0.2, 3),
    "period": ("Period", 0.5, 10),
}
X_TICKS, Y_TICKS = range(0, 11, 2), range(-3, 4)
WIDE = """
:host { width: 100%; max-width: 1680px; margin: 0 auto; padding: 28px clamp(16px, 3vw, 48px) 72px;
  box-sizing: border-box; gap: 20px; }
"""
LINKS = """
ul { list-style: none; max-width: none; padding: 0; margin-top: 14px; display: grid;
  gap: 8px 28px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); }
li { padding: 8px 0 8px 14px; border-left: 3px solid var(--line); }
li a { font-weight: 600; }
li span { display: block; color: var(--quiet); font-size: .9375rem; line-height: 1.4; }
"""


def first_gp(query: str = "") -> Viewable:
    """Return the page, with links to the studies' pages that have this query."""
    body = Template((assets() / "html" / "gp.html").read_text(encoding="utf-8")).substitute(
        x_ticks=_ticks("left", X_TICKS),
        y_ticks=_ticks("bottom", Y_TICKS),
        grid=_grid(),
        sliders="".join(_slider(name, *of) for name, of in SLIDERS.items()),
    )
    guess = f".guess {{ {style('reveal').replace(':host', '&')} }}"
    stage = text(body)
    stage.stylesheets = [*stage.stylesheets, guess, style("gp/page")]
    links = text(_links(query))
    links.stylesheets = [*links.stylesheets, LINKS]
    read_on = column(*markdown(read_equations(__package__), "h3 { margin-top: 20px; }"))
    return column(stage, column(links, *collapsible(tr("Read on"), read_on), css=WIDE))


def _links(query: str) -> str:
    items = "".join(
        f"<li><a href='./{study.name}{query}'>{html.escape(study.title)}</a>"
        f"<span>… {html.escape(SCARCE[study.name])}</span></li>"
        for study in map(entry, STUDIES)
    )
    return f"<h2>Now the same with scarce …</h2><ul>{items}</ul>"


def _slider(name: str, label: str, low: float, high: float) -> str:
    """Return a slider over the decimal logarithm of a parameter."""
    bounds = f"min='{math.log10(low):.2f}' max='{math.log10(high):.2f}'"
    return (
        f"<label class='slider'><span>{label} <b>–</b></span>"
        f"<input type='range' name='{name}' {bounds} step='0.01'></label>"
    )


def _share(value: float, ticks: range) -> float:
    return (value - ticks[0]) / (ticks[-1] - ticks[0])


def _ticks(side: str, ticks: range) -> str:
    minus = "\N{MINUS SIGN}"
    return "".join(
        f"<span style='{side}:{100 * _share(v, ticks):.4g}%'>{str(v).replace('-', minus)}</span>"
        for v in ticks
    )


def _grid() -> str:
    """Return the path of the plot's grid lines."""
    down = [f"M{10_000 * _share(v, X_TICKS):.0f} 0V10000" for v in X_TICKS]
    return "".join(down + [f"M0 {10_000 * _share(v, Y_TICKS):.0f}H10000" for v in Y_TICKS])
