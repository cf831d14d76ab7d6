"""The HTML template of all pages: fonts, colors, style sheets, header links."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.models import CustomJS
from jinja2 import Template
from panel.viewable import Viewable
from panel_material_ui.base import BASE_TEMPLATE

from scant import html_table
from scant.studies import STUDIES, entry

LIGHT = {
    "paper": "#fbfaf7",
    "raised": "#ffffff",
    "ink": "#1d2026",
    "quiet": "#5b616c",
    "line": "#dedbd3",
    "accent": "#0069a6",
    "on_accent": "#ffffff",
}
DARK = {
    "paper": "#15171b",
    "raised": "#1d2025",
    "ink": "#eceae4",
    "quiet": "#a4a9b3",
    "line": "#343840",
    "accent": "#6cb8ee",
    "on_accent": "#0d1319",
}
SANS = "'Inter', system-ui, -apple-system, 'Segoe UI', sans-serif"
SERIF = "'Source Serif 4', Georgia, 'Times New Roman', serif"


@dataclass
class PageContent:
    """A page without its frame: the title of its tab, its objects, the study it belongs to."""

    title: str
    main: list[Viewable]
    study: str = ""


def text(markup: str, **params: Any) -> pn.pane.HTML:
    """Markup of our own in the page's typography; whatever came from outside must be escaped."""
    params.setdefault("sizing_mode", "stretch_width")
    params.setdefault("margin", 0)
    return pn.pane.HTML(markup, stylesheets=[style("text")], **params)


@cache
def style(name: str) -> str:
    """A style sheet of ours, for the shadow roots into which a page's own styles do not reach."""
    sheet = (assets() / f"{name}.css").read_text(encoding="utf-8")
    return sheet + html_table.STYLE if name == "text" else sheet


def component(name: str) -> str:
    """The script of a component, after what several of them build their elements with."""
    return "".join((assets() / f"{n}.js").read_text(encoding="utf-8") for n in ("elements", name))


@cache
def assets() -> Path:
    """The folder of styles, fonts and icons: in the installed package, else the checkout's."""
    here = Path(__file__).parent
    for folder in (here / "assets", here.parents[1] / "assets"):
        if (folder / "page.css").is_file():
            return folder
    raise FileNotFoundError("The folder 'assets' is missing from this installation of Scant.")


def header(study: str = "", present: bool = False, user: str = "") -> pn.pane.HTML:
    """Links to all pages, that of `study` marked; who is logged in, and the way out."""
    keep = "?present" if present else ""
    here = entry(study).tab_of or study if study else ""
    links = "".join(
        f"<a href='./{to.name}{keep}'{_here(to.name == here)}>{html.escape(to.title)}</a>"
        for to in map(entry, STUDIES)
        if not to.tab_of
    )
    return text(
        f"<nav class='top' aria-label='Pages'><a class='mark' href='./{keep}'>Scant</a>"
        f"<span class='pages'>{links}</span>{log_out(user)}</nav>"
    )


def log_out(user: str) -> str:
    """Who is logged in, with the button that ends it; nothing where nobody logs in."""
    if not user:
        return ""
    return (
        f"<form class='account' method='post' action='./logout'><span>{html.escape(user)}</span>"
        "<button type='submit'>Log out</button></form>"
    )


def _here(current: bool) -> str:
    return " aria-current='page'" if current else ""


def reconnect() -> CustomJS:
    """What the browser does once its connection is lost."""
    # Bokeh's own reconnection left gaps in the curve; a fresh page has its state from the address
    # and the hub, so we wait until the server answers and load it anew.
    return CustomJS(
        code="""
        if (window.scantLost) return
        window.scantLost = true
        const bar = document.createElement('div')
        bar.className = 'lost'
        bar.setAttribute('role', 'alert')
        bar.textContent = 'The connection was lost. Runs go on; this page comes back by itself.'
        document.body.append(bar)
        const poll = async () => {
          try {
            const answer = await fetch('./healthz', {cache: 'no-store'})
            if (answer.status < 600) { location.reload(); return }
          } catch (error) { /* not yet */ }
          setTimeout(poll, 700)
        }
        setTimeout(poll, 300)
        """
    )


def variables(present: bool) -> str:
    """Our names for the theme's colors, which change with it; and larger type for the back row."""
    colors = {
        "paper": "background-paper",
        "raised": "background-default",
        "ink": "text-primary",
        "quiet": "text-secondary",
        "line": "divider",
        "accent": "primary-main",
    }
    names = "".join(f"--{ours}: var(--mui-palette-{name});" for ours, name in colors.items())
    size = f"font-size: 21px; {_plot_type(20, 18)}" if present else ""
    return f":root {{ {names} --sans: {SANS}; --serif: {SERIF}; {size} }}"


def _plot_type(label: int, tick: int) -> str:
    """The type of figures in pixels, which Bokeh reads from the page before all themes."""
    sizes = {"axis-label": label, "major-label": tick, "title": label, "label": tick}
    return "".join(f"--bk-{part}-text-font-size: {size}px;" for part, size in sizes.items())


@cache
def template() -> Template:
    """Panel's own page with our scripts."""
    return BASE_TEMPLATE.environment.from_string(
        "{% extends base %}"
        "{% block preamble %}{{ super() }}"
        "<script src='./assets/upstream/filepond_painter.js'></script>{% endblock %}"
        "{% block postamble %}{{ super() }}"
        "<script src='./assets/upstream/layout.js'></script>"
        "<script src='./assets/upstream/early_changes.js'></script>"
        "<script src='./assets/upstream/sent_models.js'></script>"
        "<script src='./assets/upstream/refused_connection.js'></script>"
        "<script src='./assets/upstream/text_size.js'></script>"
        "<script src='./assets/page.js'></script>"
        "<script src='./assets/present.js'></script>"
        "{% endblock %}",
        globals={"base": BASE_TEMPLATE},
    )


@cache
def theme() -> dict[str, Any]:
    """Our type and colors, light and dark, as Material UI takes them."""

    def palette(colors: dict[str, str]) -> dict[str, Any]:
        return {
            "primary": {"main": colors["accent"], "contrastText": colors["on_accent"]},
            "background": {"default": colors["raised"], "paper": colors["paper"]},
            "text": {"primary": colors["ink"], "secondary": colors["quiet"]},
            "divider": colors["line"],
        }

    common = {
        "typography": {"fontFamily": SANS, "button": {"textTransform": "none", "fontWeight": 600}},
        "shape": {"borderRadius": 6},
        "components": {
            "MuiAppBar": {
                "styleOverrides": {
                    "root": {
                        "backgroundColor": "var(--paper)",
                        "backgroundImage": "none",
                        "color": "var(--ink)",
                        "boxShadow": "none",
                        "borderBottom": "1px solid var(--line)",
                    }
                }
            },
            # The page's own bars hold empty h5 elements, which are no headings of ours.
            "MuiTypography": {"defaultProps": {"variantMapping": {"h3": "div", "h5": "div"}}},
            "MuiButton": {"defaultProps": {"disableElevation": True}},
            # The bar of a busy indicator that we do not use: it stays, unseen and without a name.
            "MuiLinearProgress": {"defaultProps": {"aria-hidden": True}},
        },
    }
    return {
        "light": {**common, "palette": palette(LIGHT)},
        "dark": {**common, "palette": palette(DARK)},
    }
