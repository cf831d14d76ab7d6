"""Where a login leads: never off this server, whatever the address says."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tornado.httputil import HTTPHeaders, HTTPServerRequest

from scant_dashboard.auth.redirects import local_path, sent_by_own_page

TRICKS = [
    "//evil.example/",
    "///evil.example/",
    "////evil.example/",
    "/\\evil.example/",
    "\\\\evil.example/",
    "/\t/evil.example/",
    "/\n/evil.example/",
    "/\r\nSet-Cookie: a=b",
    "\t//evil.example/",
    " //evil.example/",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/\u2028/evil.example",
    "/\x00/evil.example",
    "／／evil.example",
    "redshift",
    "?a=b",
    "",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_what_leads_elsewhere_leads_to_the_gallery(trick: str) -> None:
    assert local_path(trick) == "/"


@pytest.mark.parametrize("path", ["/", "/redshift?run=a&seed=1", "/genes?x=%2F%2Fa", "/a//b#c"])
def test_an_address_of_ours_stays_what_it_is(path: str) -> None:
    assert local_path(path) == path


def as_a_browser_reads_it(target: str) -> str:
    """Browsers drop tabs, line breaks and what surrounds an address, and turn backslashes."""
    bare = target.strip("".join(map(chr, range(33))))
    return bare.translate({9: None, 10: None, 13: None, 92: "/"})


@pytest.mark.slow
@given(st.text() | st.text("/\\:.?#@%\t\r\n aes", max_size=12).map("/".__add__))
@example("/" + "/" * 30)
@example("/.//evil.example")
def test_every_address_ends_on_the_same_host(target: str) -> None:
    onward = local_path(target)
    landed = urlsplit(urljoin("http://host/login", as_a_browser_reads_it(onward)))
    assert (landed.scheme, landed.netloc) == ("http", "host")
    assert onward.isascii()
    assert onward.isprintable()


def form(**headers: str) -> HTTPServerRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HTTPServerRequest("POST", "/login", headers=HTTPHeaders(named), host="scant.example:80")


def test_a_form_counts_when_a_page_of_ours_sent_it() -> None:
    allowed = {"127.0.0.1:5006"}
    own = [
        form(Sec_Fetch_Site="same-origin"),
        form(Sec_Fetch_Site="same-origin", Origin="null"),  # with a strict Referrer-Policy
        form(Origin="http://scant.example:80"),
        form(Origin="http://127.0.0.1:5006"),
        form(),
    ]
    others = [
        form(Sec_Fetch_Site="cross-site"),
        form(Sec_Fetch_Site="same-site", Origin="http://scant.example:80"),  # another port
        form(Origin="http://evil.example"),
        form(Origin="http://127.0.0.1:9999"),
        form(Origin="null"),
        form(Origin=""),
    ]
    assert all(sent_by_own_page(request, allowed) for request in own)
    assert not any(sent_by_own_page(request, allowed) for request in others)
