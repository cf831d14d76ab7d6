"""Headers of all answers: restrictions on loading, connecting and framing.

Nothing comes from a third party, so nothing of a page may reach one. A page's own scripts bear a
nonce made for that one answer; a script or an `onclick` that got into its text does not run.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform

from scant.errors import BadInput

VARIABLE = "SCANT_FRAME_ANCESTORS"
YEAR = 365 * 86400  # seconds that browsers insist on TLS, once they met it

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links to runs are secrets: no other site learns them
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
ENCRYPTED = {  # over TLS only: browsers complain of them, or must ignore them, without
    "Strict-Transport-Security": f"max-age={YEAR}",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# A static page has our own scripts only, and styles in its text.
STATIC = {
    "default-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
# What is no page runs no script at all.
PLAIN = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
}
# Bokeh compiles its callbacks in the browser (unsafe-eval), Panel's components are modules made of
# text there and fetched (blob:), and all of them put style elements into their shadow roots.
PAGE = {
    "default-src": "'self'",
    "script-src": "'self' 'nonce-{nonce}' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' blob:{socket}",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}


class Policy:
    """What this server's answers allow.

    Args:
        ancestors: Sites that may show our pages in a frame, such as `https://school.example`;
            those in SCANT_FRAME_ANCESTORS (separated by commas) are added. Our own pages always
            may.

    Raises:
        BadInput: One of them is no site.
    """

    def __init__(self, ancestors: Sequence[str] = ()) -> None:
        given = [*ancestors, *os.environ.get(VARIABLE, "").split(",")]
        sites = [_site(name.strip()) for name in given if name.strip()]
        self.ancestors = " ".join(["'self'", *sites])

    def plain(self) -> str:
        """The Content-Security-Policy of whatever is no page."""
        return self._written(PLAIN)

    def static(self) -> str:
        """The Content-Security-Policy of a page without a session."""
        return self._written(STATIC)

    def page(self, nonce: str, request: HTTPServerRequest) -> str:
        """The Content-Security-Policy of a page whose own scripts bear `nonce`."""
        secure = "s" if request.protocol == "https" else ""
        # Safari before 15.4 does not count websockets as 'self'.
        socket = f" ws{secure}://{request.host}" if _HOST.fullmatch(request.host) else ""
        directives = {k: v.format(nonce=nonce, socket=socket) for k, v in PAGE.items()}
        return self._written(directives)

    def _written(self, directives: dict[str, str]) -> str:
        policy = {**directives, "frame-ancestors": self.ancestors}
        return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def transform(policy: Policy) -> type[OutputTransform]:
    """The class for `tornado.web.Application.add_transform` that adds what an answer lacks."""

    class Headers(OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            self.secure = request.protocol == "https"

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            wanted = {"Content-Security-Policy": policy.plain(), **ALWAYS}
            for name, value in (wanted | (ENCRYPTED if self.secure else {})).items():
                headers.setdefault(name, value)
            headers.pop("Server", None)  # which library answers, and its version, helps nobody
            return status_code, headers, chunk

    return Headers


def nonced(page: str) -> tuple[str, str]:
    """A page whose scripts bear a fresh nonce, and the nonce."""
    nonce = secrets.token_urlsafe(16)
    return re.sub(r"<script(?=[\s>])", f'<script nonce="{nonce}"', page), nonce


_HOST = re.compile(r"[A-Za-z0-9.:\[\]_-]+")


def _site(name: str) -> str:
    parts = urlsplit(name)
    bare = not parts.path.strip("/") and not parts.query and not parts.fragment
    if parts.scheme in ("http", "https") and _HOST.fullmatch(parts.netloc) and bare:
        return f"{parts.scheme}://{parts.netloc}"
    raise BadInput(
        f"--frame-ancestors: {name!r} is no site; give for example https://school.example."
    )
