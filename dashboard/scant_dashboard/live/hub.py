"""The hub: one history per run and server, distributed to every browser session that watches it.

A session has only a cursor and a `pending` flag (`Watcher`). Five to ten times a second the hub
selects the sessions with changes that are not busy with their last update, and schedules a callback
on their documents. Changes in between are merged into one update, so nothing queues up behind a
slow browser: it acknowledges the updates that it has drawn, and is sent only a few beyond them.
Sessions are staggered so that a page request never waits behind all of them.
With more than `CROWD` watchers, each is updated once a second, and in between all receive the
newest points of the curve, encoded once for all of them (`scant_dashboard.live.broadcast`).
Everything here runs on the server's event loop.

A page calls `hub.watch(doc, show)`, then `watcher.follow(run_id)`; `show` is called on the
document with an `Update`. The watcher ends with its session.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Protocol

import panel as pn
from bokeh.document import Document
from bokeh.protocol.message import Message

from scant.events import OPENING, Event, Finished, Report, Snapshot, State
from scant.store.trouble import StoreTrouble
from scant_dashboard.live.broadcast import newest
from scant_dashboard.live.run_state import DONE, RunState, fresh, load
from scant_dashboard.upstream import direct_message

TICK = 0.1  # minimum seconds between updates of one watcher
UPDATES = 60  # a second of all watchers; each takes the server some ten milliseconds
CROWD = 12  # watchers; above, only the curve is updated at full rate
TURN = 1.0  # seconds between updates of one of many watchers
AHEAD = 3  # maximum number of updates that a browser has not drawn
ACK_TIMEOUT = 10.0  # seconds to wait for a browser's acknowledgment
STAGGER = 0.0005  # seconds between two sessions, for other tasks of the loop
ELSEWHERE = 1.0  # seconds between checks of runs on other servers
OPENING_SECONDS = 5.0  # for which the beginning of a run is shown, frame by frame
FRAME = 0.2  # seconds between these frames: a run of two seconds can be followed, too
FORGET = 60.0  # seconds after which an unwatched run is dropped from memory

log = logging.getLogger(__name__)


class Runs(Protocol):
    """The part of `scant.runs.RunService` that the hub uses."""

    store: Any

    def subscribe(self, callback: Callable[[str, list[Event]], None]) -> Callable[[], None]:
        """Call `callback(run_id, events)` on the loop for every published batch of any run."""

    def owns(self, run: str) -> bool:
        """Whether this server executes the run, so that its batches are published here."""


@dataclass(frozen=True)
class Update:
    """Changes that a watcher has not shown yet.

    Attributes:
        run: The run's state; do not modify or store it.
        first: Points `run.trace[first:]` are new; 0 means start over.
        snapshot: The latest snapshot if it is new, otherwise None.
        results: The run's results if they are new and its report is not there yet, otherwise None.
        finished: Whether the run's report came with this update.
        number: Number of the update within the session.
    """

    run: RunState
    first: int
    snapshot: Snapshot | None
    finished: bool
    number: int = 0
    results: Report | None = None


class Watcher:
    """One browser session's cursor in the history of its run."""

    def __init__(self, hub: Hub, doc: Document, show: Callable[[Update], None]) -> None:
        self.hub = hub
        self.run: RunState | None = None
        self.pending = False
        self.up = True  # False until the page can be updated
        self._doc: Document | None = doc
        self._show = show
        self._sending: asyncio.Task[None] | None = None
        self._number = self._acknowledged = 0
        self._rewind()

    def follow(self, run: str | None, opening: bool = False) -> RunState | None:
        """Watch another run; None watches nothing.

        Args:
            run: Id of the run.
            opening: Whether to show how it began first: its prior and what followed, one snapshot
                an update, as training may be at its hundredth step once the page is drawn.

        Raises:
            NotFound: There is no such run.
        """
        self.run = self.hub.history(run) if run else None
        self._rewind()
        self._opening = opening
        return self.run

    def _rewind(self) -> None:
        self._opening, self._frames = False, 0  # whether the beginning is shown, and its frames
        self._opened = math.inf  # time of its first frame
        self._version, self.sent, self._epoch = -1, 0, -1
        self._snapshot: Snapshot | None = None
        self._results: Report | None = None
        self._state: State | None = None
        self.last = -TURN  # time of the last update
        self._reported = False

    @property
    def waiting(self) -> bool:
        """Whether there are changes without a pending update."""
        if not self.up or self.pending or self.run is None:
            return False
        return self.run.version != self._version

    @property
    def urgent(self) -> bool:
        """Whether the run's state changed, not only numbers."""
        if self.run is None or (self.opening and self.run.state in DONE):
            return False
        return self.run.state is not self._state

    @property
    def opening(self) -> bool:
        """Whether the beginning of the run is being shown, and not its present state."""
        run = self.run
        if not self._opening or run is None:
            return False
        expired = time.monotonic() - self._opened > OPENING_SECONDS
        complete = run.snapshot is not None and run.snapshot.step > OPENING[-1]
        exhausted = self._frames >= len(run.opening) and (complete or run.state.still)
        if expired or exhausted or (run.state.still and run.state not in DONE):
            self._opening = False
        return self._opening

    def _visible(self, run: RunState) -> RunState:
        """Return the run as it is shown next."""
        if not self.opening or self._frames >= len(run.opening):
            return run
        past = run.as_of(run.opening[self._frames])
        if self.up:  # otherwise the first frame is part of the page that is being built
            self._frames += 1
            if self._acknowledged:  # the page is in sight
                self._opened = min(self._opened, time.monotonic())
        return past

    @property
    def behind(self) -> bool:
        """Whether the browser has too many updates to draw, and acknowledged one recently."""
        return (
            self._number - self._acknowledged >= AHEAD
            and time.monotonic() - self.last < ACK_TIMEOUT
        )

    def acknowledge(self, number: int) -> None:
        """Record that the browser has drawn this update and all earlier ones."""
        self._acknowledged = max(self._acknowledged, number)

    def _due(self) -> bool:
        """Whether it is time for an update; changes of state are immediate."""
        if self.urgent:
            return True
        turn = TURN if len(self.hub.watchers) > CROWD else FRAME if self.opening else 0.0
        rested = time.monotonic() - self.last + TICK / 2  # as ticks are late by some of it
        return not self.behind and rested >= turn

    def schedule_update(self) -> bool:
        """Schedule an update on the document if it is due, with changes and none pending."""
        if not self.waiting or not self._due():
            return False
        self.pending = True
        try:
            assert self._doc is not None
            self._doc.add_next_tick_callback(self.flush)
        except (AttributeError, AssertionError):  # the session was destroyed a moment ago
            self.close()
        return True

    def flush(self) -> None:
        """Show all changes now; called on the document, or while its page is being built."""
        self.pending = False
        if self.run is None or self._doc is None:
            return
        run = self._visible(self.run)
        first = self.sent if self._epoch == run.trace.epoch else 0
        snapshot = run.snapshot if run.snapshot is not self._snapshot else None
        finished = run.report is not None and not self._reported
        early = run.report is None and run.results is not self._results
        self._number += 1
        results = run.results if early else None
        update = Update(run, first, snapshot, finished, self._number, results)
        self._version = run.version if run is self.run else -1
        self.sent, self._epoch = len(run.trace), run.trace.epoch
        self._reported, self._results = run.report is not None, run.results
        self._snapshot, self._state, self.last = run.snapshot, run.state, time.monotonic()
        try:
            with pn.io.hold(self._doc):
                self._show(update)
        except Exception:  # one session's broken view must not affect the others
            log.exception("a watcher of run %s could not be updated", run.id)

    def send_message(self, message: Message[Any]) -> None:
        """Send the browser a message directly, unless it is busy with earlier ones."""
        idle = not self.behind and (self._sending is None or self._sending.done())
        if self._doc is not None and idle:
            self._sending = asyncio.get_running_loop().create_task(
                direct_message.send(self._doc, message)
            )

    def expire_if_idle(self) -> None:
        """End a session once its browser has disconnected; a returning browser gets a new one."""
        session: Any = getattr(self._doc and self._doc.session_context, "session", None)
        if self.up and session is not None and session.connection_count == 0:
            session.request_expiration()

    def close(self) -> None:
        """Stop watching; called when the session ends."""
        self.hub.leave(self)
        self.run = self._doc = None


