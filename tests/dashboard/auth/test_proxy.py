"""A proxy's word of the browser behind it counts where the operator trusts the proxy."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bokeh.util.token import get_session_id
from tornado.httputil import HTTPHeaders

from scant.errors import BadInput
from scant_dashboard.auth.proxy import Proxies
from tests.dashboard.standing import Reply, Standing, ask, standing

BROWSER = "203.0.113.7"


@contextmanager
def proxy(to: str) -> Iterator[str]:
    """A proxy that speaks TLS with browsers (or says so), and plainly with the server."""

    class Pass(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            inward = http.client.HTTPConnection(urlsplit(to).netloc, timeout=60)
            claimed = self.headers.get("X-Forwarded-For")
            inward.putrequest("GET", self.path, skip_host=True)
            inward.putheader("Host", "scant.example")
            inward.putheader("X-Forwarded-Proto", "https")
            inward.putheader("X-Forwarded-For", f"{claimed}, {BROWSER}" if claimed else BROWSER)
            inward.endheaders()
            answer = inward.getresponse()
            body = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    between = ThreadingHTTPServer(("127.0.0.1", 0), Pass)
    threading.Thread(target=between.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{between.server_port}"
    between.shutdown()
    between.server_close()


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("trusting"), allow_origin=["scant.example"]) as server:
        yield server


def address(served: Standing, page: Reply) -> str:
    """The address that the page's visitor comes from, as the page knows it."""
    session = served.server.get_session("/", get_session_id(page.token))
    return str(session.document.session_context.request.remote_ip)


def test_behind_tls_cookies_are_secure_and_the_browsers_address_is_known(
    trusting: Standing,
) -> None:
    with proxy(trusting.url) as outside:
        page = ask(outside)
        assert "; Secure" in page.headers["Set-Cookie"]
        assert page.headers["Strict-Transport-Security"]
        assert "wss://scant.example" in page.headers["Content-Security-Policy"]
        assert address(trusting, page) == BROWSER
        lied = ask(outside, X_Forwarded_For="198.51.100.1")
        assert address(trusting, lied) == BROWSER
    direct = ask(trusting.url)
    assert "Secure" not in direct.headers["Set-Cookie"]
    assert "Strict-Transport-Security" not in direct.headers
    assert address(trusting, direct) == "127.0.0.1"


def test_a_proxy_that_is_not_trusted_is_not_believed(tmp_path: Path) -> None:
    with (
        standing(tmp_path, trusted_proxy=["10.1.2.3"], allow_origin=["scant.example"]) as served,
        proxy(served.url) as outside,
    ):
        page = ask(outside)
        assert "Secure" not in page.headers["Set-Cookie"]
        assert "Strict-Transport-Security" not in page.headers
        assert address(served, page) == "127.0.0.1"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCANT_TRUSTED_PROXY", raising=False)


@pytest.mark.parametrize(
    ("trusted", "peer", "said", "client"),
    [
        ([], "127.0.0.1", {}, "127.0.0.1"),
        ([], "127.0.0.1", {"X-Forwarded-For": "1.1.1.1"}, "1.1.1.1"),
        ([], "::1", {"X-Forwarded-For": "2.2.2.2, 1.1.1.1"}, "1.1.1.1"),
        ([], "::ffff:127.0.0.1", {"X-Real-Ip": "1.1.1.1"}, "1.1.1.1"),
        ([], "8.8.8.8", {"X-Forwarded-For": "1.1.1.1"}, "8.8.8.8"),
        ([], "8.8.8.8", {"X-Real-Ip": "1.1.1.1", "Forwarded": "for=1.1.1.1"}, "8.8.8.8"),
        (["10.0.0.0/8"], "127.0.0.1", {"X-Forwarded-For": "1.1.1.1"}, "127.0.0.1"),
        (["10.0.0.0/8"], "10.1.1.1", {"X-Forwarded-For": "1.1.1.1, 10.2.2.2"}, "1.1.1.1"),
        (["10.0.0.0/8"], "10.1.1.1", {"X-Forwarded-For": "9.9.9.9, 1.1.1.1, 10.2.2.2"}, "1.1.1.1"),
        (["10.0.0.0/8"], "10.1.1.1", {"X-Forwarded-For": "10.3.3.3, 10.2.2.2"}, "10.3.3.3"),
        (["10.0.0.0/8"], "10.1.1.1", {"X-Forwarded-For": "1.1.1.1, junk"}, "10.1.1.1"),
        (["*"], "54.1.1.1", {"X-Forwarded-For": "9.9.9.9, 1.1.1.1"}, "1.1.1.1"),
        ([], "127.0.0.1", {"X-Forwarded-For": "1.1.1.1:4711"}, "1.1.1.1"),
        ([], "127.0.0.1", {"Forwarded": 'for="[2001:db8::1]:80";proto=https'}, "2001:db8::1"),
        ([], "127.0.0.1", {"X-Forwarded-For": "1.1.1.1", "X-Real-Ip": "2.2.2.2"}, "1.1.1.1"),
    ],
)
def test_the_address_is_the_last_that_no_trusted_proxy_has(
    trusted: list[str], peer: str, said: dict[str, str], client: str
) -> None:
    assert Proxies(trusted).client(peer, HTTPHeaders(said)) == client


@pytest.mark.parametrize(
    ("peer", "said", "scheme"),
    [
        ("127.0.0.1", {"X-Forwarded-Proto": "https"}, "https"),
        ("127.0.0.1", {"X-Scheme": "https"}, "https"),
        ("127.0.0.1", {"Forwarded": "for=1.1.1.1; proto=https"}, "https"),
        ("127.0.0.1", {"X-Forwarded-Proto": "gopher"}, "http"),
        ("127.0.0.1", {}, "http"),
        ("8.8.8.8", {"X-Forwarded-Proto": "https"}, "http"),
    ],
)
def test_the_scheme_is_what_a_trusted_proxy_says(
    peer: str, said: dict[str, str], scheme: str
) -> None:
    assert Proxies().scheme(peer, HTTPHeaders(said), "http") == scheme


def test_proxies_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_TRUSTED_PROXY", "10.0.0.0/8, 192.168.1.1")
    proxies = Proxies()
    assert proxies.trusts("10.9.9.9")
    assert proxies.trusts("192.168.1.1")
    assert not proxies.trusts("127.0.0.1")  # who names proxies names all of them


def test_what_is_no_proxy_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"'proxy\.example' is neither an address nor a network"):
        Proxies(["proxy.example"])
