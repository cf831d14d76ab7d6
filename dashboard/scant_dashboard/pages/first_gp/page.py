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
from scant_dashboard.translate import as_number, later, tr

TITLE = later("A first Gaussian process")
# The texts of `assets/html/gp.html`.
TEXTS = {
    "title": TITLE,
    "lede": later(
        "Click points into the plot: the band shows where a curve through them may still run."
    ),
    "guess": later("Guess first"),
    "reveal": later("Reveal"),
    "another": later("Another curve"),
    "show": later("Show"),
    "prior": later("Prior"),
    "prior_samples": later("Prior samples"),
    "posterior": later("Posterior"),
    "posterior_samples": later("Posterior samples"),
    "clear": later("Clear"),
    "example": later("Example"),
    "plot": later("plot"),
    "field": later("Points, with prior and posterior"),
    "how": later(
        "Click adds a point, dragging moves it, a click on it removes it. Keys: arrows move the "
        "cursor, Enter adds or removes a point, Space picks it up. The address holds your points: "
        "copy it to share them."
    ),
    "kernel": later("Kernel"),
    "periodic": later("Periodic"),
    "best": later("Best by evidence"),
    "evidence": later("Evidence"),
    "likelihood": later("log marginal likelihood"),
    "data_fit": later("data fit"),
    "penalty": later("complexity penalty"),
    "curve": later(
        "Evidence over the lengthscale, with data fit and complexity penalty; a line marks the "
        "present lengthscale"
    ),
    "lengthscale": later("lengthscale"),
    "script": later("This page computes in your browser and needs JavaScript."),
}
# What is scarce on each study's page, after "Now the same with scarce".
SCARCE = {
    "aggregation": later("single values, where only averages over areas are known"),
    "redshift": later("exact distances, with noisy colors and missing bands"),
    "genes": later("replicas, some of them never measured"),
    "omniglot": later("examples of each class"),
    "mitosis": later("examples of a rare class"),
    "multiview": later("labels, but many views of each row"),
    "clamp": later("labels, each of which costs an expert's time"),
}
# The bounds of `assets/gp/state.js`, and what each parameter is.
SLIDERS = {
    "lengthscale": (later("Lengthscale"), 0.1, 10),
    "noise": (later("Noise (deviation)"), 0.01, 1),
    "outputscale": (later("Outputscale (deviation)"), 0.2, 3),
    "period": (later("Period"), 0.5, 10),
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
    """Return the page in the language spoken, with links to the studies' pages and this query."""
    body = Template((assets() / "html" / "gp.html").read_text(encoding="utf-8")).substitute(
        x_ticks=_ticks("left", X_TICKS),
        y_ticks=_ticks("bottom", Y_TICKS),
        grid=_grid(),
        sliders="".join(_slider(name, *of) for name, of in SLIDERS.items()),
        tenth=as_number("0.1"),
        **{name: tr(sentence) for name, sentence in TEXTS.items()},
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
        f"<li><a href='./{study.name}{query}'>{html.escape(tr(study.title))}</a>"
        f"<span>… {html.escape(tr(SCARCE[study.name]))}</span></li>"
        for study in map(entry, STUDIES)
    )
    return f"<h2>{tr('Now the same with scarce …')}</h2><ul>{items}</ul>"


def _slider(name: str, label: str, low: float, high: float) -> str:
    """Return a slider over the decimal logarithm of a parameter."""
    bounds = f"min='{math.log10(low):.2f}' max='{math.log10(high):.2f}'"
    return (
        f"<label class='slider'><span>{tr(label)} <b>–</b></span>"
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
