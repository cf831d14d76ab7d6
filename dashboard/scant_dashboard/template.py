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
from markupsafe import Markup
from panel.viewable import Viewable
from panel_material_ui.base import BASE_TEMPLATE

from scant import html_table
from scant.studies import STUDIES, entry
from scant_dashboard.translate import ENGLISH, LANGUAGES, for_scripts, spoken, tr

LIGHT = {
    "paper": "#fbfaf7",
    "raised": "#ffffff",
    "ink": "#1d2026",
    "quiet": "#5b616c",
    "line": "#dedbd3",
    "grid": "rgba(0, 0, 0, 0.1)",  # of figures, as Panel's theme has it
    "accent": "#0069a6",
    "on_accent": "#ffffff",
}
DARK = {
    "paper": "#15171b",
    "raised": "#1d2025",
    "ink": "#eceae4",
    "quiet": "#a4a9b3",
    "line": "#343840",
    "grid": "rgba(255, 255, 255, 0.12)",
    "accent": "#6cb8ee",
    "on_accent": "#0d1319",
}
SANS = "'Inter', 'like Inter', system-ui, -apple-system, 'Segoe UI', sans-serif"
SERIF = "'Source Serif 4', 'like Source Serif', Georgia, 'Times New Roman', serif"


@dataclass
class PageContent:
    """Contents of a page: the title of its tab, its objects, and its study."""

    title: str
    main: list[Viewable]
    study: str = ""


def text(markup: str, **params: Any) -> pn.pane.HTML:
    """Return an HTML pane in the page's typography; text from elsewhere must be escaped."""
    params.setdefault("sizing_mode", "stretch_width")
    params.setdefault("margin", 0)
    return pn.pane.HTML(markup, stylesheets=[style("text")], **params)


@cache
def style(name: str) -> str:
    """Return a style sheet for shadow roots, into which the page's own styles do not reach."""
    sheet = (assets() / f"{name}.css").read_text(encoding="utf-8")
    return sheet + html_table.STYLE if name == "text" else sheet


def component(name: str) -> str:
    """Return the script of a component, preceded by helpers that several of them share."""
    return "".join((assets() / f"{n}.js").read_text(encoding="utf-8") for n in ("elements", name))


@cache
def assets() -> Path:
    """Return the folder of styles, fonts and icons, of the installed package or the checkout."""
    here = Path(__file__).parent
    for folder in (here / "assets", here.parents[1] / "assets"):
        if (folder / "page.css").is_file():
            return folder
    raise FileNotFoundError("The folder 'assets' is missing from this installation of Scant.")


@cache
def katex_folder() -> str:
    """Return the address of KaTeX among Panel's files, relative to a page."""
    dist = Path(pn.__file__).parent / "dist"
    folder = min(dist.glob("bundled/katex/*/dist"))
    return f"./static/extensions/panel/{folder.relative_to(dist).as_posix()}"


def header(study: str = "", present: bool = False, user: str = "") -> pn.pane.HTML:
    """Return links to all pages, with that of `study` marked, and to this page in other languages.

    With a user, their name and the logout button follow.
    """
    keep = "?present" if present else ""
    links = "".join(
        f"<a href='./{to.name}{keep}'{_current(to.name == study)}>{html.escape(tr(to.title))}</a>"
        for to in map(entry, STUDIES)
    )
    return text(
        f"<nav class='top' aria-label='{tr('Pages')}'><a class='mark' href='./{keep}'>Scant</a>"
        f"<span class='pages'>{links}</span>{_languages()}{log_out(user)}</nav>"
    )


def _languages() -> str:
    # `assets/language.js` keeps the rest of the address, such as the run.
    return "".join(
        f"<a class='language' href='?lang={language}' hreflang='{language}' lang='{language}'>"
        f"{name}</a>"
        for language, name in LANGUAGES.items()
        if language != spoken()
    )


def log_out(user: str) -> str:
    """Return the user's name with a logout button; "" without a user."""
    if not user:
        return ""
    return (
        f"<form class='account' method='post' action='./logout'><span>{html.escape(user)}</span>"
        f"<button type='submit'>{tr('Log out')}</button></form>"
    )


