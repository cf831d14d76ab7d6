"""The frame around every page: header, navigation, theme, present mode, lost connections.

`page(site, make)` turns `make(visit)` into the function that Panel calls for each browser session.
A visitor never sees a traceback: what goes wrong is logged and becomes a sentence.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document
from bokeh.models import CustomJS
from jinja2 import Template
from panel.links import Callback
from panel.viewable import Viewable
from panel_material_ui.base import BASE_TEMPLATE, _env

from dashboard.auth.login_sessions import login_user
from dashboard.auth.visitor_cookie import COOKIE, verify
from dashboard.controls.store_banner import StoreBanner
from engine.catalog import STUDIES, entry
from engine.errors import BadInput, NotFound
from engine.store.trouble import StoreTrouble

if TYPE_CHECKING:
    from dashboard.app import Site

log = logging.getLogger(__name__)

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
class Visit:
    """One browser session: who came, with which address.

    Attributes:
        site: The server's run service, hub and options.
        doc: The session's document.
        owner: The visitor's id (a user name where the server asks for one).
        query: The address' query, the last value of each name.
        dark: Whether the visitor sees the dark theme now.
        present: Whether controls are hidden and type is large.
        base: The address of the gallery as the visitor's browser knows it.
        address: The network address that the visitor comes from; "" where it is not known.
        user: The name under which the visitor is logged in; "" where nobody logs in.
    """

    site: Site
    doc: Document
    owner: str
    query: dict[str, str]
    dark: bool = False
    present: bool = False
    base: str = "/"
    address: str = ""
    user: str = ""
    _restyle: list[Callable[[bool], None]] = field(default_factory=list)

    def on_theme(self, restyle: Callable[[bool], None]) -> None:
        """Have `restyle(dark)` called whenever the visitor changes the theme."""
        self._restyle.append(restyle)
        if self.dark:
            restyle(True)

    def theme(self, dark: bool) -> None:
        """The visitor has changed the theme."""
        self.dark = dark
        for restyle in self._restyle:
            restyle(dark)


@dataclass
class Content:
    """A page without its frame: the title of its tab, its objects, the study it belongs to."""

    title: str
    main: list[Viewable]
    study: str = ""


def page(site: Site, make: Callable[[Visit], Content]) -> Callable[[], pmui.Page]:
    """The function that Panel calls for each browser session of a page."""

    def build() -> pmui.Page:
        visit = _visit(site)
        try:
            content = make(visit)
        except StoreTrouble as error:
            content = sorry("The server cannot reach its database", str(error))
        except (BadInput, NotFound) as error:
            content = sorry("This cannot be shown", str(error))
        except Exception:
            log.exception("page could not be built")
            content = sorry(
                "This page has a fault",
                "It could not be built, and the server has noted why; "
                "try the link again, or go back to the gallery.",
            )
        return _frame(visit, content)

    return build


def sorry(title: str, sentence: str) -> Content:
    """A page that says what went wrong, with a way back."""
    return Content(
        title,
        [
            text(
                f"<h1>{html.escape(title)}</h1><p class='lede' role='alert'>{html.escape(sentence)}"
                "</p><p><a href='./'>Back to the gallery</a></p>"
            )
        ],
    )


def text(markup: str, **params: Any) -> pn.pane.HTML:
    """Markup of our own in the page's typography; whatever came from outside must be escaped."""
    params.setdefault("sizing_mode", "stretch_width")
    params.setdefault("margin", 0)
    return pn.pane.HTML(markup, stylesheets=[style("text")], **params)


@cache
def style(name: str) -> str:
    """A style sheet of ours, for the shadow roots into which a page's own styles do not reach."""
    return (assets() / f"{name}.css").read_text(encoding="utf-8")


@cache
def assets() -> Path:
    """The folder of styles, fonts and icons: in the installed package, else the checkout's."""
    here = Path(__file__).parent
    for folder in (here / "assets", here.parent / "assets"):
        if (folder / "page.css").is_file():
            return folder
    raise FileNotFoundError("The folder 'assets' is missing from this installation of Scant.")


def _visit(site: Site) -> Visit:
    doc = pn.state.curdoc
    assert doc is not None, "pages are built for a session"
    request: Any = getattr(doc.session_context, "request", None)
    query = {k: v[-1].decode("utf-8", "replace") for k, v in pn.state.session_args.items()}
    # Not Panel's `state.user`, which believes cookies that a visitor may write.
    user = login_user(request) if site.logins else None
    owner = f"user:{user}" if user else verify(pn.state.cookies.get(COOKIE), site.key)
    return Visit(
        site,
        doc,
        owner or "",  # no cookie: who may do nothing, and whose page gets no websocket
        query,
        dark=(query.get("theme") or pn.state.cookies.get("scant_theme")) == "dark",
        present="present" in query and query["present"] not in ("0", "false"),
        base=_base(request),
        user=user or "",
        address=str(getattr(request, "remote_ip", None) or ""),
    )


