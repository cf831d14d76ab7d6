"""The server: routes, options, start and stop. `scant_dashboard.launch` imports and starts it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.server.server import Server
from tornado.ioloop import IOLoop

from scant.errors import BadInput
from scant.runs import RunService
from scant.studies import STUDIES
from scant_dashboard import routes
from scant_dashboard.auth import proxy, same_origin, visitor_cookie
from scant_dashboard.auth.accounts import Accounts
from scant_dashboard.auth.login import LoginProvider, show_log
from scant_dashboard.auth.sessions import LoginSessions
from scant_dashboard.followers.followers import Followers
from scant_dashboard.followers.handler import FollowFirst
from scant_dashboard.frame.session import page
from scant_dashboard.frame.site import Site
from scant_dashboard.limits.connections import (
    BODY_SECONDS,
    IDLE_SECONDS,
    Connections,
    bound_connections,
    raise_descriptor_limit,
)
from scant_dashboard.limits.page_handler import PageLimits, bound_pages
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.pages.gallery import gallery
from scant_dashboard.server import headers, page_session, prefix
from scant_dashboard.server.listening import listening
from scant_dashboard.server.options import ServerOptions
from scant_dashboard.static_page.handler import StaticFirst
from scant_dashboard.static_page.published import Published, made_by
from scant_dashboard.static_page.still import prepend_handlers
from scant_dashboard.study_page.page import study_page
from scant_dashboard.template import assets
from scant_dashboard.upstream import install_all, server_parts
from scant_dashboard.upstream.bounded_messages import MESSAGE_LIMIT

FORM_LIMIT = 64 * 2**10  # bytes of a request's body, of which only the login form has one
JOINING = 27_000  # ms for a page to load its scripts and open its websocket


def pages(site: Site) -> dict[str, Callable[[], pmui.Page]]:
    """Return the page function of each address."""
    install_all.install()
    made = {"/": page(site, gallery)}
    for name in STUDIES:
        # Import now, so that the first visitor does not wait.
        import_module(f"scant_dashboard.pages.{name}.page")
        made[f"/{name}"] = page(site, partial(study_page, name=name))
    return made


def build(
    site: Site,
    options: ServerOptions,
    published: Published | None = None,
    followers: Followers | None = None,
) -> Server:
    """Build the server, listening but not started, on the current event loop.

    Args:
        site: Services shared by its pages.
        options: The operator's options.
        published: Static pages; None to serve live ones only.
        followers: Pages of followed runs; None to serve live ones only.

    Raises:
        BadInput: The port is taken, the user file cannot be used, or a proxy, a prefix or a site
            that may frame our pages is invalid.
    """
    proxies = proxy.Proxies(options.trusted_proxy)
    policy = headers.Policy(options.frame_ancestors)
    port, address = options.port, options.address
    under = prefix.checked(options.prefix)
    pn.extension("katex", "filedropper")
    pn.config.notifications = False
    with listening(port, address):
        port = port or _free(address)
    login: dict[str, Any] = {}
    if options.auth is not None:
        site.logins = LoginSessions(site.service.store, Accounts(options.auth), site.key)
        login["auth_provider"] = LoginProvider(site.logins)
    hosts = same_origin.allowed_hosts(port, address, options.allow_origin)
    with listening(port, address):
        server = pn.serve(
            pages(site),
            port=port,
            address=address,
            start=False,
            show=False,
            verbose=False,
            title="Scant",
            websocket_origin=hosts,
            websocket_max_message_size=MESSAGE_LIMIT,
            http_server_kwargs={
                "max_body_size": FORM_LIMIT,
                "idle_connection_timeout": IDLE_SECONDS,
                "body_timeout": BODY_SECONDS,
            },
            keep_alive_milliseconds=15_000,
            check_unused_sessions_milliseconds=2_000,  # unused sessions take megabytes
            unused_session_lifetime_milliseconds=JOINING,  # closed pages are removed immediately
            secret_key=page_session.signing_key(site.key),
            sign_sessions=True,
            ico_path=str(assets() / "icon.svg"),
            **login,
        )
    site.rooms.networked = not same_origin.on_this_machine(address)
    names = None if site.rooms.networked else hosts
    routes.install_routes(server, site, policy, names, followers)
    bound_pages(server, site.limits, site.key)
    if published is not None:
        prepend_handlers(server, StaticFirst, site=site, published=published)
    if followers is not None:
        prepend_handlers(server, FollowFirst, site=site, followers=followers)
    bound_connections(server, Connections(proxies))
    prefix.show_under(server, under, proxies)
    # In this order, because cookies and headers depend on the scheme reported by a proxy.
    app = server_parts.application(server)
    app.add_transform(proxy.transform(proxies))
    app.add_transform(visitor_cookie.transform(site.key))
    app.add_transform(headers.transform(policy))
    return server


def serve(service: RunService, folder: Path, key: str, options: ServerOptions) -> None:
    """Serve the dashboard until SIGINT or SIGTERM.

    Args:
        service: The run service, started or starting.
        folder: The server's data directory.
        key: Key that signs cookies.
        options: The operator's options.

    Raises:
        BadInput: The port is taken, the user file cannot be used, a proxy or a site that may frame
            our pages is invalid, or no Dask scheduler answers.
    """
    raise_descriptor_limit()
    limits = PageLimits(sessions=LiveSessions(per_address=options.sessions_per_address))
    published = followers = None
    if os.environ.get("SCANT_STATIC_PAGES") != "0":
        published = made_by(service, folder)
        followers = Followers(service, warm=not same_origin.on_this_machine(options.address))
    background = [pages for pages in (published, followers) if pages is not None]
    site = Site(service, folder, key, limits=limits, background=background)
    if options.auth is not None:
        show_log()
    try:
        server = build(site, options, published, followers)
    except BadInput:
        IOLoop.current().run_sync(service.close)
        raise
    run(site, server, options.open_browser, prefix.checked(options.prefix))


def run(site: Site, server: Server, open_browser: bool = False, under: str = "") -> None:
    """Start a built server and block until SIGINT or SIGTERM. Raises like `Site.open`."""
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

    def on_signal(*_: Any) -> None:
        asyncio_loop.call_soon_threadsafe(lambda: asyncio_loop.create_task(stop()))

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, on_signal)
    server.start()
    loop.add_callback(open_site)
    host = "127.0.0.1" if server.address in (None, "", "0.0.0.0") else server.address
    host = f"[{host}]" if ":" in host else host
    print(f"Scant is at http://{host}:{server.port}{under}/ (Ctrl-C stops it)", flush=True)
    if open_browser:
        loop.add_callback(server.show, f"{under}/")
    try:
        loop.start()
    finally:
        IOLoop.clear_current()
    if refused:
        raise refused[0]


def _free(address: str) -> int:
    """Return a free port; Bokeh needs it before listening, to allow its origin."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listener:
        listener.bind((address, 0))
        port: int = listener.getsockname()[1]
    return port
