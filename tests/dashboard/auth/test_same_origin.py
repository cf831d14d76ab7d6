"""Under which names the server answers, and from which pages a websocket opens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest

from scant_dashboard.auth.same_origin import from_own_page, names_this_machine
from tests.dashboard.standing import Standing, ask, join, standing

LISTED = "scant.example:8000"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("names")
    with standing(folder, allow_origin=(LISTED,)) as server:
        yield server


@pytest.mark.parametrize("host", ["evil.example", "evil.example:5006", "127.0.0.1.evil.example"])
def test_a_name_that_was_pointed_at_this_machine_gets_nothing(host: str, served: Standing) -> None:
    before = served.sessions()
    for path in ("/", "/redshift", "/healthz", "/assets/page.css", "/none"):
        reply = ask(served.url + path, Host=host)
        assert reply.status == 403
        assert b"another name" in reply.body
    assert served.sessions() <= before
    opened = ask(served.url)
    handshake = {"Host": host, "Origin": f"http://{host}"}
    assert join(served.url, opened.token, opened.cookie, **handshake) == 403
    handshake["Sec-Fetch-Site"] = "same-origin"
    assert join(served.url, opened.token, opened.cookie, **handshake) == 403


def test_pages_under_the_servers_own_names_connect(served: Standing) -> None:
    for host in (LISTED, "localhost:9000", "127.0.0.1:80", "[::1]:5006"):
        opened = ask(served.url, Host=host)
        own = {"Host": host, "Origin": f"http://{host}"}
        assert join(served.url, opened.token, opened.cookie, **own) == 101, host
    opened = ask(served.url)  # a proxy on this machine may name the server as it likes
    assert join(served.url, opened.token, opened.cookie, Origin=f"http://{LISTED}") == 101


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://localhost:9000"])
@pytest.mark.parametrize("site", ["", "same-origin", "none"])
def test_pages_of_other_sites_do_not(origin: str, site: str, served: Standing) -> None:
    opened = ask(served.url)
    headers = {"Origin": origin, "Sec-Fetch-Site": site}
    assert join(served.url, opened.token, opened.cookie, **headers) == 403


def test_on_a_network_a_page_connects_under_the_name_by_which_it_was_reached() -> None:
    def request(origin: str) -> HTTPServerRequest:
        return HTTPServerRequest("GET", "/ws", headers=HTTPHeaders(Host="lab", Origin=origin))

    assert from_own_page(request("http://LAB"), [])
    assert not from_own_page(request("http://other"), [])
    assert from_own_page(request("http://other"), ["other:80"])
    assert not from_own_page(request("http://[::1"), ["*"])


def test_names_of_this_machine() -> None:
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:5006", "127.1.2.3", "[::1]:5006"):
        assert names_this_machine(host, []), host
    for host in ("", "scant.example", "localhost.evil.example", "10.0.0.1:5006", "[::1", "[::2]"):
        assert not names_this_machine(host, []), host
    assert names_this_machine("scant.example", ["scant.example"])
