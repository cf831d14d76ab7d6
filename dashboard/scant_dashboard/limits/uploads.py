"""Limits on the bytes of uploads that the server holds in memory, from their first chunk on.

A browser announces a file by the number of its chunks, and both what is announced and what comes
are counted: against the file's own limit, and against what a visitor, an address and the server
may hold at once. What is refused is dropped at once, as are further chunks of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from weakref import WeakSet

from scant.errors import BadInput
from scant_dashboard.limits.client import Client

CHUNK = 2_000_000  # bytes that a browser sends at once
PER_VISITOR = 200_000_000  # bytes; the largest file that a page takes
PER_ADDRESS = 300_000_000
OVERALL = 600_000_000
STALLED = 60.0  # seconds without a chunk after which an upload is dropped
LONGEST_NAME = 255  # characters of a file's name


class Reservation:
    """Bytes of memory that a client's upload may take; counted until released or forgotten."""

    def __init__(self, budget: UploadBudget, client: Client, size: int) -> None:
        self.client, self.size = client, size
        self._budget = budget

    def release(self) -> None:
        """Give the bytes back; a second call changes nothing."""
        self.size = 0
        self._budget._reservations.discard(self)


class UploadBudget:
    """The bytes of uploads in memory of one server.

    Args:
        per_visitor: Bytes that the uploads of one visitor may take at once.
        per_address: Bytes for one network address.
        overall: Bytes for all.
    """

    def __init__(
        self,
        per_visitor: int = PER_VISITOR,
        per_address: int = PER_ADDRESS,
        overall: int = OVERALL,
    ) -> None:
        self._bounds = per_visitor, per_address, overall
        self._reservations: WeakSet[Reservation] = WeakSet()

    @property
    def used(self) -> int:
        """Bytes that are reserved now."""
        return sum(each.size for each in self._reservations)

    def reserve(self, client: Client, size: int) -> Reservation:
        """Reserve memory for an upload.

        Raises:
            BadInput: The client's uploads, or all of them, would take more than they may.
        """
        per_visitor, per_address, overall = self._bounds
        live = list(self._reservations)
        mine = sum(r.size for r in live if r.client == client) if client.visitor else 0
        near = sum(r.size for r in live if r.client.address == client.address)
        if mine + size > per_visitor:
            raise BadInput(
                f"{_with_yours(mine)} your uploads would take {_mb(mine + size)} of this server's "
                f"memory at once; at most {_mb(per_visitor)} may. Finish or close the other "
                "upload first."
            )
        if near + size > per_address:
            raise BadInput(
                f"Uploads from your network take {_mb(near)} of this server's memory, and this "
                f"one would need up to {_mb(size)}; at most {_mb(per_address)} may come at once. "
                "Try again in a minute."
            )
        if self.used + size > overall:
            raise BadInput(
                f"This server is taking in {_mb(self.used)} of uploads, and this one would need "
                f"up to {_mb(size)}; at most {_mb(overall)} may come at once. Try again in a "
                "minute."
            )
        made = Reservation(self, client, size)
        self._reservations.add(made)
        return made


@dataclass
class Received:
    """A whole file; the reservation counts it until it is released."""

    name: str
    content: bytes = field(repr=False)
    reservation: Reservation


class UploadReceiver:
    """Puts the chunks of one file at a time together. Used on the event loop.

    Args:
        budget: The server's.
        client: Who uploads.
        limit: Bytes of a file.
        stalled: Called with a sentence when an upload was dropped because nothing more came.
    """

    def __init__(
        self,
        budget: UploadBudget,
        client: Client,
        limit: int,
        stalled: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._budget, self._client, self._limit, self._stalled = budget, client, limit, stalled
        self._name, self._total, self._next = "", 0, 0
        self._buffer: BytesIO | None = None
        self._reservation: Reservation | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def active(self) -> bool:
        """Whether an upload is under way."""
        return self._buffer is not None

    def take(self, data: Mapping[str, Any]) -> Received | None:
        """Take a chunk as Panel's file dropper sends it; returns the file once it is whole.

        Chunks of an upload that was refused or dropped are ignored.

        Raises:
            BadInput: The upload is refused, and what has come of it is dropped.
        """
        try:
            return self._take(data)
        except BadInput:
            self.drop()
            raise

    def drop(self) -> None:
        """Let go of what has come of an upload that is under way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reservation is not None:
            self._reservation.release()
        self._timer = self._buffer = self._reservation = None

    def _take(self, data: Mapping[str, Any]) -> Received | None:
        number, total, content = data.get("chunk"), data.get("total_chunks"), data.get("data")
        if not isinstance(content, bytes | memoryview):
            raise BadInput("The upload is damaged: a part of it has no bytes; drop the file again.")
        if len(content) > CHUNK:
            raise BadInput("The upload is damaged: a part of it is too long; drop the file again.")
        if number == 1:
            self._begin(str(data.get("name")), total, len(content))
        elif self._buffer is None or data.get("name") != self._name:
            return None  # of an upload that was refused
        if number != self._next or total != self._total:
            raise BadInput(
                f"Part {str(number)[:20]} of the file came where part {self._next} of "
                f"{self._total} was due; drop the file again."
            )
        assert self._buffer is not None
        if self._buffer.tell() + len(content) > self._limit:
            self._refuse_size(self._buffer.tell() + len(content))
        self._buffer.write(content)
        self._next += 1
        if number == total:
            return self._finish()
        self._watch()
        return None

    def _begin(self, name: str, total: Any, first: int) -> None:
        self.drop()
        if len(name) > LONGEST_NAME:
            raise BadInput(
                f"The file's name has {len(name)} characters; at most {LONGEST_NAME} may be."
            )
        if not isinstance(total, int) or total < 1:
            raise BadInput("The upload is damaged: it has no parts; drop the file again.")
        announced = first if total == 1 else max(first, (total - 1) * CHUNK)
        if announced > self._limit:
            self._refuse_size(announced)
        size = first if total == 1 else min(total * CHUNK, self._limit)
        self._reservation = self._budget.reserve(self._client, size)
        self._buffer, self._name, self._total, self._next = BytesIO(), name, total, 1

    def _refuse_size(self, size: int) -> None:
        raise BadInput(
            f"The file has at least {_mb(size)}; this page takes files of at most "
            f"{_mb(self._limit)}."
        )

    def _finish(self) -> Received:
        assert self._buffer is not None
        assert self._reservation is not None
        buffer, reservation, self._reservation = self._buffer, self._reservation, None
        self.drop()
        reservation.size = buffer.tell()
        return Received(self._name, buffer.getvalue(), reservation)

    def _watch(self) -> None:
        """Drop the upload if no further chunk comes for a while."""
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(RuntimeError):  # no loop, as where a script builds a page
            # In an empty context: that of the page would keep its document as long as the timer.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STALLED, self._stall, context=Context())

    def _stall(self) -> None:
        self.drop()
        self._stalled(
            f"The upload of {self._name!r} stopped for {STALLED:.0f} seconds and was dropped; "
            "drop the file again."
        )


def _with_yours(mine: int) -> str:
    return "With the file that you are uploading already," if mine else "With this file,"


def _mb(size: int) -> str:
    return f"{-(-size // 10**6):,} MB"
