"""Safe redirect targets, and checks of a form's origin."""

from __future__ import annotations

import re
from collections.abc import Collection

from tornado.httputil import HTTPServerRequest

from scant_dashboard.auth.same_origin import from_own_page

GALLERY = "/"
LONGEST = 4096  # characters of an address

# Printable ASCII without the backslash, which browsers treat as a slash; they drop tabs and line
# breaks anywhere. Other characters are percent-encoded by browsers.
_LOCAL = re.compile(r"/(?!/)[!-\[\]-~]*")


def local_path(target: str) -> str:
    """Return an address of this server as a path with query, or the gallery for any other."""
    return target if len(target) <= LONGEST and _LOCAL.fullmatch(target) else GALLERY


def sent_by_own_page(request: HTTPServerRequest, allowed_hosts: Collection[str]) -> bool:
    """Whether a form was sent by one of our pages, according to the browser.

    Args:
        request: Request of the form.
        allowed_hosts: "host" or "host:port" of further own pages (see `--allow-origin`), since a
            server behind a proxy may not know the name used by visitors.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:  # set by the browser; pages cannot change it
        return site == "same-origin"
    if "Origin" not in request.headers:
        return True  # not a current browser, and other programs have no visitor's cookie
    return from_own_page(request, allowed_hosts)