def _base(request: Any) -> str:
    # Scheme and address are put right by dashboard.auth.proxy where a trusted proxy knows better.
    host = getattr(request, "host", None)
    return f"{request.protocol}://{host}/" if host else "/"


def _frame(visit: Visit, content: Content) -> pmui.Page:
    banner = StoreBanner(visit.site, visit.doc, text("", visible=False))
    made = pmui.Page(
        title="",
        meta_title=f"{content.title} · Scant" if content.title != "Scant" else "Scant",
        meta_description="Gaussian processes for scarce data, trained live in the browser",
        favicon=assets() / "icon.svg",
        header=[_header(visit, content)],
        main=[banner.panel, *content.main],
        sidebar_variant="temporary",  # there is none, but a persistent one would keep its room
        busy_indicator=None,
        dark_theme=visit.dark,
        theme_config=_theme(),
        template=_template(),
        raw_css=[style("page"), _variables(visit.present)],
        sx={
            "& .MuiToolbar-root": {"minHeight": "56px !important"},
            # On a phone the links scroll; they must not push the button of the theme off the page.
            "& .MuiToolbar-root > .MuiBox-root": {"minWidth": 0},
        },
    )
    _leave(made)
    made.param.watch(lambda event: visit.theme(event.new), "dark_theme")
    visit.doc.on_session_destroyed(lambda _: release(made))
    visit.doc.js_on_event("connection_lost", _reconnect())
    return made


def _leave(made: pmui.Page) -> None:
    """Take the page off Panel's global state, for its busy indicator, which we do not use.

    Else whatever anybody does on any page changes every page twice, at a walk through all its
    models each (80 ms), and no document ever goes. Private API of Param, pinned in pyproject.toml.
    """
    for _, watcher in made._param__private.ref_watchers:
        (watcher.inst or watcher.cls).param.unwatch(watcher)
    made._param__private.ref_watchers = []


def release(made: pmui.Page) -> None:
    """Take the page's parts out of Panel's global register of scripts in the browser.

    Their arguments hold their source; a test counts the live documents.
    """
    registry: Any = Callback.registry
    for part in made.select():
        registry.pop(part, None)


def _header(visit: Visit, content: Content) -> pn.pane.HTML:
    keep = "?present" if visit.present else ""
    here = entry(content.study).tab_of or content.study if content.study else ""
    links = "".join(
        f"<a href='./{study.name}{keep}'{_here(study.name == here)}>{html.escape(study.title)}</a>"
        for study in map(entry, STUDIES)
        if not study.tab_of
    )
    return text(
        f"<nav class='top' aria-label='Pages'><a class='mark' href='./{keep}'>Scant</a>"
        f"<span class='pages'>{links}</span>{_log_out(visit.user)}</nav>"
    )


def _log_out(user: str) -> str:
    """Who is logged in, with the button that ends it; nothing where nobody logs in."""
    if not user:
        return ""
    return (
        f"<form class='account' method='post' action='./logout'><span>{html.escape(user)}</span>"
        "<button type='submit'>Log out</button></form>"
    )


def _here(current: bool) -> str:
    return " aria-current='page'" if current else ""


def _reconnect() -> CustomJS:
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


def _variables(present: bool) -> str:
    """Our names for the theme's colours, which change with it; and larger type for the back row."""
    colours = {
        "paper": "background-paper",
        "raised": "background-default",
        "ink": "text-primary",
        "quiet": "text-secondary",
        "line": "divider",
        "accent": "primary-main",
    }
    names = "".join(f"--{ours}: var(--mui-palette-{name});" for ours, name in colours.items())
    size = f"font-size: 21px; {_plot_type(20, 18)}" if present else ""
    return f":root {{ {names} --sans: {SANS}; --serif: {SERIF}; {size} }}"


def _plot_type(label: int, tick: int) -> str:
    """The type of figures in pixels, which Bokeh reads from the page before all themes."""
    sizes = {"axis-label": label, "major-label": tick, "title": label, "label": tick}
    return "".join(f"--bk-{part}-text-font-size: {size}px;" for part, size in sizes.items())


@cache
def _template() -> Template:
    return _env.from_string(
        "{% extends base %}"
        "{% block preamble %}{{ super() }}<script src='./assets/files.js'></script>{% endblock %}"
        "{% block postamble %}{{ super() }}"
        "<script src='./assets/layout.js'></script><script src='./assets/page.js'></script>"
        "<script src='./assets/present.js'></script>"
        "{% endblock %}",
        globals={"base": BASE_TEMPLATE},
    )


@cache
def _theme() -> dict[str, Any]:
    def palette(colours: dict[str, str]) -> dict[str, Any]:
        return {
            "primary": {"main": colours["accent"], "contrastText": colours["on_accent"]},
            "background": {"default": colours["raised"], "paper": colours["paper"]},
            "text": {"primary": colours["ink"], "secondary": colours["quiet"]},
            "divider": colours["line"],
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
