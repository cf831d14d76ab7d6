"""Limits on the memory of uploads, from their first chunk on.

A browser announces the number of a file's chunks. Both announced and received bytes are checked:
against the size limit of a file, and against the limits per visitor, address and server. A refused
file is discarded immediately, and its further chunks are ignored.
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

CHUNK = 2_000_000  # bytes per chunk
PER_VISITOR = 200_000_000  # bytes; equal to the largest file that a page accepts
PER_ADDRESS = 300_000_000
OVERALL = 600_000_000
STALLED = 60.0  # seconds without a chunk after which an upload is dropped
LONGEST_NAME = 255  # characters of a file's name


class Reservation:
    """Memory reserved for a client's upload, until released or garbage-collected."""

    def __init__(self, budget: UploadBudget, client: Client, size: int) -> None:
        self.client, self.size = client, size
        self._budget = budget

    def release(self) -> None:
        """Release the memory; idempotent."""
        self.size = 0
        self._budget._reservations.discard(self)


class UploadBudget:
    """Memory of a server's uploads.

    Args:
        per_visitor: Maximum bytes of one visitor's uploads.
        per_address: Maximum bytes per network address.
        overall: Maximum bytes in total.
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
        """Currently reserved bytes."""
        return sum(each.size for each in self._reservations)

    def reserve(self, client: Client, size: int) -> Reservation:
        """Reserve memory for an upload.

        Raises:
            BadInput: A limit would be exceeded.
        """
        per_visitor, per_address, overall = self._bounds
        live = list(self._reservations)
        by_visitor = sum(r.size for r in live if r.client == client) if client.visitor else 0
        by_address = sum(r.size for r in live if r.client.address == client.address)
        if by_visitor + size > per_visitor:
            raise BadInput(
                f"{_with_yours(by_visitor)} your uploads would take {_mb(by_visitor + size)} of "
                f"this server's memory at once; at most {_mb(per_visitor)} may. Finish or close "
                "the other upload first."
            )
        if by_address + size > per_address:
            raise BadInput(
                f"Uploads from your network take {_mb(by_address)} of this server's memory, and "
                f"this one would need up to {_mb(size)}; at most {_mb(per_address)} may come at "
                "once. Try again in a minute."
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
    """A complete file, with the reservation of its memory."""

    name: str
    content: bytes = field(repr=False)
    reservation: Reservation


class UploadReceiver:
    """Assembles the chunks of one file at a time. For the event loop.

    Args:
        budget: The server's budget.
        client: The uploading client.
        limit: Maximum bytes of a file.
        stalled: Called with a message when an upload was dropped because it stalled.
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
        """Whether an upload is in progress."""
        return self._buffer is not None

    def take(self, data: Mapping[str, Any]) -> Received | None:
        """Add a chunk from Panel's file dropper; return the file once it is complete.

        Chunks of refused or dropped uploads are ignored.

        Raises:
            BadInput: The upload is refused and discarded.
        """
        try:
            return self._take(data)
        except BadInput:
            self.drop()
            raise

    def drop(self) -> None:
        """Discard the upload in progress."""
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
            return None  # of a refused upload
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
        """Drop the upload if no further chunk arrives in time."""
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(RuntimeError):  # no loop, e.g. when a script builds a page
            # In an empty context, because the page's would keep a reference to its document.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STALLED, self._stall, context=Context())

    def _stall(self) -> None:
        self.drop()
        self._stalled(
            f"The upload of {self._name!r} stopped for {STALLED:.0f} seconds and was dropped; "
            "drop the file again."
        )


def _with_yours(others: int) -> str:
    return "With the file that you are uploading already," if others else "With this file,"


def _mb(size: int) -> str:
    return f"{-(-size // 10**6):,} MB"
