"""Patch: parse addresses with IPv6 hosts and several question marks.

Panel splits the address of a page at its first colon and its first question mark, so pages under an
IPv6 address (`[::1]:5006`), or with a second `?` in the query, failed (`panel/io/location.py`,
`ValueError: too many values to unpack`); holoviz/panel#7316 fixed only a bare `::1`.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

import re

from panel.io import location

from scant_dashboard.upstream.replacing import replace

_HOST = re.compile(r"(?P<name>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>\d+))?")


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    replace(location, "_get_location_params", lambda _: parts)


def parts(protocol: str | None, host: str | None, uri: str | None) -> dict[str, str]:
    """Return the parts of an address, named as in the browser's `location`, without empty ones.

    Args:
        protocol: "http" or "https".
        host: The request's Host header, with or without port.
        uri: Path and query of the request.
    """
    address, _, fragment = (uri or "").partition("#")
    path, _, search = address.partition("?")
    split = _HOST.fullmatch(host or "")
    result = {
        "protocol": f"{protocol}:" if protocol else "",
        "hostname": (split["name"] if split else host) or "",
        "port": (split["port"] if split else "") or "",
        "pathname": path,
        "search": f"?{search}" if search else "",
        "hash": f"#{fragment}" if fragment else "",
    }
    href = result["protocol"] + (f"//{host}" if host else "") + (uri or "")
    return {name: value for name, value in result.items() if value} | {"href": href}
