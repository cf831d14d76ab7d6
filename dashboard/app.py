"""The server: routes, options, start and stop. `serve` is what `scant serve` calls."""

from __future__ import annotations

import asyncio
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

from dashboard import headers, routes, shell
from dashboard.auth import page_session, proxy, same_origin, visitor_cookie
from dashboard.auth.login import LoginProvider, show_log
from dashboard.auth.login_sessions import LoginSessions
from dashboard.controls.fetch import Fetches
from dashboard.limits.connections import (
    BODY_SECONDS,
    IDLE_SECONDS,
    Connections,
    bound_connections,
    raise_descriptor_limit,
)
from dashboard.limits.messages import MESSAGE_LIMIT
from dashboard.limits.page_handler import PageLimits, bound_pages
from dashboard.limits.sessions import PER_ADDRESS, LiveSessions
from dashboard.limits.uploads import UploadBudget
from dashboard.listening import check_address, keeping, listening
from dashboard.live import Hub
from dashboard.mending import mend_panel
from dashboard.pages.gallery import gallery
from dashboard.pages.study_page import study_page
from dashboard.upstream import (
    bounded_messages,
    busy_cleanup,
    closed_sockets,
    one_log_line,
    page_address,
)
from engine.accounts import Accounts
from engine.catalog import STUDIES
from engine.errors import BadInput
from engine.private_files import private_folder

