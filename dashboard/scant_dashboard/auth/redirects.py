"""Where a form may send its visitor, and which pages a form may come from."""

from __future__ import annotations

import re
from collections.abc import Collection

from tornado.httputil import HTTPServerRequest

from scant_dashboard.auth.same_origin import from_own_page

GALLERY = "/"
LONGEST = 4096  # characters of an address

# Printable ASCII without a backslash, which browsers read as a slash; they drop tabs and line
# breaks anywhere. An address as browsers send it needs nothing else: the rest is percent-encoded.
_LOCAL = re.compile(r"/(?!/)[!-\[\]-~]*")


def local_path(target: str) -> str:
    """An address of this server, as a path with its query; the gallery instead of any other."""
    return target if len(target) <= LONGEST and _LOCAL.fullmatch(target) else GALLERY


def sent_by_own_page(request: HTTPServerRequest, allowed_hosts: Collection[str]) -> bool:
    """Whether a form was sent by a page of ours, as far as the browser says where it was.

    Args:
        request: Of the form.
        allowed_hosts: "host" or "host:port" of further pages that count as ours (see `--allow-
            origin`); what listens behind a proxy does not always see the name that visitors use.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:  # what the browser itself says, and no page can change
        return site == "same-origin"
    if "Origin" not in request.headers:
        return True  # no browser of today; a program has no visitor whom it could use
    return from_own_page(request, allowed_hosts)
