"""A followed page as the server keeps it, and what is told of it to who has seen it before."""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import time
import zlib
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from scant_dashboard.followers.wanted import Wanted
from scant_dashboard.static_page.frames import STYLES, Frame, topmost
from scant_dashboard.static_page.page import ACCOUNT, CLASSES
from scant_dashboard.static_page.published import Look
from scant_dashboard.template import log_out

# What is told is packed once for all. Its pieces, each packed by itself and without an end, are
# one stream after this header, in whichever order a follower gets them.
GZIP_BEGINS = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])
PAGE_SECONDS = 1.0  # that a page is sent as it was; its stream tells the rest


class Channel:
    """A page of a run that is drawn for all who follow it.

    Attributes:
        wanted: Which page it is.
        ready: Done with the first drawing; its result is whether there is one.
        over: Whether nothing more will come.
        lost: Whether that is because nobody draws it any more; otherwise the run is over.
        stamp: The run's state and last sign of life, as they were drawn last.
        streams: Who hears what is new.
        used: When somebody last had the page or left it, by the monotonic clock.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.over = self.lost = False
        self.stamp: list[Any] = []
        self.streams: set[Any] = set()
        self.used = time.monotonic()
        self._name, self._turn = secrets.token_hex(4), 0
        self._frame = Frame("", {})
        self._changed: dict[str, int] = {}  # of each part, the turn in which it last did
        self._text = self._title = ""
        self._news = asyncio.Event()
        self._made: tuple[float, int, str] = (0.0, -1, "")
        self._packed: dict[Any, bytes] = {}  # of this turn, or of the page that is sent

    @property
    def turn(self) -> str:
        """Names what there is to see now."""
        return f"{self._name}-{self._turn}"

    def take(self, message: Mapping[str, Any]) -> None:
        """Take in what the drawing process says of the page (`draw`)."""
        if message.get("gone"):
            self.end()
            return
        self._turn += 1
        root, new = message["root"], message["shells"]
        shells = {**self._frame.shells, **new}
        frame = Frame(root, shells)
        kept = {STYLES, *frame.within(root)}
        self._frame = Frame(root, {k: shells[k] for k in kept})
        self._changed = {k: self._turn if k in new else self._changed[k] for k in kept}
        self._text = message.get("page", self._text)
        self._title, self.stamp = message["title"], message["stamp"]
        self.over = message["final"]
        self._packed = {k: v for k, v in self._packed.items() if isinstance(k, Look)}
        if not self.ready.done():
            self.ready.set_result(True)
        self._wake()

    def end(self) -> None:
        """Nothing more will come: the run was deleted, or nobody draws."""
        self.over = self.lost = True
        if not self.ready.done():
            self.ready.set_result(False)
        self._wake()

    def page(self, look: Look, user: str = "") -> str:
        """The page as it stands now, or did a moment ago."""
        now = time.monotonic()
        made, turn, text = self._made
        if turn != self._turn and now - made >= PAGE_SECONDS:
            text = self._text.replace("{{styles}}", self._frame.html(STYLES), 1)
            text = text.replace("{{main}}", self._frame.html(self._frame.root), 1)
            told = f"data-from='{escape(self.wanted.address())}' data-at='{self.turn}'"
            script = f"<script src='./assets/follow.js' {'' if self.over else told} defer></script>"
            text = text.replace("</body>", f"{script}</body>")
            self._made, self._packed = (now, self._turn, text), {}
        return text.replace(CLASSES, look.classes(), 1).replace(ACCOUNT, log_out(user), 1)

    def packed_page(self, look: Look) -> bytes:
        """The same for whom nobody knows by name, compressed by gzip."""
        text = self.page(look)
        return self._once(look, lambda: gzip.compress(text.encode(), 6, mtime=0))

    def since(self, turn: str, packed: bool) -> bytes:
        """What has changed since a turn, as one event; of a turn of no such name, all."""
        name, _, number = turn.partition("-")
        known = name == self._name and number.isdecimal()
        seen = int(number) if known else -1
        event = self._once((seen, False), lambda: self._told(seen).encode())
        return self._once((seen, True), lambda: piece(event)) if packed else event

    async def newer(self, turn: str, patience: float) -> bool:
        """Wait until there is something to see that was not in this turn; False: there was not."""
        if turn != self.turn or self.over:
            return True
        try:
            await asyncio.wait_for(self._news.wait(), patience)
        except TimeoutError:
            return False
        return True

    def _told(self, seen: int) -> str:
        """`places` of elements, as CSS selects them, and what is to stand there."""
        frame = self._frame
        if seen < 0:
            parts = {"style[data-part]": frame.html(STYLES), "main > *": frame.html(frame.root)}
        else:
            new = topmost((k for k, turn in self._changed.items() if turn > seen), frame)
            parts = {_place(key): frame.html(key) for key in new}
        return event("parts", json.dumps({"title": self._title, "parts": parts}), self.turn)

    def _once(self, key: Any, make: Callable[[], bytes]) -> bytes:
        if key not in self._packed:
            self._packed[key] = make()
        return self._packed[key]

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def event(kind: str, data: str, name: str = "") -> str:
    """A server-sent event, whose data is one line."""
    return (f"id: {name}\n" if name else "") + f"event: {kind}\ndata: {data}\n\n"


def piece(data: bytes) -> bytes:
    """A piece of a packed stream, after whichever others."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def _place(key: str) -> str:
    return "style[data-part]" if key == STYLES else f"main [data-part='{key}']"
