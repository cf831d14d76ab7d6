"""The path under which a proxy serves this server: `/scant`, or `/user/ada/proxy/5006`.

Some proxies remove it before passing a request on, others keep it; most send it in a header. Here
it is removed, so that addresses are the same everywhere, and put into a request header for
redirects and absolute addresses. Pages use relative addresses otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any

from bokeh.server.server import Server
from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)

from scant.errors import BadInput
from scant_dashboard.auth.proxy import Proxies
from scant_dashboard.upstream.server_parts import http_server

HEADER = "X-Scant-Prefix"  # internal; dropped from browsers' requests
# The first is used by nginx and traefik, the others by jupyter-server-proxy.
PROXY_HEADERS = ("X-Forwarded-Prefix", "X-ProxyContextPath", "X-Forwarded-Context")
GALLERY = "/gallery"  # redirects to the gallery, as must the prefix without a slash

_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~@%:+-]+)*")


def checked(prefix: str) -> str:
    """Return a prefix of `--prefix` without trailing slash; "" for none.

    Raises:
        BadInput: It is no path.
    """
    path = "/" + prefix.strip("/") if prefix.strip("/") else ""
    if not _PREFIX.fullmatch(path):
        raise BadInput(f"--prefix: {prefix!r} is no path; give for example /scant.")
    return path


def of(request: HTTPServerRequest | Any) -> str:
    """Return the prefix of a request's address in the browser; "" for none."""
    headers = getattr(request, "headers", None) or {}
    return str(headers.get(HEADER, ""))


def show_under(server: Server, prefix: str, proxies: Proxies) -> None:
    """Serve a server's pages under a prefix.

    Args:
        server: A server that has not been started.
        prefix: Result of `checked`; trusted proxies may name another one.
        proxies: The trusted proxies.
    """
    http: Any = http_server(server)
    http.request_callback = _Under(http.request_callback, prefix, proxies)


class _Under(HTTPServerConnectionDelegate):
    def __init__(self, app: Any, prefix: str, proxies: Proxies) -> None:
        self._app, self._prefix, self._proxies = app, prefix, proxies

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        peer = str(getattr(request_conn.context, "remote_ip", "") or "")
        request = self._app.start_request(server_conn, request_conn)
        return _Request(request, self._prefix, self._proxies.trusts(peer))

    def on_close(self, server_conn: object) -> None:
        self._app.on_close(server_conn)


class _Request(HTTPMessageDelegate):
    """Passes a request on without the prefix."""

    def __init__(self, request: HTTPMessageDelegate, prefix: str, trusted: bool) -> None:
        self._request, self._prefix, self._trusted = request, prefix, trusted

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        assert isinstance(start_line, RequestStartLine)
        prefix = self._from_headers(headers) if self._trusted else None
        prefix = self._prefix if prefix is None else prefix
        headers.pop(HEADER, None)
        if prefix:
            headers[HEADER] = prefix
            path, mark, query = start_line.path.partition("?")
            if path == prefix:
                path = GALLERY
            elif path.startswith(prefix + "/"):
                path = path.removeprefix(prefix)
            start_line = start_line._replace(path=path + mark + query)
        return self._request.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._request.data_received(chunk)

    def finish(self) -> None:
        self._request.finish()

    def on_connection_close(self) -> None:
        self._request.on_connection_close()

    @staticmethod
    def _from_headers(headers: HTTPHeaders) -> str | None:
        for name in PROXY_HEADERS:
            path = headers.get(name, "").rstrip("/")
            if path and _PREFIX.fullmatch(path):
                return path
        return None
