"""Access to runs, and one-way codes for presenters and addresses.

A run may be steered by its owner, and by the presenter of the lesson that it was started from. A
code tells nothing of the visitor or the address it was made of, and gives no power to who knows it.
"""

from __future__ import annotations

import hmac
import re

from scant.errors import NotAllowed
from scant.runs.addresses import network
from scant.store import RunRecord

_CODE = re.compile(r"[0-9a-f]{32}")


def presenter_code(visitor: str, key: str) -> str:
    """The public code of a visitor, as a lesson's link names its presenter; "" of nobody."""
    return _code("presenter", visitor, key) if visitor and key else ""


def presenter_named(code: str) -> str:
    """A presenter's code as a link has it; "" where it cannot be one."""
    return code if _CODE.fullmatch(code) else ""


def address_code(address: str, key: str) -> str:
    """What stands for a network address where runs are counted; "" where it is not known.

    An IPv6 subscriber has 2**64 addresses, so those count as one.
    """
    if not address:
        return ""
    return _code("address", network(address), key)


def may_steer(record: RunRecord, presenter: str, visitor: str, key: str) -> bool:
    """Whether a visitor may pause, resume and stop a run.

    Args:
        record: The run.
        presenter: The code of the presenter whose lesson it was started from; "" for none.
        visitor: Who asks; "" (no cookie) may steer nothing.
        key: What codes are made with.
    """
    if not visitor or not record.owner:
        return False
    if record.owner == visitor:
        return True
    return bool(presenter) and hmac.compare_digest(presenter, presenter_code(visitor, key))


def check_may_steer(record: RunRecord, presenter: str, visitor: str, key: str, act: str) -> None:
    """Raise `NotAllowed` where a visitor may not steer a run; `act` is what they wanted to do."""
    if not may_steer(record, presenter, visitor, key):
        who = "nobody: it is a demonstration"
        if record.owner:
            who = "only by the visitor who started it, or by the presenter of its lesson"
        raise NotAllowed(
            f"You cannot {act} this run; that can be done {who}. Train one of your own instead."
        )


def _code(kind: str, word: str, key: str) -> str:
    return hmac.new(key.encode(), f"{kind}:{word}".encode(), "sha256").hexdigest()[:32]
