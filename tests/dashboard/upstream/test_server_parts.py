"""A server's application and HTTP server, for which Bokeh has no public name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bokeh.server.server import Server
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from scant_dashboard.upstream import server_parts


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server({}, io_loop=IOLoop(make_current=False), port=0)
    yield made
    made.unlisten()
    made.io_loop.close()


def test_the_parts_are_found(server: Server) -> None:
    assert isinstance(server_parts.application(server), BokehTornado)
    assert isinstance(server_parts.http_server(server), HTTPServer)
    assert server.port in [one.getsockname()[1] for one in server_parts.sockets(server)]


def test_bokeh_has_no_public_way_still(server: Server) -> None:
    public = [getattr(server, name, None) for name in dir(server) if name[0] != "_"]
    assert not [part for part in public if isinstance(part, BokehTornado | HTTPServer)]
