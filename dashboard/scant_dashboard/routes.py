"""All addresses of the server.

Panel and Bokeh add others (`/components`, which imports any module named in the address;
`autoload.js`; `/metadata`), so their routes are replaced. A test compares the list with a built
server.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import panel
import panel_material_ui
from bokeh.server.server import Server
from bokeh.server.views.ico_handler import IcoHandler
from bokeh.settings import settings
from tornado import routing
from tornado.httputil import HTTPServerRequest
from tornado.web import HTTPError, RequestHandler, StaticFileHandler, URLSpec

from scant.package_data import package_file
from scant.studies import STUDIES
from scant.studies.aliases import STUDIES as FORMER
from scant.studies.aliases import current_run
from scant_dashboard.auth.same_origin import names_this_machine
from scant_dashboard.followers.followers import Followers
from scant_dashboard.followers.handler import Stream
from scant_dashboard.frame.site import Site
from scant_dashboard.room.handlers import room_rules
from scant_dashboard.server.answers import Answer, Missing, answering, plain_page
from scant_dashboard.server.headers import Policy
from scant_dashboard.server.page_session import PageHandler, PageSocket
from scant_dashboard.server.prefix import GALLERY
from scant_dashboard.static_page.first_gp import FirstGP
from scant_dashboard.static_page.publications import Publications
from scant_dashboard.static_page.start import Start
from scant_dashboard.template import assets
from scant_dashboard.upstream.server_parts import application

# Suffixes of the files that pages load.
KINDS = frozenset([".js", ".mjs", ".css", ".woff", ".woff2", ".ttf", ".svg", ".png", ".ico"])
Rule = tuple[str, type[RequestHandler], dict[str, Any]]
OTHER_NAME = (
    "This server has another name",
    "It is for this machine only: open it as localhost, or start it with --allow-origin and the "
    "name in the address bar.",
)
LOGIN = ("/login", "/logout")  # with --auth only


class Health(RequestHandler):
    """Liveness check: 200 if server and workers are up; takes no browser session."""

    def initialize(self, site: Site) -> None:
        """Store the site."""
        self.site = site

    def get(self) -> None:
        """Send the result as JSON."""
        up = not self.site.fault and self.site.service.healthy()
        self.set_status(200 if up else 503)
        self.set_header("Cache-Control", "no-store")
        self.write({"healthy": up})


class Ready(RequestHandler):
    """Readiness check: 200 if server, workers and database are up, otherwise 503."""

    def initialize(self, site: Site) -> None:
        """Store the site."""
        self.site = site

    def get(self) -> None:
        """Send the result as JSON, with reasons, for monitors and load balancers."""
        why = unready(self.site)
        self.set_status(503 if why else 200)
        self.set_header("Cache-Control", "no-store")
        self.write({"ready": not why, "reasons": why})


def unready(site: Site) -> list[str]:
    """Return reasons why the server is not ready, without paths or addresses; [] if it is."""
    reasons = []
    if site.fault:
        reasons.append("The run service did not start; the server's log says why.")
    elif not site.service.healthy():
        reasons.append("No worker is up.")
    if storing := site.service.storing():
        reasons.append(storing)
    return reasons


class Template(RequestHandler):
    """A study's table template, as a CSV file."""

    def get(self, study: str) -> None:
        """Send the file."""
        result = package_file("templates", f"{study}.csv")
        if study not in STUDIES or not result.is_file():
            raise HTTPError(404)
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="{study}.csv"')
        self.finish(result.read_bytes())


class Files(StaticFileHandler):
    """Static files of one folder, of the permitted kinds only; no directory listings.

    Packages ship tests and examples as HTML pages next to their scripts, which must not be served.
    """

    @classmethod
    def get_absolute_path(cls, root: str, path: str) -> str:
        """Return a file's path; 404 if it is outside, missing, a folder or of another kind."""
        try:
            file = Path(super().get_absolute_path(root, path))
        except HTTPError:
            raise HTTPError(404) from None
        if file.suffix not in KINDS or not file.is_file():
            raise HTTPError(404)
        return str(file)


class OtherName(routing.Matcher):
    """Matches requests whose host name is not this machine's.

    Args:
        hosts: Further names of the server.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self.hosts = hosts

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return empty handler arguments on a match, otherwise None."""
        return None if names_this_machine(request.host, self.hosts) else {}


class OtherSite(Answer):
    """Refuses requests for another host name."""

    def prepare(self) -> None:
        """Send an error page."""
        self.set_status(403)
        self.finish(plain_page(*OTHER_NAME))


