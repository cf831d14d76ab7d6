"""The signed cookie: kept if ours, replaced if not, never asked of a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest

from scant_dashboard.auth.visitor_cookie import COOKIE, secret, sign, transform, verify

KEY = "k" * 40


def request(cookie: str = "") -> HTTPServerRequest:
    headers = HTTPHeaders({"Cookie": f"{COOKIE}={cookie}"} if cookie else {})
    made = HTTPServerRequest("GET", "/", headers=headers)
    made.protocol = "http"
    return made


def answer(made: HTTPServerRequest, kind: str = "text/html; charset=utf-8") -> HTTPHeaders:
    headers = HTTPHeaders({"Content-Type": kind})
    transform(KEY)(made).transform_first_chunk(200, headers, b"", True)
    return headers


def test_a_signed_visitor_is_read_back_and_a_forged_one_is_not() -> None:
    assert verify(sign("anna", KEY), KEY) == "anna"
    assert verify(sign("anna", "another key"), KEY) is None
    signed = sign("anna", KEY)
    assert verify(signed[:-1] + ("1" if signed[-1] == "0" else "0"), KEY) is None
    assert verify(None, KEY) is None


def test_a_first_visit_gets_a_cookie_and_its_page_knows_it() -> None:
    made = request()
    header = answer(made)["Set-Cookie"]
    assert "HttpOnly" in header
    assert "SameSite=Lax" in header
    assert verify(made.cookies[COOKIE].value, KEY)


def test_a_known_visitor_keeps_the_cookie() -> None:
    value = sign("anna", KEY)
    made = request(value)
    assert "Set-Cookie" not in answer(made)
    assert made.cookies[COOKIE].value == value


def test_a_forged_cookie_is_replaced_before_the_page_sees_it() -> None:
    made = request("2|1:0|forged")
    assert "Set-Cookie" in answer(made)
    assert verify(made.cookies[COOKIE].value, KEY)


def test_scripts_and_fonts_carry_no_cookie() -> None:
    assert "Set-Cookie" not in answer(request(), "text/css")


def test_the_secret_is_made_once_and_readable_by_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCANT_SECRET", raising=False)
    first = secret(tmp_path / "new")
    assert secret(tmp_path / "new") == first
    assert len(first) > 30
    assert (tmp_path / "new" / "cookie-secret").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("SCANT_SECRET", "given")
    assert secret(tmp_path) == "given"
