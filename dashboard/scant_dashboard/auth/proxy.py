"""The browser's address and scheme, from the headers of a trusted proxy.

Anybody can send `X-Forwarded-For`. It is used only if the connection comes from a trusted proxy;
otherwise visitors could choose the address by which limits count, or have cookies marked as if the
connection were encrypted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform

from scant.errors import BadInput

ANY = "*"
LOOPBACK = ("127.0.0.0/8", "::1")  # proxies on this machine, trusted by default
VARIABLE = "SCANT_TRUSTED_PROXY"

Address = IPv4Address | IPv6Address


class Proxies:
    """The trusted proxies.

    Args:
        trusted: Addresses or networks (`10.0.0.0/8`); `*` trusts all peers for one hop, which is
            right only if a platform's router is the sole way to the server. Entries of
            SCANT_TRUSTED_PROXY (separated by commas) are added; by default, proxies on this machine
            are trusted.

    Raises:
        BadInput: An entry is neither an address nor a network.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        listed = [*trusted, *os.environ.get(VARIABLE, "").split(",")]
        names = [name.strip() for name in listed if name.strip()] or list(LOOPBACK)
        self.any = ANY in names
        self._networks = [_network(name) for name in names if name != ANY]

    def trusts(self, peer: str) -> bool:
        """Whether headers from this peer are trusted."""
        return self.any or self._is_trusted(_address(peer))

    def client(self, peer: str, headers: HTTPHeaders) -> str:
        """Return the browser's address: the last one in the chain that is no trusted proxy.

        `X-Forwarded-For` precedes `X-Real-Ip`, and that precedes `Forwarded`. The peer's address is
        used if it is not trusted or the headers name none.
        """
        if not self.trusts(peer):
            return peer
        chain = [_address(hop) for hop in _hops(headers)]
        for address in reversed(chain):
            if address is None:
                return peer  # invalid: earlier entries cannot be trusted
            if not self._is_trusted(address):
                return str(address)
        return str(chain[0]) if chain else peer

    def scheme(self, peer: str, headers: HTTPHeaders, own: str) -> str:
        """Return the browser's scheme, `http` or `https`; `own` is that of the connection."""
        if not self.trusts(peer):
            return own
        schemes = headers.get("X-Forwarded-Proto") or headers.get("X-Scheme")
        if schemes is None:
            protos = [p["proto"] for p in _forwarded(headers) if "proto" in p]
            schemes = protos[-1] if protos else own
        last = schemes.split(",")[-1].strip().lower()
        return last if last in ("http", "https") else own

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def transform(proxies: Proxies) -> type[OutputTransform]:
    """Return a class for `Application.add_transform` that sets every request's address and scheme.

    Transforms are created before a request is handled, in the order in which they were added; this
    one comes first, so that all others use the browser's address and scheme.
    """

    class Behind(OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            peer = request.remote_ip or ""
            request.remote_ip = proxies.client(peer, request.headers)
            request.protocol = proxies.scheme(peer, request.headers, request.protocol)

    return Behind


def _network(name: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(name, strict=False)
    except ValueError:
        raise BadInput(
            f"--trusted-proxy: {name!r} is neither an address nor a network; "
            "give for example 10.0.0.7, 10.0.0.0/8 or '*'."
        ) from None


def _address(value: str) -> Address | None:
    """Parse an address from a header: with a port, in brackets, in quotes."""
    value = value.strip().strip('"')
    if bracketed := re.fullmatch(r"\[(.+)\](?::\d+)?", value):
        value = bracketed[1]
    elif value.count(":") == 1:
        value = value.split(":")[0]
    try:
        address = ip_address(value)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)  # an IPv4 peer of an IPv6 socket
    return mapped or address


def _hops(headers: HTTPHeaders) -> list[str]:
    """Return the chain of addresses from the browser to the last proxy."""
    for name in ("X-Forwarded-For", "X-Real-Ip"):
        if name in headers:
            return [hop for hop in headers[name].split(",") if hop.strip()]
    return [pairs["for"] for pairs in _forwarded(headers) if "for" in pairs]


def _forwarded(headers: HTTPHeaders) -> list[dict[str, str]]:
    """Parse the hops of a `Forwarded` header (RFC 7239)."""
    hops = []
    for hop in headers.get("Forwarded", "").split(","):
        pairs = (pair.split("=", 1) for pair in hop.split(";") if "=" in pair)
        hops.append({key.strip().lower(): value.strip().strip('"') for key, value in pairs})
    return hops