class ToGallery(Answer):
    """Redirects `/scant` to `/scant/`, relative to which the gallery's links work."""

    def get(self) -> None:
        """Redirect, keeping the query."""
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"/{query}", permanent=True)


class WithoutSlash(Answer):
    """Redirects `/redshift/` to `/redshift`, relative to which the page's links work."""

    def get(self, path: str) -> None:
        """Redirect, keeping the query."""
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"/{path}{query}", permanent=True)


class Renamed(Answer):
    """Redirects a page's former address, keeping the query."""

    def initialize(self, study: str) -> None:
        """Store the name of the page's study."""
        self.study = study

    def get(self) -> None:
        """Redirect, with the current id of a demonstration."""
        arguments = [
            (name, current_run(value) if name == "run" else value)
            for name, value in parse_qsl(self.request.query, keep_blank_values=True)
        ]
        query = f"?{urlencode(arguments)}" if arguments else ""
        self.redirect(f"/{self.study}{query}", permanent=True)


def install_routes(
    server: Server,
    site: Site,
    policy: Policy,
    hosts: Collection[str] | None,
    followers: Followers | None,
) -> None:
    """Replace the routes of a built server.

    Args:
        server: Result of `pn.serve`, including the login handlers.
        site: Services shared by the pages.
        policy: Content security policy of the pages.
        hosts: Further names of the server ("host" or "host:port") if only this machine can reach
            it; None to answer under any name.
        followers: Pages of followed runs; None to serve live ones only.
    """
    app: Any = application(server)
    present = {rule.matcher.regex.pattern.rstrip("$"): rule for rule in app.wildcard_router.rules}
    rules: list[Rule] = [
        *_pages(app.applications, site, policy),
        *_files(),
        (GALLERY, ToGallery, {}),
        ("/gp", FirstGP, {"policy": policy}),
        ("/publications", Publications, {"policy": policy}),
        ("/healthz", Health, {"site": site}),
        ("/readyz", Ready, {"site": site}),
        ("/follow", Stream, {"site": site, "followers": followers}),
        ("/favicon.ico", IcoHandler, {"app": app}),
        (r"/templates/([a-z]+)\.csv", Template, {}),
        *room_rules(site.rooms, policy),
        *(
            (f"/{old}{end}", Renamed, {"study": new})
            for old, new in FORMER.items()
            for end in ("", "/")
        ),
    ]
    rules += [(at, present[at].target, present[at].target_kwargs) for at in LOGIN if at in present]
    app.wildcard_router.rules[:] = []
    app.wildcard_router.add_rules(
        [URLSpec(at, answering(handler), given) for at, handler, given in rules]
    )
    app.settings["default_handler_class"] = Missing
    if hosts is not None:
        first = routing.Rule(OtherName(hosts), OtherSite)
        app.default_router.rules.insert(0, app.default_router.process_rule(first))


def listed(server: Server) -> list[str]:
    """Return the addresses of a server as regular expressions."""
    app: Any = application(server)
    return [rule.matcher.regex.pattern.rstrip("$") for rule in app.wildcard_router.rules]


def _pages(
    contexts: dict[str, Any],
    site: Site,
    policy: Policy,
) -> list[Rule]:
    rules: list[Rule] = []
    for page, context in contexts.items():
        socket = f"{page.rstrip('/')}/ws"
        bokeh = {"application_context": context, "bokeh_websocket_path": socket, "key": site.key}
        rules.append((page, PageHandler, {**bokeh, "policy": policy}))
        rules.append((socket, PageSocket, bokeh))
        if page != "/":
            rules.append((f"/({page[1:]})/", WithoutSlash, {}))
            rules.append((f"/({page[1:]})/start", Start, {"site": site}))
    return rules


def _files() -> list[Rule]:
    folders: dict[str, Path] = {
        # Panel's copy of KaTeX comes without the fonts that its style sheet names.
        "/static/extensions/panel/bundled/katex/[^/]+/dist/fonts": assets() / "fonts" / "katex",
        "/static/js": Path(settings.bokehjs_path()) / "js",
        "/static/extensions/panel": Path(panel.__file__).parent / "dist",
        "/static/extensions/panel-material-ui": Path(panel_material_ui.__file__).parent / "dist",
        "/assets": assets(),
    }
    return [(f"{at}/(.*)", Files, {"path": str(folder)}) for at, folder in folders.items()]
