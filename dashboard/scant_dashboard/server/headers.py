"""Headers of all responses: restrictions on loading, connecting and framing.

Pages load nothing from third parties and must send nothing to them. A page's own scripts bear a
nonce made for that response; injected scripts and `onclick` attributes do not run.
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
YEAR = 365 * 86400  # seconds for which browsers require TLS after the first use

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # links to runs are secret
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
ENCRYPTED = {  # over TLS only; otherwise browsers ignore them or warn
    "Strict-Transport-Security": f"max-age={YEAR}",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Static pages have our own scripts only, and inline styles.
STATIC = {
    "default-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
# Other responses run no scripts.
PLAIN = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
}
# Bokeh compiles callbacks in the browser (unsafe-eval), Panel imports components as modules from
# text (blob:), and all of them add style elements to their shadow roots.
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
    """Content security policies of this server.

    Args:
        ancestors: Sites that may frame our pages, such as `https://school.example`; those in
            SCANT_FRAME_ANCESTORS (separated by commas) are added. Our own pages always may.

    Raises:
        BadInput: An entry is no site.
    """

    def __init__(self, ancestors: Sequence[str] = ()) -> None:
        given = [*ancestors, *os.environ.get(VARIABLE, "").split(",")]
        sites = [_site(name.strip()) for name in given if name.strip()]
        self.ancestors = " ".join(["'self'", *sites])

    def plain(self) -> str:
        """Return the Content-Security-Policy of responses that are no pages."""
        return self._written(PLAIN)

    def static(self) -> str:
        """Return the Content-Security-Policy of a static page."""
        return self._written(STATIC)

    def page(self, nonce: str, request: HTTPServerRequest) -> str:
        """Return the Content-Security-Policy of a live page with scripts bearing `nonce`."""
        secure = "s" if request.protocol == "https" else ""
        # Safari before 15.4 does not include websockets in 'self'.
        socket = f" ws{secure}://{request.host}" if _HOST.fullmatch(request.host) else ""
        directives = {k: v.format(nonce=nonce, socket=socket) for k, v in PAGE.items()}
        return self._written(directives)

    def _written(self, directives: dict[str, str]) -> str:
        policy = {**directives, "frame-ancestors": self.ancestors}
        return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def transform(policy: Policy) -> type[OutputTransform]:
    """Return a class for `Application.add_transform` that adds missing headers."""

    class Headers(OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            self.secure = request.protocol == "https"

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            required = {"Content-Security-Policy": policy.plain(), **ALWAYS}
            for name, value in (required | (ENCRYPTED if self.secure else {})).items():
                headers.setdefault(name, value)
            headers.pop("Server", None)  # does not disclose the library and its version
            return status_code, headers, chunk

    return Headers


def add_nonces(page: str) -> tuple[str, str]:
    """Add a new nonce to the scripts of a page; return the page and the nonce."""
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
