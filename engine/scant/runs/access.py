"""Access control of runs, and one-way codes for presenters and addresses.

A run can be controlled by its owner and by the presenter of the lesson it was started from. Codes
do not reveal the visitor or address they are derived from, and grant no access.
"""

from __future__ import annotations

import hmac
import re

from scant.errors import NotAllowed
from scant.runs.addresses import network
from scant.store import RunRecord

_CODE = re.compile(r"[0-9a-f]{32}")


def presenter_code(visitor: str, key: str) -> str:
    """Return the public code of a presenter for the link to a lesson; "" without a visitor."""
    return _code("presenter", visitor, key) if visitor and key else ""


def presenter_named(code: str) -> str:
    """Validate the presenter code of a link; "" if it is invalid."""
    return code if _CODE.fullmatch(code) else ""


def address_code(address: str, key: str) -> str:
    """Return a code for the network of an address, to count its runs; "" if unknown.

    The 2**64 addresses of an IPv6 subscriber have the same code.
    """
    if not address:
        return ""
    return _code("address", network(address), key)


def may_steer(record: RunRecord, presenter: str, visitor: str, key: str) -> bool:
    """Return True if a visitor may pause, resume and stop a run.

    Args:
        record: Run.
        presenter: Code of the presenter of the lesson it was started from; "" for none.
        visitor: Visitor, or "" without a cookie, who may not control any run.
        key: Secret key of the codes.
    """
    if not visitor or not record.owner:
        return False
    if record.owner == visitor:
        return True
    return bool(presenter) and hmac.compare_digest(presenter, presenter_code(visitor, key))


def check_may_steer(record: RunRecord, presenter: str, visitor: str, key: str, act: str) -> None:
    """Raise `NotAllowed` if a visitor may not control a run; `act` is the verb for the message."""
    if not may_steer(record, presenter, visitor, key):
        why = "it is a demonstration"
        if record.owner:
            why = "only the visitor who started it or the presenter of its lesson can"
        raise NotAllowed(f"You cannot {act} this run: {why}. Train one of your own instead.")


def _code(kind: str, value: str, key: str) -> str:
    return hmac.new(key.encode(), f"{kind}:{value}".encode(), "sha256").hexdigest()[:32]
