"""Bokeh has no public way to a server's Tornado application, HTTP server and sockets.

The routes and the transforms of answers are the application's; connections come to the HTTP server.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from socket import socket

from bokeh.server.server import Server
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer


def application(server: Server) -> BokehTornado:
    """What answers a server's requests."""
    return server._tornado


def http_server(server: Server) -> HTTPServer:
    """What takes a server's connections."""
    return server._http


def sockets(server: Server) -> list[socket]:
    """Where a server listens."""
    return list(server._http._sockets.values())
