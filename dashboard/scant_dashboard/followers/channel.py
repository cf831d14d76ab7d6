"""State of a followed page on the server, and the updates sent to its followers."""

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

from scant_dashboard.followers.wanted import PageKey
from scant_dashboard.static_page.frames import STYLES, Frame, topmost
from scant_dashboard.static_page.page import ACCOUNT, CLASSES
from scant_dashboard.template import log_out

# Each update is compressed once for all followers. Pieces are compressed separately and not
# terminated, so any sequence of them after this header is one valid gzip stream.
GZIP_BEGINS = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])
PAGE_SECONDS = 1.0  # for which a rendered page is reused; the stream brings later changes


class Channel:
    """A page of a run, rendered once for all who follow it.

    Attributes:
        key: Identifies the page.
        ready: Resolves after the first rendering, to whether it succeeded.
        over: True if no further updates will come.
        lost: True if the page ended without its run: the run was deleted or the renderer died.
        stamp: State and last heartbeat of the run at the latest rendering.
        streams: Open event streams of the page.
        used: Monotonic time at which the page was last requested or left.
    """

    def __init__(self, key: PageKey) -> None:
        self.key = key
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.over = self.lost = False
        self.stamp: list[Any] = []
        self.streams: set[Any] = set()
        self.used = time.monotonic()
        self._name, self._turn = secrets.token_hex(4), 0
        self._frame = Frame("", {})
        self._changed: dict[str, int] = {}  # turn of each part's last change
        self._text = self._title = ""
        self._news = asyncio.Event()
        self._made: tuple[float, int, str] = (0.0, -1, "")
        self._packed: dict[Any, bytes] = {}  # compressed responses of this turn or page

    @property
    def turn(self) -> str:
        """Name of the current state of the page, unique across server restarts."""
        return f"{self._name}-{self._turn}"

    def take(self, message: Mapping[str, Any]) -> None:
        """Apply an update from the drawing process (`draw`)."""
        if message.get("gone"):
            self.end()
            return
        self._turn += 1
        root, new = message["root"], message["shells"]
        shells = {**self._frame.shells, **new}
        frame = Frame(root, shells)
        parts = {STYLES, *frame.within(root)}
        self._frame = Frame(root, {k: shells[k] for k in parts})
        self._changed = {k: self._turn if k in new else self._changed[k] for k in parts}
        self._text = message.get("page", self._text)
        self._title, self.stamp = message["title"], message["stamp"]
        self.over = message["final"]
        self._packed = {k: v for k, v in self._packed.items() if isinstance(k, bool)}
        if not self.ready.done():
            self.ready.set_result(True)
        self._wake()

    def end(self) -> None:
        """Mark the page as ended: the run was deleted, or the drawing process died."""
        self.over = self.lost = True
        if not self.ready.done():
            self.ready.set_result(False)
        self._wake()

    def page(self, dark: bool, user: str = "") -> str:
        """Return the page's HTML, at most `PAGE_SECONDS` old, in one theme and for one user."""
        now = time.monotonic()
        made, turn, text = self._made
        if turn != self._turn and now - made >= PAGE_SECONDS:
            text = self._text.replace("{{styles}}", self._frame.html(STYLES), 1)
            text = text.replace("{{main}}", self._frame.html(self._frame.root), 1)
            source = f"data-from='{escape(self.key.address())}' data-at='{self.turn}'"
            script = (
                f"<script src='./assets/follow.js' {'' if self.over else source} defer></script>"
            )
            text = text.replace("</body>", f"{script}</body>")
            self._made, self._packed = (now, self._turn, text), {}
        return text.replace(CLASSES, "dark" * dark, 1).replace(ACCOUNT, log_out(user), 1)

    def packed_page(self, dark: bool) -> bytes:
        """Return the page for a visitor without an account, compressed by gzip."""
        text = self.page(dark)
        return self._cached(dark, lambda: gzip.compress(text.encode(), 6, mtime=0))

    def since(self, turn: str, packed: bool) -> bytes:
        """Return one event with the parts that changed since `turn`, or all parts if it is unknown.

        Args:
            turn: Name of the state that the browser shows (`Channel.turn`).
            packed: Whether the stream is compressed.
        """
        name, _, number = turn.partition("-")
        valid = name == self._name and number.isdecimal()
        since_turn = int(number) if valid else -1
        event = self._cached((since_turn, False), lambda: self._parts_event(since_turn).encode())
        return self._cached((since_turn, True), lambda: piece(event)) if packed else event

    async def newer(self, turn: str, patience: float) -> bool:
        """Wait up to `patience` seconds for a state newer than `turn`; return whether it came."""
        if turn != self.turn or self.over:
            return True
        try:
            await asyncio.wait_for(self._news.wait(), patience)
        except TimeoutError:
            return False
        return True

    def _parts_event(self, since_turn: int) -> str:
        """Return the changed parts as an event that maps CSS selectors to their new HTML."""
        frame = self._frame
        if since_turn < 0:
            parts = {"style[data-part]": frame.html(STYLES), "main > *": frame.html(frame.root)}
        else:
            new = topmost((k for k, turn in self._changed.items() if turn > since_turn), frame)
            parts = {_selector(key): frame.html(key) for key in new}
        return event("parts", json.dumps({"title": self._title, "parts": parts}), self.turn)

    def _cached(self, key: Any, make: Callable[[], bytes]) -> bytes:
        if key not in self._packed:
            self._packed[key] = make()
        return self._packed[key]

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def event(kind: str, data: str, name: str = "") -> str:
    """Format a server-sent event; `data` must be a single line."""
    return (f"id: {name}\n" if name else "") + f"event: {kind}\ndata: {data}\n\n"


def piece(data: bytes) -> bytes:
    """Compress `data` as a piece of a gzip stream that any other piece may precede."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def _selector(key: str) -> str:
    return "style[data-part]" if key == STYLES else f"main [data-part='{key}']"
