"""The path under which a proxy shows the server: whose word counts, and what is a path."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tornado.httputil import HTTPHeaders, RequestStartLine

from scant.errors import BadInput
from scant_dashboard.auth.proxy import Proxies
from scant_dashboard.server import prefix


class App:
    """Takes down what it is asked."""

    def start_request(self, *_: Any) -> App:
        return self

    def headers_received(self, line: RequestStartLine, headers: HTTPHeaders) -> None:
        self.path, self.headers = line.path, headers


def asked(path: str, own: str = "", peer: str = "127.0.0.1", **said: str) -> tuple[str, str]:
    """The path that the application sees, and the prefix that it hears of."""
    app = App()
    under = prefix._Under(app, own, Proxies())
    request = under.start_request(
        object(), SimpleNamespace(context=SimpleNamespace(remote_ip=peer))
    )
    headers = HTTPHeaders({name.replace("_", "-"): value for name, value in said.items()})
    request.headers_received(RequestStartLine("GET", path, "HTTP/1.1"), headers)
    return app.path, prefix.of(app)


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/scant/redshift?run=a/b", "/redshift?run=a/b"),
        ("/redshift", "/redshift"),  # a proxy that cuts it off
        ("/scant/", "/"),
        ("/scant", "/gallery"),
        ("/scant?theme=dark", "/gallery?theme=dark"),
        ("/scanty", "/scanty"),
    ],
)
def test_it_is_cut_off_where_the_proxy_left_it(path: str, seen: str) -> None:
    assert asked(path, own="/scant") == (seen, "/scant")
    assert asked(path, X_Forwarded_Prefix="/scant/") == (seen, "/scant")


def test_only_a_trusted_proxy_is_believed_and_nobody_says_our_header() -> None:
    far = "203.0.113.9"
    assert asked("/evil/x", peer=far, X_Forwarded_Prefix="/evil") == ("/evil/x", "")
    assert asked("/x", own="/scant", peer=far, X_Forwarded_Prefix="/evil") == ("/x", "/scant")
    assert asked("/x", X_Scant_Prefix="/evil") == ("/x", "")
    assert asked("/x", X_ProxyContextPath="/user/ada@uni/proxy/50") == (
        "/x",
        "/user/ada@uni/proxy/50",
    )


@pytest.mark.slow
@given(st.text(max_size=30))
def test_what_is_no_path_is_not_repeated(word: str) -> None:
    said = word.replace("\r", "").replace("\n", "").strip()
    _, under = asked("/x", X_Forwarded_Prefix=said)
    assert not set(under) & set("\"'<>\\ ?#;")
    assert "//" not in under


def test_an_option_that_is_no_path_is_refused() -> None:
    assert [prefix.checked(p) for p in ("", "/", "scant", "/a/b/")] == ["", "", "/scant", "/a/b"]
    with pytest.raises(BadInput, match="--prefix"):
        prefix.checked("https://host/scant?x")
