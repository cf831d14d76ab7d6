"""One browser session of a page: the visitor, the content, and the frame around it.

`page(site, make)` turns `make(visit)` into the function that Panel calls for each browser session.
A visitor never sees a traceback: what goes wrong is logged and becomes a sentence.
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
from scant_dashboard.upstream import busy_indicator, script_registry

log = logging.getLogger(__name__)


@dataclass
class SessionContext:
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
        returning: Whether the visitor has used a page before.
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
    returning: bool = False
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


def page(site: Site, make: Callable[[SessionContext], PageContent]) -> Callable[[], pmui.Page]:
    """The function that Panel calls for each browser session of a page."""

    def build() -> pmui.Page:
        visit = _visit(site)
        try:
            content = make(visit)
        except StoreTrouble as error:
            content = error_page("The server cannot reach its database", str(error))
        except (BadInput, NotFound) as error:
            content = error_page("This cannot be shown", str(error))
        except Exception:
            log.exception("page could not be built")
            content = error_page(
                "This page failed",
                "It could not be built; the error is logged. "
                "try the link again, or go back to the gallery.",
            )
        return _frame(visit, content)

    return build


def _visit(site: Site) -> SessionContext:
    doc = pn.state.curdoc
    assert doc is not None, "pages are built for a session"
    request: Any = getattr(doc.session_context, "request", None)
    query = {k: v[-1].decode("utf-8", "replace") for k, v in pn.state.session_args.items()}
    # Not Panel's `state.user`, which believes cookies that a visitor may write.
    user = login_user(request) if site.logins else None
    owner = f"user:{user}" if user else verify(pn.state.cookies.get(COOKIE), site.key)
    return SessionContext(
        site,
        doc,
        owner or "",  # no cookie: who may do nothing, and whose page gets no websocket
        query,
        dark=(query.get("theme") or pn.state.cookies.get("scant_theme")) == "dark",
        present="present" in query and query["present"] not in ("0", "false"),
        base=_base(request),
        user=user or "",
        returning="scant_used" in pn.state.cookies,
        address=str(getattr(request, "remote_ip", None) or ""),
    )


def _base(request: Any) -> str:
    # Scheme and address are put right by `auth.proxy` where a trusted proxy knows better.
    host = getattr(request, "host", None)
    return f"{request.protocol}://{host}{prefix.of(request)}/" if host else "/"


def _frame(visit: SessionContext, content: PageContent) -> pmui.Page:
    banner = StoreBanner(visit.site, visit.doc, text("", visible=False))
    visit.doc.title = f"{content.title} · Scant" if content.title != "Scant" else "Scant"
    made = pmui.Page(
        title="",
        meta_title=visit.doc.title,
        meta_description="Gaussian processes for scarce data, trained live in the browser",
        favicon=assets() / "icon.svg",
        header=[header(content.study, visit.present, visit.user)],
        main=[banner.panel, *content.main],
        sidebar_variant="temporary",  # there is none, but a persistent one would keep its room
        busy_indicator=None,
        dark_theme=visit.dark,
        theme_config=theme(),
        template=template(),
        raw_css=[style("page"), variables(visit.present)],
        stylesheets=[style("print")],
        sx={
            "& .MuiToolbar-root": {"minHeight": "56px !important"},
            # On a phone the links scroll; they must not push the button of the theme off the page.
            "& .MuiToolbar-root > .MuiBox-root": {"minWidth": 0},
        },
    )
    busy_indicator.detach(made)
    made.param.watch(lambda event: visit.theme(event.new), "dark_theme")
    visit.doc.on_session_destroyed(lambda _: script_registry.release(made))
    visit.doc.js_on_event("connection_lost", reconnect())
    return made
