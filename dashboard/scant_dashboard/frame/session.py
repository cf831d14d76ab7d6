"""One browser session of a page: the visitor, the content, and the frame around it.

`page(site, make)` turns `make(visit)` into the function that Panel calls for each browser session.
Visitors never see tracebacks: errors are logged, and a sentence is shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document

from scant.errors import BadInput, NotFound
from scant.store.trouble import StoreTrouble
from scant_dashboard.auth.sessions import login_user
from scant_dashboard.auth.visitor_cookie import COOKIE, verify
from scant_dashboard.engine_text import translated
from scant_dashboard.frame.error_page import error_page
from scant_dashboard.frame.site import Site
from scant_dashboard.frame.store_banner import StoreBanner
from scant_dashboard.server import prefix
from scant_dashboard.template import (
    PageContent,
    assets,
    header,
    reconnect,
    style,
    template,
    text,
    theme,
    variables,
)
from scant_dashboard.translate import COOKIE as LANGUAGE_COOKIE
from scant_dashboard.translate import ENGLISH, chosen, speak, tr
from scant_dashboard.upstream import busy_indicator, script_registry

log = logging.getLogger(__name__)


@dataclass
class SessionContext:
    """A browser session: the visitor and the address of the page.

    Attributes:
        site: The server's services.
        doc: The session's document.
        owner: The visitor's id; the user's name if the server requires a login.
        query: Query of the address, with the last value of each name.
        dark: Whether the dark theme is on.
        present: Whether present mode is on, which hides controls and enlarges type.
        base: Address of the gallery in the visitor's browser.
        address: The visitor's network address; "" if unknown.
        user: Name of the logged-in user; "" if the server requires no login.
        language: Language of the page, one of `translate.LANGUAGES`.
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
    language: str = ENGLISH
    _restyle: list[Callable[[bool], None]] = field(default_factory=list)

    def on_theme(self, restyle: Callable[[bool], None]) -> None:
        """Register `restyle(dark)` to be called when the visitor changes the theme."""
        self._restyle.append(restyle)
        if self.dark:
            restyle(True)

    def theme(self, dark: bool) -> None:
        """Change the theme."""
        self.dark = dark
        for restyle in self._restyle:
            restyle(dark)


def page(site: Site, make: Callable[[SessionContext], PageContent]) -> Callable[[], pmui.Page]:
    """Return the function that Panel calls for each browser session of a page."""

    def build() -> pmui.Page:
        visit = _context(site)
        try:
            content = make(visit)
        except StoreTrouble as error:
            content = error_page(tr("The server cannot reach its database"), translated(str(error)))
        except (BadInput, NotFound) as error:
            content = error_page(tr("This cannot be shown"), translated(str(error)))
        except Exception:
            log.exception("page could not be built")
            content = error_page(
                tr("This page failed"),
                tr(
                    "It could not be built; the error is logged. "
                    "Try the link again, or go back to the gallery."
                ),
            )
        return _frame(visit, content)

    return build


def _context(site: Site) -> SessionContext:
    doc = pn.state.curdoc
    assert doc is not None, "pages are built for a session"
    request: Any = getattr(doc.session_context, "request", None)
    query = {k: v[-1].decode("utf-8", "replace") for k, v in pn.state.session_args.items()}
    # Not Panel's `state.user`, which trusts cookies that a visitor may write.
    user = login_user(request) if site.logins else None
    owner = f"user:{user}" if user else verify(pn.state.cookies.get(COOKIE), site.key)
    language = chosen(query, pn.state.cookies.get(LANGUAGE_COOKIE, ""))
    speak(doc, language)
    return SessionContext(
        site,
        doc,
        owner or "",  # without a cookie nothing is permitted, and the page gets no websocket
        query,
        dark=(query.get("theme") or pn.state.cookies.get("scant_theme")) == "dark",
        present="present" in query and query["present"] not in ("0", "false"),
        base=_base(request),
        user=user or "",
        address=str(getattr(request, "remote_ip", None) or ""),
        language=language,
    )


def _base(request: Any) -> str:
    # `auth.proxy` corrects scheme and address if there is a trusted proxy.
    host = getattr(request, "host", None)
    return f"{request.protocol}://{host}{prefix.of(request)}/" if host else "/"


def _frame(visit: SessionContext, content: PageContent) -> pmui.Page:
    banner = StoreBanner(visit.site, visit.doc, text("", visible=False))
    visit.doc.title = f"{content.title} · Scant" if content.title != "Scant" else "Scant"
    made = pmui.Page(
        title="",
        meta_title=visit.doc.title,
        meta_description=tr("Gaussian processes for scarce data, trained live in the browser"),
        favicon=assets() / "icon.svg",
        header=[header(content.study, visit.present, visit.user)],
        main=[banner.panel, *content.main],
        sidebar_variant="temporary",  # a persistent one would take space although there is none
        busy_indicator=None,
        dark_theme=visit.dark,
        theme_config=theme(),
        template=template(visit.language),
        raw_css=[style("page"), variables(visit.present)],
        stylesheets=[style("print")],
        sx={
            "& .MuiToolbar-root": {"minHeight": "56px !important"},
            # On a phone the links scroll, so that the theme button stays visible.
            "& .MuiToolbar-root > .MuiBox-root": {"minWidth": 0},
        },
    )
    busy_indicator.detach(made)
    made.param.watch(lambda event: visit.theme(event.new), "dark_theme")
    visit.doc.on_session_destroyed(lambda _: script_registry.release(made))
    visit.doc.js_on_event("connection_lost", reconnect())
    return made
