"""Network addresses as all counts take them."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

PREFIX = 64  # bits of an IPv6 address that one subscriber has in common


def network(address: str) -> str:
    """What stands for an address in all counts: itself, or an IPv6 address' first 64 bits."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, PREFIX), strict=False))
