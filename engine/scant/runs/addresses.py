"""Normalization of network addresses for counts and limits."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

PREFIX = 64  # bits of an IPv6 address shared by all addresses of a subscriber


def network(address: str) -> str:
    """Return an IPv4 address unchanged, or the 64-bit network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, PREFIX), strict=False))
