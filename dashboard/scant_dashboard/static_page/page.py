"""A study's page as one HTML file: the recorded run, in the frame of all pages."""

from __future__ import annotations

from html import escape

from bokeh.server.views.static_handler import StaticHandler
from panel.viewable import Viewable

from scant_dashboard.static_page.markup import Markup
from scant_dashboard.static_page.pictures import apart
from scant_dashboard.template import DARK, LARGE, LIGHT, SANS, SERIF, header, style
from scant_dashboard.translate import ENGLISH, later, spoken, tr

CLASSES = "{{classes}}"  # placeholder of the class `dark`, which depends on the visitor
ACCOUNT = "<!--account-->"  # placeholder of the logout button
SUN = (
    "<button type='button' class='theme' aria-label='{}'>"
    "<svg viewBox='0 0 24 24' width='24'><circle cx='12' cy='12' r='5'/>"
    "<path d='M12 1v3m0 16v3M4.2 4.2l2 2m11.6 11.6 2 2M1 12h3m16 0h3M4.2 19.8l2-2M17.8 6.2l2-2' "
    "stroke='currentColor' stroke-width='2'/></svg></button>"
)
DESCRIPTION = later("Gaussian processes for scarce data, trained live in the browser")
BEGIN, END = "<!--still-->", "<!--/still-->"
TAKEOVER = "<script src='./assets/takeover.js' defer></script>"
# Loaded before the first paint, as lines break elsewhere in other fonts.
FONTS = "".join(
    f"<link rel='preload' href='assets/fonts/{font}-latin.woff2' as='font' type='font/woff2' "
    "crossorigin>"
    for font in ("inter", "source-serif")
)
LANGUAGE = "<script src='./assets/language.js' defer></script>"
SHELL = """
body { margin: 0; --covered: 64px; }
header.bar { position: sticky; top: 0; z-index: 30; display: flex; align-items: flex-start;
  gap: 8px; box-sizing: border-box; height: 64px; padding: 0 24px; background: var(--paper);
  border-bottom: 1px solid var(--line); }
header.bar > div { flex: 1; min-width: 0; }
header.bar > button { min-width: 40px; height: 40px; margin: 8px 0; padding: 8px;
  color: var(--ink); }
header.bar svg { display: block; fill: currentColor; }
.parts { display: flex; flex-direction: column; }
.steered > .parts { align-self: start; }
"""


def static_page(
    title: str,
    study: str,
    main: Viewable,
    made: Markup | None = None,
    script: str = TAKEOVER,
    present: bool = False,
) -> str:
    """Return HTML that shows `main` like a live page, including all styles.

    Args:
        title: Title of the browser's tab.
        study: Name of the study, marked among the links.
        main: Contents of the live page.
        made: Converter to use, if further frames will be captured (`frames.Frames`).
        script: Script element of the page.
        present: Whether type is larger, and links to other pages keep present mode.
    """
    made = made or Markup()
    top, body = made.of(header(study, present)), made.of(main)
    top = top.replace("</nav>", f"{ACCOUNT}</nav>")
    large = f":root {{ {LARGE} }}" if present else ""
    sheets = [colors(), large, SHELL, style("controls"), style("plots")]
    own = f"<style data-part='styles'>{made.styles()}</style>"
    return (
        f"<!DOCTYPE html><html lang='{spoken()}' class='{CLASSES}'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='language' content='{spoken()}'>"
        f"<meta name='description' content='{tr(DESCRIPTION)}'>"
        f"<link rel='icon' href='favicon.ico'>{FONTS}<style>{style('page')}</style></head>"
        f"<body>{BEGIN}<style>{''.join(sheets)}</style>{own}"
        f"<header class='bar'>{top}{SUN.format(tr('Toggle theme'))}</header>"
        f"<main>{body}</main>{END}{figures(present)}{LANGUAGE}{script}</body></html>"
    )


def figures(present: bool = False) -> str:
    """Return the script that draws the figures, with the address of BokehJS as on live pages.

    Args:
        present: Whether they are larger.
    """
    runtime = f"static/{StaticHandler.append_version('js/bokeh.min.js')}"
    tiles = "<script src='./assets/tiles.js' defer></script>"
    query = (f"&lang={spoken()}" if spoken() != ENGLISH else "") + "&present" * present
    own = f" data-query='{query}'" if query else ""
    return f"{tiles}<script src='./assets/figures.js' data-bokeh='{runtime}'{own} defer></script>"


def overlay(page: str) -> str:
    """Return a static page's body as a cover for the live page until that is drawn."""
    classes = page[: page.index(BEGIN)].split("<html lang='en' class='", 1)[1].split("'", 1)[0]
    body, _ = apart(page[page.index(BEGIN) : page.index(END)])
    return (
        f"<div id='still' class='{classes}' "
        "style='position:fixed;inset:0;overflow:auto;z-index:10000'>"
        f"<template shadowrootmode='open'>{body}</template></div>"
        "<script src='./assets/takeover.js'></script>"
    )


def colors(dark: str = ":root.dark, :host(.dark) {{ {} }}") -> str:
    """Return CSS variables for our colors, light and dark.

    Args:
        dark: Rule for the dark colors, which replace `{}`.
    """
    light, deep = (
        "".join(f"--{name}:{value};" for name, value in colors.items()) for colors in (LIGHT, DARK)
    )
    fonts = f"--sans:{SANS};--serif:{SERIF};"
    return (
        f":root, :host {{ {light}{fonts} background: var(--paper); color: var(--ink) }} "
        + dark.format(f"color-scheme: dark; {deep}")
    )
