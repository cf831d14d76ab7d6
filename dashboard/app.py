"""The server: routes, options, start and stop. `serve` is what `scant serve` calls."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.server.server import Server
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler, StaticFileHandler

from dashboard import identity, login, origin, shell
from dashboard.controls.fetch import Fetches
from dashboard.live import Hub
from dashboard.mending import mend_panel
from dashboard.pages.gallery import gallery
from dashboard.pages.study_page import study_page
from dashboard.ready import Ready
from engine.catalog import STUDIES
from engine.errors import BadInput
from engine.private_files import private_folder
from engine.shipped import shipped

MESSAGE_LIMIT = 64 * 2**20  # bytes of one websocket message; uploads come in chunks of 10 MB
CLOSING = 8.0  # seconds at most that a closing server waits for checkpoints and workers

log = logging.getLogger(__name__)


@dataclass
class Site:
    """What the pages of one server share.

    Attributes:
        service: The `engine.runs.RunService`.
        data_dir: Where uploads, runs and the cookie secret lie.
        key: What signs cookies.
        hub: Fans the runs' events out to the pages.
        fetches: Downloads of data sets that visitors have asked for.
        fault: Why the run service did not come up; `""` while all is well.
    """

    service: Any
    data_dir: Path
    key: str
    hub: Hub = field(init=False)
    fetches: Fetches = field(init=False)
    fault: str = ""

    def __post_init__(self) -> None:
        self.hub = Hub(self.service)
        self.fetches = Fetches(self.data_dir)

    async def open(self) -> None:
        """Start the run service and the hub, on the running event loop."""
        self.hub.start()
        try:
            await self.service.start()
        except Exception as error:
            log.exception("the run service did not start")
            self.fault = f"Runs cannot start on this server: {error}"

    async def close(self) -> None:
        """Let running runs write their checkpoints, then let go of everything."""
        self.hub.close()
        try:
            await asyncio.wait_for(self.service.close(), CLOSING)
        except Exception:
            log.warning("the run service did not close in time", exc_info=True)

    def pages(self) -> dict[str, Callable[[], pmui.Page]]:
        """The page function of each address."""
        mend_panel()
        routes = {"/": shell.page(self, gallery)}
        for name in STUDIES:
            import_module(f"dashboard.pages.{name}")  # now, not while the first visitor waits
            routes[f"/{name}"] = shell.page(self, partial(study_page, name=name))
        return routes


class Health(RequestHandler):
    """Answers 200 once server and workers are up; costs no browser session."""

    def initialize(self, site: Site) -> None:
        self.site = site

    def get(self) -> None:
        up = not self.site.fault and self.site.service.healthy()
        self.set_status(200 if up else 503)
        self.set_header("Cache-Control", "no-store")
        self.write({"healthy": up})


class Template(RequestHandler):
    """The form of a study's table, as a file to fill in."""

    def get(self, study: str) -> None:
        found = shipped("templates", f"{study}.csv")
        if study not in STUDIES or not found.is_file():
            raise HTTPError(404)
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="{study}.csv"')
        self.finish(found.read_bytes())


class Missing(RequestHandler):
    """An address that leads nowhere."""

    def prepare(self) -> None:
        self.set_status(404)
        template = (shell.assets() / "missing.html").read_text(encoding="utf-8")
        self.finish(template)


