"""The browser's address and scheme, from the headers of a trusted proxy.

Anybody can send `X-Forwarded-For`. It counts only where the socket's other end is a proxy that the
operator trusts; else a visitor could choose the address by which limits count, or have cookies
marked as if the connection were encrypted.
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
LOOPBACK = ("127.0.0.0/8", "::1")  # a proxy on this machine: trusted unless others are named
VARIABLE = "SCANT_TRUSTED_PROXY"

Address = IPv4Address | IPv6Address


class Proxies:
    """The proxies whose word counts.

    Args:
        trusted: Addresses or networks (`10.0.0.0/8`); `*` trusts whoever connects, for one hop:
            right where a platform's router is the only way to the server, wrong elsewhere. Those
            in SCANT_TRUSTED_PROXY (separated by commas) are added; if none is named, proxies on
            this machine are trusted.

    Raises:
        BadInput: One of them is neither an address nor a network.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        listed = [*trusted, *os.environ.get(VARIABLE, "").split(",")]
        names = [name.strip() for name in listed if name.strip()] or list(LOOPBACK)
        self.any = ANY in names
        self._networks = [_network(name) for name in names if name != ANY]

    def trusts(self, peer: str) -> bool:
        """Whether the word of whoever connects from `peer` counts."""
        return self.any or self._listed(_address(peer))

    def client(self, peer: str, headers: HTTPHeaders) -> str:
        """The address of the browser: the last in the chain that is no trusted proxy.

        `X-Forwarded-For` comes before `X-Real-Ip`, and that before `Forwarded`. The peer's own
        address stands where it is not trusted or the headers name none.
        """
        if not self.trusts(peer):
            return peer
        chain = [_address(hop) for hop in _hops(headers)]
        for address in reversed(chain):
            if address is None:
                return peer  # not an address: whoever wrote it, nothing before it can be believed
            if not self._listed(address):
                return str(address)
        return str(chain[0]) if chain else peer

    def scheme(self, peer: str, headers: HTTPHeaders, own: str) -> str:
        """`http` or `https`, as the browser speaks it; `own` is the socket's."""
        if not self.trusts(peer):
            return own
        word = headers.get("X-Forwarded-Proto") or headers.get("X-Scheme")
        if word is None:
            protos = [p["proto"] for p in _forwarded(headers) if "proto" in p]
            word = protos[-1] if protos else own
        last = word.split(",")[-1].strip().lower()
        return last if last in ("http", "https") else own

    def _listed(self, address: Address | None) -> bool:
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def transform(proxies: Proxies) -> type[OutputTransform]:
    """The class for `tornado.web.Application.add_transform` that puts every request right.

    Transforms are made before a request is handled, in the order in which they were added: this
    one goes first, so that all else knows the browser's address and scheme.
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


def _address(word: str) -> Address | None:
    """An address as headers write it: with a port, in brackets, in quotes."""
    word = word.strip().strip('"')
    if bracketed := re.fullmatch(r"\[(.+)\](?::\d+)?", word):
        word = bracketed[1]
    elif word.count(":") == 1:
        word = word.split(":")[0]
    try:
        address = ip_address(word)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)  # an IPv4 peer of a socket that speaks IPv6
    return mapped or address


def _hops(headers: HTTPHeaders) -> list[str]:
    """The chain of addresses from the browser to the last proxy, as the headers have it."""
    for name in ("X-Forwarded-For", "X-Real-Ip"):
        if name in headers:
            return [hop for hop in headers[name].split(",") if hop.strip()]
    return [pairs["for"] for pairs in _forwarded(headers) if "for" in pairs]


def _forwarded(headers: HTTPHeaders) -> list[dict[str, str]]:
    """The hops of a `Forwarded` header (RFC 7239)."""
    hops = []
    for hop in headers.get("Forwarded", "").split(","):
        pairs = (pair.split("=", 1) for pair in hop.split(";") if "=" in pair)
        hops.append({key.strip().lower(): value.strip().strip('"') for key, value in pairs})
    return hops