class Hub:
    """All run states and watchers of a server."""

    def __init__(self, service: Runs) -> None:
        self.service = service
        self.watchers: set[Watcher] = set()
        self._histories: dict[str, RunState] = {}
        self._unwatched: dict[str, float] = {}
        self._unsubscribe: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Subscribe to the runs and start updating, on the running event loop."""
        self._unsubscribe = self.service.subscribe(self.on_events)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._tick()), loop.create_task(self._poll_store())]

    def close(self) -> None:
        """Stop updating and unsubscribe."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()

    def on_events(self, run: str, events: Sequence[Event]) -> None:
        """Apply a published batch to the run's state, if it is in memory."""
        history = self._histories.get(run)
        if history is None:
            return
        history.apply(events)
        if any(isinstance(e, Finished) for e in events):
            try:
                history.record = self.service.store.run(run)
            except StoreTrouble:  # keep the state from the events
                record = history.record
                history.record = replace(record, state=history.state, reason=history.reason)

    def watch(self, doc: Document, show: Callable[[Update], None]) -> Watcher:
        """Create a watcher for a session; it is removed when the session is destroyed."""
        watcher = Watcher(self, doc, show)
        self.watchers.add(watcher)
        doc.on_session_destroyed(lambda _: watcher.close())
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Remove a watcher."""
        self.watchers.discard(watcher)

    def history(self, run: str) -> RunState:
        """Return the state of a run, read from the store if it is not in memory.

        Raises:
            NotFound: There is no such run.
        """
        history = self._histories.get(run)
        if history is None:
            history = self._histories[run] = load(self.service.store, run)
        self._unwatched.pop(run, None)
        return history

    @property
    def tick(self) -> float:
        """Seconds between two rounds: longer with more watchers, up to a crowd."""
        return max(TICK, min(len(self.watchers), CROWD) / UPDATES)

    async def _tick(self) -> None:
        due = time.monotonic()
        while True:
            await self._round()
            self._evict()
            # Scheduled by the clock, because a busy loop is late; delays do not accumulate.
            due = max(due + self.tick, time.monotonic() + 0.01)
            await asyncio.sleep(due - time.monotonic())

    async def _poll_store(self) -> None:
        """Read the progress of watched runs that other servers execute."""
        while True:
            await asyncio.sleep(ELSEWHERE)
            watched = {w.run.id: w.run for w in self.watchers if w.run is not None}
            for run, history in watched.items():
                if history.state.final or self.service.owns(run):
                    continue
                try:
                    result = await asyncio.to_thread(fresh, self.service.store, history)
                except StoreTrouble:
                    continue  # every page shows a banner
                except Exception:
                    log.exception("run %s could not be looked up", run)
                    continue
                if result is not None and not self.service.owns(run):
                    history.catch_up(result)

    def _newest_points(self) -> dict[str, Message[Any]]:
        """Return the newest points of each curve with changes, by run."""
        first: dict[str, int] = {}
        for watcher in self.watchers:
            run = watcher.run
            current = watcher.waiting and not watcher.opening
            if current and run is not None and not run.state.final:
                first[run.id] = min(watcher.sent, first.get(run.id, watcher.sent))
        traces = {run: self._histories[run].trace for run in first}
        return {
            run: newest(trace, first[run])
            for run, trace in traces.items()
            if first[run] < len(trace)
        }

    async def _round(self) -> None:
        turns, news = len(self.watchers), {}
        if turns > CROWD:
            news = self._newest_points()
            turns = ceil(turns * self.tick / TURN)  # spread over the ticks
        # In a separate scope, so that no variable keeps a reference to the last session.
        for watcher in sorted(self.watchers, key=lambda watcher: watcher.last):
            current = watcher.waiting and not watcher.opening
            if watcher.run is not None and current and watcher.run.id in news:
                watcher.send_message(news[watcher.run.id])
            if turns > 0 or watcher.urgent:
                turns -= watcher.schedule_update()
            watcher.expire_if_idle()
            await asyncio.sleep(STAGGER)

    def _evict(self) -> None:
        now = time.monotonic()
        watched = {w.run.id for w in self.watchers if w.run is not None}
        for run in list(self._histories):
            if run in watched:
                self._unwatched.pop(run, None)
            elif now - self._unwatched.setdefault(run, now) > FORGET:
                del self._histories[run], self._unwatched[run]