def build(
    site: Site,
    port: int = 5006,
    address: str = "127.0.0.1",
    auth: Path | None = None,
    allow_origin: Sequence[str] = (),
) -> Server:
    """The server, listening but not started; its event loop is the current one.

    Raises:
        BadInput: The port is taken, or the password file cannot be read.
    """
    pn.extension("katex", "filedropper")
    pn.config.notifications = False
    port = port or _free(address)
    options: dict[str, Any] = {}
    if auth is not None:
        options = {
            "basic_auth": login.passwords(auth),
            "login_template": str(shell.assets() / "login.html"),
            "cookie_secret": site.key,
        }
    try:
        server = pn.serve(
            site.pages(),
            port=port,
            address=address,
            start=False,
            show=False,
            verbose=False,
            title="Scant",
            websocket_origin=origin.listed(port, address, allow_origin),
            websocket_max_message_size=MESSAGE_LIMIT,
            keep_alive_milliseconds=15_000,
            check_unused_sessions_milliseconds=2_000,  # what nobody looks at costs megabytes
            extra_patterns=[
                (r"/healthz", Health, {"site": site}),
                (r"/readyz", Ready, {"site": site}),
                (r"/templates/([a-z]+)\.csv", Template),
                (r"/assets/(.*)", StaticFileHandler, {"path": str(shell.assets())}),
            ],
            ico_path=str(shell.assets() / "icon.svg"),
            xheaders=True,  # behind a proxy: the scheme decides whether cookies are marked secure
            **options,
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadInput(
                f"Port {port} on {address} is in use; "
                "stop what listens there or give another --port."
            ) from error
        raise
    login.lead_on(server)
    if not origin.on_this_machine(address):
        origin.admit_own_pages(server)
    server._tornado.add_transform(identity.transform(site.key))
    server._tornado.settings["default_handler_class"] = Missing
    return server


def serve(
    port: int = 5006,
    address: str = "127.0.0.1",
    open_browser: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    data_dir: Path | None = None,
    auth: Path | None = None,
    allow_origin: Sequence[str] = (),
    limit_per_owner: int = 2,
) -> None:
    """Serve the dashboard until SIGINT or SIGTERM.

    Args:
        port: Where to listen; 0 takes a free one.
        address: "127.0.0.1" for this machine only, "0.0.0.0" for all.
        open_browser: Open the gallery in the user's browser once it is up.
        workers: Worker processes of the local cluster; None decides by GPUs and cores.
        scheduler: Address of an existing Dask scheduler to use instead.
        data_dir: Where runs and uploads are kept; None is the user's data directory.
        auth: JSON file of user names and passwords; asks every visitor to log in.
        allow_origin: Further hosts ("host" or "host:port") whose pages may talk to this server;
            also taken from SCANT_ALLOW_ORIGIN, separated by commas.
        limit_per_owner: Runs that one visitor may have at once.

    Raises:
        BadInput: The port is taken, or the password file cannot be read.
    """
    from engine.datasets import data_dir as default_data_dir
    from engine.runs import RunService
    from engine.store import Store

    if data_dir is not None:
        os.environ["SCANT_DATA_DIR"] = str(data_dir)
    folder = default_data_dir()
    private_folder(folder)  # here lies the key that signs cookies, wherever the database is
    service = RunService(
        Store.open(), workers=workers, scheduler=scheduler, limit_per_owner=limit_per_owner
    )
    site = Site(service, folder, identity.secret(folder))
    server = build(site, port, address, auth, allow_origin)
    run(site, server, open_browser)


def run(site: Site, server: Server, open_browser: bool = False) -> None:
    """Start a built server and block until it is told to stop."""
    loop = server.io_loop
    asyncio_loop = loop.asyncio_loop  # type: ignore[attr-defined]

    async def stop() -> None:
        server.stop()
        await site.close()
        loop.stop()

    def told(*_: Any) -> None:
        asyncio_loop.call_soon_threadsafe(lambda: asyncio_loop.create_task(stop()))

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, told)
    server.start()
    loop.add_callback(site.open)
    shown = "127.0.0.1" if server.address in (None, "", "0.0.0.0") else server.address
    print(f"Scant is at http://{shown}:{server.port}/ (Ctrl-C stops it)", flush=True)
    if open_browser:
        loop.add_callback(server.show, "/")
    try:
        loop.start()
    finally:
        IOLoop.clear_current()


def _free(address: str) -> int:
    """A port that nothing listens on; Bokeh must know it before it listens, to allow its origin."""
    with socket.socket() as found:
        found.bind((address, 0))
        port: int = found.getsockname()[1]
    return port
