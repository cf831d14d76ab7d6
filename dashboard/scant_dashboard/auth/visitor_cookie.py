"""Visitors without accounts: a random id in a signed cookie.

The response to a browser's first request sets the cookie, whose page must already know the id.
Therefore a tornado transform adds the missing cookie to the request, and the header that sets it to
the response.
"""

from __future__ import annotations

import os
import secrets
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, cast

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform, create_signed_value, decode_signed_value

COOKIE = "scant_visitor"
NOT_AT = "/room/"  # phones of a room get no identifying cookie
DAYS = 400  # browsers' maximum age of a cookie


def secret(data_dir: Path) -> str:
    """Return the key that signs cookies: SCANT_SECRET, or a file created in the data directory."""
    if given := os.environ.get("SCANT_SECRET"):
        return given
    path = data_dir / "cookie-secret"
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
    except FileExistsError:
        pass
    return path.read_text().strip()


def sign(visitor: str, key: str) -> str:
    """Return the cookie's value for a visitor."""
    return create_signed_value(key, COOKIE, visitor).decode()


def verify(value: str | None, key: str) -> str | None:
    """Return the visitor of a cookie's value; None if it is missing, forged or expired."""
    result = decode_signed_value(key, COOKIE, value, max_age_days=DAYS) if value else None
    return result.decode() if result else None


def transform(key: str) -> type[OutputTransform]:
    """Return a class for `Application.add_transform` that gives every browser its cookie."""

    class Visitors(OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            cookies = cast(SimpleCookie, request.cookies)
            present = cookies[COOKIE].value if COOKIE in cookies else None
            self.fresh: str | None = None
            if verify(present, key) is None:
                self.fresh = sign(secrets.token_urlsafe(16), key)
                cookies[COOKIE] = self.fresh
            self.secure = request.protocol == "https"
            self.identified = not request.path.startswith(NOT_AT)

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            if (
                self.fresh
                and self.identified
                and headers.get("Content-Type", "").startswith("text/html")
            ):
                headers.add("Set-Cookie", _morsel(self.fresh, self.secure))
            return status_code, headers, chunk

    return Visitors


def _morsel(value: str, secure: bool) -> str:
    cookie: SimpleCookie = SimpleCookie()
    cookie[COOKIE] = value
    morsel: Any = cookie[COOKIE]
    morsel.update({"path": "/", "max-age": DAYS * 86400, "httponly": True, "samesite": "Lax"})
    if secure:
        morsel["secure"] = True
    return str(morsel.OutputString())