FORM_LIMIT = 64 * 2**10  # bytes of a request's body; the login's form is the only one
JOINING = 60_000  # ms until a page must have loaded its scripts and opened its websocket
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
        limits: Page requests in their turns, and the sessions that live.
        uploads: What uploads may take of the server's memory.
        fault: Why the run service did not come up; `""` while all is well.
        logins: Who is logged in; None where the server does not ask for a login.
    """

    service: Any
    data_dir: Path
    key: str
    hub: Hub = field(init=False)
    fetches: Fetches = field(init=False)
    limits: PageLimits = field(default_factory=PageLimits)
    uploads: UploadBudget = field(default_factory=UploadBudget)
    fault: str = ""
    logins: LoginSessions | None = None

    def __post_init__(self) -> None:
        self.hub = Hub(self.service)
        self.fetches = Fetches(self.data_dir)

    async def open(self) -> None:
        """Start the run service and the hub, on the running event loop.

        Raises:
            BadInput: Nothing answers at the scheduler's address, or its workers cannot be used.
        """
        self.hub.start()
        try:
            await self.service.start()
        except BadInput:
            raise  # whoever gave the address is there to hear it
        except Exception as error:
            log.exception("the run service did not start")
            self.fault = f"Runs cannot start on this server: {error}"

    async def close(self) -> None:
        """Let running runs write their checkpoints, then let go of everything."""
        self.hub.close()
        if self.logins is not None:
            self.logins.close()
        try:
            await asyncio.wait_for(self.service.close(), CLOSING)
        except Exception:
            log.warning("the run service did not close in time", exc_info=True)

    def pages(self) -> dict[str, Callable[[], pmui.Page]]:
        """The page function of each address."""
        mend_panel()
        bounded_messages.install()
        busy_cleanup.install()
        closed_sockets.install()
        one_log_line.install()
        page_address.install()
        routes = {"/": shell.page(self, gallery)}
        for name in STUDIES:
            import_module(f"dashboard.pages.{name}")  # now, not while the first visitor waits
            routes[f"/{name}"] = shell.page(self, partial(study_page, name=name))
        return routes


def build(
    site: Site,
    port: int = 5006,
    address: str = "127.0.0.1",
    auth: Path | None = None,
    allow_origin: Sequence[str] = (),
    trusted_proxy: Sequence[str] = (),
    frame_ancestors: Sequence[str] = (),
) -> Server:
    """The server, listening but not started; its event loop is the current one.

    Raises:
        BadInput: The port is taken, the user file cannot be used, or a proxy or a site that may
            frame our pages is not named as one.
    """
    proxies, policy = proxy.Proxies(trusted_proxy), headers.Policy(frame_ancestors)
    pn.extension("katex", "filedropper")
    pn.config.notifications = False
    with listening(port, address):
        port = port or _free(address)
    options: dict[str, Any] = {}
    if auth is not None:
        site.logins = LoginSessions(site.service.store, Accounts(auth), site.key)
        options["auth_provider"] = LoginProvider(site.logins)
    with listening(port, address):
        server = pn.serve(
            site.pages(),
            port=port,
            address=address,
            start=False,
            show=False,
            verbose=False,
            title="Scant",
            websocket_origin=same_origin.listed(port, address, allow_origin),
            websocket_max_message_size=MESSAGE_LIMIT,
            http_server_kwargs={
                "max_body_size": FORM_LIMIT,
                "idle_connection_timeout": IDLE_SECONDS,
                "body_timeout": BODY_SECONDS,
            },
            keep_alive_milliseconds=15_000,
            check_unused_sessions_milliseconds=2_000,  # what nobody looks at costs megabytes
            unused_session_lifetime_milliseconds=JOINING,  # a page that was left goes at once
            secret_key=page_session.signing_key(site.key),
            sign_sessions=True,
            ico_path=str(shell.assets() / "icon.svg"),
            **options,
        )
    routes.put_up(server, site, policy, own_pages=not same_origin.on_this_machine(address))
    bound_pages(server, site.limits, site.key)
    bound_connections(server, Connections(proxies))
    # In this order: cookies and headers go by the scheme of which a proxy knows.
    server._tornado.add_transform(proxy.transform(proxies))
    server._tornado.add_transform(visitor_cookie.transform(site.key))
    server._tornado.add_transform(headers.transform(policy))
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
    trusted_proxy: Sequence[str] = (),
    frame_ancestors: Sequence[str] = (),
    sessions_per_address: int = PER_ADDRESS,
    disk_reserve: float | None = None,
    limit_per_address: int = 8,
    hours_per_run: float = 2.0,
) -> None:
    """Serve the dashboard until SIGINT or SIGTERM.

    Args:
        port: Where to listen; 0 takes a free one.
        address: "127.0.0.1" for this machine only, "0.0.0.0" for all.
        open_browser: Open the gallery in the user's browser once it is up.
        workers: Worker processes of the local cluster; None decides by GPUs and cores.
        scheduler: Address of an existing Dask scheduler to use instead.
        data_dir: Where runs and uploads are kept; None is the user's data directory.
        auth: File of `scant user`; every visitor must log in as one of its users.
        allow_origin: Further hosts ("host" or "host:port") whose pages may talk to this server;
            also taken from SCANT_ALLOW_ORIGIN, separated by commas.
        limit_per_owner: Runs that one visitor may have at once.
        trusted_proxy: Addresses or networks of proxies whose X-Forwarded-For and
            X-Forwarded-Proto count, "*" for any; also taken from SCANT_TRUSTED_PROXY. If none is
            given, those on this machine.
        frame_ancestors: Sites that may show the pages in a frame; also taken from
            SCANT_FRAME_ANCESTORS.
        sessions_per_address: Pages that one network address may have open at once.
        disk_reserve: GB of the disk that stay free; None: SCANT_DISK_RESERVE, else 1.
        limit_per_address: Runs that one network address may have at once.
        hours_per_run: Hours that a run may take; 0 for no limit.

    Raises:
        BadInput: The port is taken, the user file cannot be used, a proxy or a site that may frame
            our pages is not named as one, or no Dask scheduler answers.
    """
    from engine.datasets import data_dir as default_data_dir
    from engine.runs import RunService
    from engine.store import Store
    from engine.store.quota import disk_reserve as check_reserve

    if data_dir is not None:
        os.environ["SCANT_DATA_DIR"] = str(data_dir)
    if disk_reserve is not None:
        os.environ["SCANT_DISK_RESERVE"] = str(disk_reserve)
    check_reserve()
    folder = default_data_dir()
    check_address(port, address)
    raise_descriptor_limit()
    with keeping(folder):
        private_folder(folder)  # here lies the key that signs cookies, wherever the database is
        key = visitor_cookie.secret(folder)
    service = RunService(
        Store.open(),
        workers=workers,
        scheduler=scheduler,
        limit_per_owner=limit_per_owner,
        limit_per_address=limit_per_address,
        hours_per_run=hours_per_run,
        key=key,
    )
    limits = PageLimits(sessions=LiveSessions(per_address=sessions_per_address))
    site = Site(service, folder, key, limits=limits)
    if auth is not None:
        show_log()
    server = build(site, port, address, auth, allow_origin, trusted_proxy, frame_ancestors)
    run(site, server, open_browser)


def run(site: Site, server: Server, open_browser: bool = False) -> None:
    """Start a built server and block until it is told to stop. Raises as `Site.open` does."""
    loop = server.io_loop
    refused: list[BadInput] = []
    asyncio_loop = loop.asyncio_loop  # type: ignore[attr-defined]

    async def stop() -> None:
        server.stop()
        await site.close()
        loop.stop()

    async def open_site() -> None:
        try:
            await site.open()
        except BadInput as error:
            refused.append(error)
            await stop()

    def told(*_: Any) -> None:
        asyncio_loop.call_soon_threadsafe(lambda: asyncio_loop.create_task(stop()))

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, told)
    server.start()
    loop.add_callback(open_site)
    shown = "127.0.0.1" if server.address in (None, "", "0.0.0.0") else server.address
    shown = f"[{shown}]" if ":" in shown else shown
    print(f"Scant is at http://{shown}:{server.port}/ (Ctrl-C stops it)", flush=True)
    if open_browser:
        loop.add_callback(server.show, "/")
    try:
        loop.start()
    finally:
        IOLoop.clear_current()
    if refused:
        raise refused[0]


def _free(address: str) -> int:
    """A port that nothing listens on; Bokeh must know it before it listens, to allow its origin."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as found:
        found.bind((address, 0))
        port: int = found.getsockname()[1]
    return port