def _current(current: bool) -> str:
    return " aria-current='page'" if current else ""


def reconnect() -> CustomJS:
    """Return the script that runs when the browser's connection is lost."""
    # Bokeh's own reconnection leaves gaps in the curve; a reloaded page has its state from the
    # address and the hub, so the script waits for the server and reloads the page.
    return CustomJS(
        args={
            "message": tr("The connection was lost. Runs continue; this page reconnects by itself.")
        },
        code="""
        if (window.scantLost) return
        window.scantLost = true
        const bar = document.createElement('div')
        bar.className = 'lost'
        bar.setAttribute('role', 'alert')
        bar.textContent = message
        document.body.append(bar)
        const poll = async () => {
          try {
            const answer = await fetch('./healthz', {cache: 'no-store'})
            if (answer.status < 600) { location.reload(); return }
          } catch (error) { /* not yet */ }
          setTimeout(poll, 700)
        }
        setTimeout(poll, 300)
        """,
    )


# Present mode: at 1080p no type of a figure, its sentence and the status has less than 24 px.
LARGE = "font-size: clamp(24px, 1.46vw, 28px); --small: .875rem;"


def variables(present: bool) -> str:
    """Return CSS variables for the theme's colors, and larger type in present mode."""
    colors = {
        "paper": "background-paper",
        "raised": "background-default",
        "ink": "text-primary",
        "quiet": "text-secondary",
        "line": "divider",
        "accent": "primary-main",
    }
    names = "".join(f"--{ours}: var(--mui-palette-{name});" for ours, name in colors.items())
    size = f"{LARGE} {_plot_type(24, 24)}" if present else ""
    return f":root {{ {names} --sans: {SANS}; --serif: {SERIF}; {size} }}"


def _plot_type(label: int, tick: int) -> str:
    """Return the font sizes of figures in pixels; Bokeh prefers these to all themes."""
    sizes = {"axis-label": label, "major-label": tick, "title": label, "label": tick}
    return "".join(f"--bk-{part}-text-font-size: {size}px;" for part, size in sizes.items())


@cache
def template(language: str = ENGLISH) -> Template:
    """Return Panel's page template with our scripts, and the language of the page."""
    return BASE_TEMPLATE.environment.from_string(
        "{% extends base %}"
        "{% block preamble %}{{ super() }}"
        "<meta name='language' content='{{ language }}'>"
        "<script id='sentences' type='application/json'>{{ sentences }}</script>"
        "<script src='./assets/upstream/filepond_painter.js'></script>{% endblock %}"
        "{% block postamble %}{{ super() }}"
        "<script src='./assets/upstream/layout.js'></script>"
        "<script src='./assets/upstream/early_changes.js'></script>"
        "<script src='./assets/upstream/sent_models.js'></script>"
        "<script src='./assets/upstream/refused_connection.js'></script>"
        "<script src='./assets/upstream/text_size.js'></script>"
        "<script src='./assets/words.js'></script>"
        "<script src='./assets/language.js'></script>"
        "<script src='./assets/tiles.js'></script>"
        "<script src='./assets/page.js'></script>"
        "<script src='./assets/present.js'></script>"
        "{% endblock %}",
        globals={
            "base": BASE_TEMPLATE,
            "language": language,
            "sentences": Markup(for_scripts(language)),
        },
    )


@cache
def theme() -> dict[str, Any]:
    """Return our typography and colors for Material UI, light and dark."""

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
            # The page's own bars contain empty h5 elements, which are no headings.
            "MuiTypography": {"defaultProps": {"variantMapping": {"h3": "div", "h5": "div"}}},
            "MuiButton": {"defaultProps": {"disableElevation": True}},
            # The unused busy indicator has no accessible name.
            "MuiLinearProgress": {"defaultProps": {"aria-hidden": True}},
        },
    }
    return {
        "light": {**common, "palette": palette(LIGHT)},
        "dark": {**common, "palette": palette(DARK)},
    }
