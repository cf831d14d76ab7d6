"""A study's page as one file of HTML: the recorded run, in the frame of all pages."""

from __future__ import annotations

from html import escape

from panel.viewable import Viewable
from scant.dashboard.frame.template import DARK, LIGHT, SANS, SERIF, header, style
from scant.dashboard.static_page.markup import Markup

DARK_MARK = "{{theme}}"  # stands where the theme's class comes
ACCOUNT = "<!--account-->"  # stands where who is logged in may log out
BEGIN, END = "<!--still-->", "<!--/still-->"
SHELL = """
body { margin: 0; }
header.bar { position: sticky; top: 0; z-index: 30; box-sizing: border-box; height: 61px;
  padding: 1px 24px 0; overflow: hidden; background: var(--paper);
  border-bottom: 1px solid var(--line); }
.parts { display: flex; flex-direction: column; }
.text > div > :first-child { margin-top: 0; }
"""


def static_page(title: str, study: str, main: Viewable, made: Markup | None = None) -> str:
    """HTML that shows `main` as a live page does, with all of its styles in it.

    Args:
        title: Of the browser's tab.
        study: Whose page it is; it is marked among the links.
        main: What the live page holds.
        made: Writes the parts; for who will look again (`frames.Frames`).
    """
    made = made or Markup()
    top, body = made.of(header(study)), made.of(main)
    top = top.replace("</nav>", f"{ACCOUNT}</nav>")
    sheets = [colors(), SHELL, style("controls"), style("static_figures")]
    own = f"<style data-part='styles'>{made.styles()}</style>"
    return (
        f"<!DOCTYPE html><html lang='en' class='{DARK_MARK}'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='description' content='Gaussian processes for scarce data, trained live in the "
        f"browser'><link rel='icon' href='favicon.ico'><style>{style('page')}</style></head>"
        f"<body>{BEGIN}<style>{''.join(sheets)}</style>{own}<header class='bar'>{top}</header>"
        f"<main>{body}</main>{END}<script src='./assets/takeover.js' defer></script></body></html>"
    )


def overlay(page: str) -> str:
    """A static page's body, to lie over the live page until that is drawn."""
    dark = "dark" if f"class='{DARK_MARK}'" not in page and "class='dark'" in page else ""
    body = page[page.index(BEGIN) : page.index(END)]
    return (
        f"<div id='still' class='{dark}' "
        "style='position:fixed;inset:0;overflow:auto;z-index:10000'>"
        f"<template shadowrootmode='open'>{body}</template></div>"
        "<script src='./assets/takeover.js'></script>"
    )


def colors(dark: str = ":root.dark, :host(.dark) {{ {} }}") -> str:
    """The names of our colors, light and dark.

    Args:
        dark: Where the dark ones hold: a rule, in which they take the place of `{}`.
    """
    light, deep = (
        "".join(f"--{name}:{value};" for name, value in colors.items()) for colors in (LIGHT, DARK)
    )
    fonts = f"--sans:{SANS};--serif:{SERIF};"
    return (
        f":root, :host {{ {light}{fonts} background: var(--paper); color: var(--ink) }} "
        + dark.format(f"color-scheme: dark; {deep}")
    )
