"""The address at which phones reach a room, and its QR code."""

from __future__ import annotations

import socket
from urllib.parse import urljoin, urlsplit, urlunsplit

import psutil
import segno

from scant_dashboard.auth.same_origin import on_this_machine
from scant_dashboard.translate import later

NOT_REACHED = later(
    "This server listens on this machine only, so phones cannot reach it. Start it with "
    "--address 0.0.0.0."
)
SOMEWHERE = ("192.0.2.1", 9)  # documentation address (RFC 5737); nothing is sent to it


def phone_address(here: str, code: str, networked: bool) -> tuple[str, bool]:
    """Return the room's address for phones, and whether phones can reach it.

    Args:
        here: Address of the presenter's page in the browser, prefix included.
        code: Code of the room.
        networked: Whether other machines can reach this server.
    """
    parts = urlsplit(urljoin(here, f"./room/{code}"))
    scheme = parts.scheme if parts.scheme in ("http", "https") else "http"
    host, reached = parts.netloc, True
    if on_this_machine(parts.hostname or ""):
        own = network_address() if networked else ""
        reached = bool(own)
        if own:
            host = own + (f":{parts.port}" if parts.port else "")
    return urlunsplit((scheme, host, parts.path, "", "")), reached


def network_address() -> str:
    """Return this machine's IPv4 address on its network; "" if it has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(SOMEWHERE)  # chooses the interface of the default route
            return str(probe.getsockname()[0])
    except OSError:  # no default route
        up = {name for name, state in psutil.net_if_stats().items() if state.isup}
        own = [a.address for name, all_of in psutil.net_if_addrs().items() if name in up
               for a in all_of if a.family == socket.AF_INET]  # fmt: skip
        return next((a for a in own if not on_this_machine(a)), "")


def qr_code(address: str) -> str:
    """Return the QR code of an address as an SVG element, dark on light in every theme."""
    svg: str = segno.make(address, error="m", micro=False).svg_inline(
        border=3, omitsize=True, dark="#000", light="#fff"
    )
    return svg
