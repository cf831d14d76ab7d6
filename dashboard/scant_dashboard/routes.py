"""Every address that the server answers. What is not in this list is not there.

Panel and Bokeh bring further ones (`/components`, which imports whatever module an address names;
`autoload.js`; `/metadata`), so their table is replaced rather than added to. A test holds the list
against a built server.
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
from scant_dashboard.static_page.start import Start
from scant_dashboard.template import assets
from scant_dashboard.upstream.server_parts import application

# The kinds of files that pages load.
KINDS = frozenset(
    [".js", ".mjs", ".css", ".woff", ".woff2", ".ttf", ".svg", ".png", ".ico"]
)  # what pages load
Rule = tuple[str, type[RequestHandler], dict[str, Any]]
OTHER_NAME = (
    "This server has another name",
    "It is for this machine only: open it as localhost, or start it with --allow-origin and the "
    "name in the address bar.",
)
LOGIN = ("/login", "/logout")  # with --auth only


class Health(RequestHandler):
    """Answers 200 once server and workers are up; costs no browser session."""

    def initialize(self, site: Site) -> None:
        """Take what to ask."""
        self.site = site

    def get(self) -> None:
        """Say it in JSON."""
        up = not self.site.fault and self.site.service.healthy()
        self.set_status(200 if up else 503)
        self.set_header("Cache-Control", "no-store")
        self.write({"healthy": up})


class Ready(RequestHandler):
    """Answers 200 while server, workers and database are up, else 503; costs no session."""

    def initialize(self, site: Site) -> None:
        """Take what to ask."""
        self.site = site

    def get(self) -> None:
        """Say it in JSON, for monitors and load balancers, with the reasons."""
        why = unready(self.site)
        self.set_status(503 if why else 200)
        self.set_header("Cache-Control", "no-store")
        self.write({"ready": not why, "reasons": why})


def unready(site: Site) -> list[str]:
    """Why the server is not ready, in sentences without paths or addresses; [] if it is."""
    reasons = []
    if site.fault:
        reasons.append("The run service did not start; the server's log says why.")
    elif not site.service.healthy():
        reasons.append("No worker is up.")
    if storing := site.service.storing():
        reasons.append(storing)
    return reasons


class Template(RequestHandler):
    """The form of a study's table, as a file to fill in."""

    def get(self, study: str) -> None:
        """Send it."""
        result = package_file("templates", f"{study}.csv")
        if study not in STUDIES or not result.is_file():
            raise HTTPError(404)
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="{study}.csv"')
        self.finish(result.read_bytes())


class Files(StaticFileHandler):
    """Files that pages load, out of one folder; never a folder's list, never of another kind.

    Packages ship tests and examples as pages of HTML beside their scripts: those are not ours.
    """

    @classmethod
    def get_absolute_path(cls, root: str, path: str) -> str:
        """Where a file lies; 404 alike for what is outside, missing, a folder, or of no kind."""
        try:
            place = Path(super().get_absolute_path(root, path))
        except HTTPError:
            raise HTTPError(404) from None
        if place.suffix not in KINDS or not place.is_file():
            raise HTTPError(404)
        return str(place)


class OtherName(routing.Matcher):
    """Matches requests for a name that is not this machine's.

    Args:
        hosts: Further names of the server.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self.hosts = hosts

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Nothing to tell the handler where it matches; None where it does not."""
        return None if names_this_machine(request.host, self.hosts) else {}


class OtherSite(Answer):
    """Whatever is asked of a site that is not this one."""

    def prepare(self) -> None:
        """Refuse it."""
        self.set_status(403)
        self.finish(plain_page(*OTHER_NAME))


class ToGallery(Answer):
    """`/scant` leads to `/scant/`: from there the gallery finds its files."""

    def get(self) -> None:
        """Lead there, with the query."""
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"/{query}", permanent=True)


class WithoutSlash(Answer):
    """`/redshift/` leads to `/redshift`: from there a page finds its files."""

    def get(self, path: str) -> None:
        """Lead there, with the query."""
        query = f"?{self.request.query}" if self.request.query else ""
        self.redirect(f"/{path}{query}", permanent=True)


class Renamed(Answer):
    """A page's former address leads to the page, with the query."""

    def initialize(self, study: str) -> None:
        """Of the study that the page shows."""
        self.study = study

    def get(self) -> None:
        """Lead there; a demonstration is named as its study."""
        arguments = [
            (name, current_run(word) if name == "run" else word)
            for name, word in parse_qsl(self.request.query, keep_blank_values=True)
        ]
        query = f"?{urlencode(arguments)}" if arguments else ""
        self.redirect(f"/{self.study}{query}", permanent=True)


def put_up(
    server: Server,
    site: Site,
    policy: Policy,
    hosts: Collection[str] | None,
    followers: Followers | None,
) -> None:
    """Give a built server these addresses and no others.

    Args:
        server: As `pn.serve` made it, with the login's handlers in place.
        site: What the pages share.
        policy: What pages may load.
        hosts: Where only this machine reaches the server, its further names ("host" or
            "host:port"); None where it answers under any.
        followers: The pages of followed runs; None where there are only live ones.
    """
    app: Any = application(server)
    present = {rule.matcher.regex.pattern.rstrip("$"): rule for rule in app.wildcard_router.rules}
    rules: list[Rule] = [
        *_pages(app.applications, site, policy),
        *_files(),
        (GALLERY, ToGallery, {}),
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
    """The addresses that a server answers, as regular expressions."""
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
        "/static/js": Path(settings.bokehjs_path()) / "js",
        "/static/extensions/panel": Path(panel.__file__).parent / "dist",
        "/static/extensions/panel-material-ui": Path(panel_material_ui.__file__).parent / "dist",
        "/assets": assets(),
    }
    return [(f"{at}/(.*)", Files, {"path": str(folder)}) for at, folder in folders.items()]
