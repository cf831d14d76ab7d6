"""Access to a Bokeh server's Tornado application, HTTP server and sockets.

Bokeh has no public API for them. The application has the routes and output transforms; the HTTP
server accepts connections.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from socket import socket

from bokeh.server.server import Server
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer


def application(server: Server) -> BokehTornado:
    """Return the Tornado application of a server."""
    return server._tornado


def http_server(server: Server) -> HTTPServer:
    """Return the HTTP server."""
    return server._http


def sockets(server: Server) -> list[socket]:
    """Return the listening sockets."""
    return list(server._http._sockets.values())
