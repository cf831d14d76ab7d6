"""The hub: one history a run in the server, fanned out to every browser session that watches it.

A session holds only a cursor and a `pending` flag (`Watcher`). Five times a second the hub looks
who has something to hear and is not still busy with the last update, and asks that session's
document for a turn. The latest wins: what came meanwhile arrives in one update, nothing queues up
behind a slow browser: it says which updates it has drawn, and is told no more than a few ahead of
that. Sessions are staggered so that a page request never waits behind all of them.
Where more than `MANY` watch, each has a turn once a second, and between turns all are told the
newest points of the curve, written down once for them all (`scant_dashboard.live.broadcast`).
Everything here runs
on the server's event loop.

A page uses it through `hub.watch(doc, show)`, then `watcher.follow(run_id)`; `show` is called on
the document with an `Update`. The watcher ends by itself with its session.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Protocol

import panel as pn
from bokeh.document import Document
from bokeh.protocol.message import Message

from scant.events import Event, Finished, Snapshot, State
from scant.store.trouble import StoreTrouble
from scant_dashboard.live.broadcast import newest
from scant_dashboard.live.run_state import RunState, fresh, load
from scant_dashboard.upstream import direct_message

TICK = 0.2  # seconds between updates of one watcher
MANY = 12  # watchers; above, the curve goes on at full pace, and all else changes less often
TURN = 1.0  # seconds between the turns of one of many watchers
AHEAD = 3  # updates that a browser may not have drawn yet when the next one is sent
LOST = 10.0  # seconds, after which no answer of a browser is waited for
STAGGER = 0.0005  # a pause between two sessions, in which the loop serves others
ELSEWHERE = 1.0  # seconds between looks at what another server trains
FORGET = 60.0  # seconds after which a run that nobody watches is dropped from memory

log = logging.getLogger(__name__)


class Runs(Protocol):
    """What the hub needs of `scant.runs.RunService`."""

    store: Any

    def subscribe(self, callback: Callable[[str, list[Event]], None]) -> Callable[[], None]:
        """Have `callback(run_id, events)` called on the loop for every run's published batches."""

    def owns(self, run: str) -> bool:
        """Whether the run is in this server's care, and its batches are published here."""


@dataclass(frozen=True)
class Update:
    """What a watcher has not been shown yet.

    Attributes:
        run: The whole history; read, do not keep.
        first: Points `run.trace[first:]` are new; 0 means start over.
        snapshot: The latest snapshot if it is new, else None.
        finished: Whether the run's report came with this update.
        number: Of the session's updates.
    """

    run: RunState
    first: int
    snapshot: Snapshot | None
    finished: bool
    number: int = 0


class Watcher:
    """One browser session's cursor in the history of the run it shows."""

    def __init__(self, hub: Hub, doc: Document, show: Callable[[Update], None]) -> None:
        self.hub = hub
        self.run: RunState | None = None
        self.pending = False
        self.up = True  # False until the page can take changes; what is new then waits
        self._doc: Document | None = doc
        self._show = show
        self._telling: asyncio.Task[None] | None = None
        self._number = self._drawn = 0
        self._rewind()

    def follow(self, run: str | None) -> RunState | None:
        """Watch another run from its beginning; None watches nothing.

        Raises:
            NotFound: There is no such run.
        """
        self.run = self.hub.history(run) if run else None
        self._rewind()
        return self.run

    def _rewind(self) -> None:
        self._version, self.sent, self._epoch = -1, 0, -1
        self._snapshot: Snapshot | None = None
        self._state: State | None = None
        self.last = -TURN  # when it last had a turn
        self._reported = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to say that no turn is pending for."""
        if not self.up or self.pending or self.run is None:
            return False
        return self.run.version != self._version

    @property
    def urgent(self) -> bool:
        """Whether more than numbers changed."""
        return self.run is not None and self.run.state is not self._state

    @property
    def behind(self) -> bool:
        """Whether the browser still has updates to draw, and is not silent for long."""
        return self._number - self._drawn >= AHEAD and time.monotonic() - self.last < LOST

    def drew(self, number: int) -> None:
        """The browser has drawn this update, and all before."""
        self._drawn = max(self._drawn, number)

    def _due(self) -> bool:
        """Whether it is time for a turn; at once, where more than numbers change."""
        if self.urgent:
            return True
        few = len(self.hub.watchers) <= MANY
        return not self.behind and (few or time.monotonic() - self.last >= TURN)

    def schedule_update(self) -> bool:
        """Ask the document for a turn, if it is time, with something to say and none pending."""
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
        """Show what is new, now; called on the document, or while its page is being built."""
        self.pending = False
        run = self.run
        if run is None or self._doc is None:
            return
        first = self.sent if self._epoch == run.trace.epoch else 0
        snapshot = run.snapshot if run.snapshot is not self._snapshot else None
        finished = run.report is not None and not self._reported
        self._number += 1
        update = Update(run, first, snapshot, finished, self._number)
        self._version, self.sent, self._epoch = run.version, len(run.trace), run.trace.epoch
        self._reported = run.report is not None
        self._snapshot, self._state, self.last = run.snapshot, run.state, time.monotonic()
        try:
            with pn.io.hold(self._doc):
                self._show(update)
        except Exception:  # one session's broken view must not silence the others
            log.exception("a watcher of run %s could not be updated", run.id)

    def tell(self, message: Message[Any]) -> None:
        """Send the browser a message as it is, unless it is still busy with the last ones."""
        idle = not self.behind and (self._telling is None or self._telling.done())
        if self._doc is not None and idle:
            self._telling = asyncio.get_running_loop().create_task(
                direct_message.send(self._doc, message)
            )

    def expire_if_idle(self) -> None:
        """Let a session end as soon as its browser has gone; one that comes back has a new one."""
        session: Any = getattr(self._doc and self._doc.session_context, "session", None)
        if self.up and session is not None and session.connection_count == 0:
            session.request_expiration()

    def close(self) -> None:
        """Stop watching; called when the session ends."""
        self.hub.leave(self)
        self.run = self._doc = None


class Hub:
    """All histories and watchers of a server."""

    def __init__(self, service: Runs) -> None:
        self.service = service
        self.watchers: set[Watcher] = set()
        self._histories: dict[str, RunState] = {}
        self._unwatched: dict[str, float] = {}
        self._unsubscribe: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Listen to the runs and begin to tick, on the running event loop."""
        self._unsubscribe = self.service.subscribe(self.hear)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._tick()), loop.create_task(self._look())]

    def close(self) -> None:
        """Stop ticking and listening."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()

    def hear(self, run: str, events: Sequence[Event]) -> None:
        """Take a published batch into the history, if anybody has asked for this run."""
        history = self._histories.get(run)
        if history is None:
            return
        history.apply(events)
        if any(isinstance(e, Finished) for e in events):
            try:
                history.record = self.service.store.run(run)
            except StoreTrouble:  # it was there a moment ago; what is known of its end stands
                record = history.record
                history.record = replace(record, state=history.state, reason=history.reason)

    def watch(self, doc: Document, show: Callable[[Update], None]) -> Watcher:
        """A watcher for a session; it leaves when the session is destroyed."""
        watcher = Watcher(self, doc, show)
        self.watchers.add(watcher)
        doc.on_session_destroyed(lambda _: watcher.close())
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self.watchers.discard(watcher)

    def history(self, run: str) -> RunState:
        """The history of a run, read from the store where it is not in memory.

        Raises:
            NotFound: There is no such run.
        """
        history = self._histories.get(run)
        if history is None:
            history = self._histories[run] = load(self.service.store, run)
        self._unwatched.pop(run, None)
        return history

    async def _tick(self) -> None:
        due = time.monotonic()
        while True:
            await self._round()
            self._forget()
            # By the clock and not by the pause, for a busy loop is late; but never in arrears.
            due = max(due + TICK, time.monotonic() + 0.01)
            await asyncio.sleep(due - time.monotonic())

    async def _look(self) -> None:
        """See what other servers on the same database put down of the runs that we show."""
        while True:
            await asyncio.sleep(ELSEWHERE)
            shown = {w.run.id: w.run for w in self.watchers if w.run is not None}
            for run, history in shown.items():
                if history.state.final or self.service.owns(run):
                    continue
                try:
                    result = await asyncio.to_thread(fresh, self.service.store, history)
                except StoreTrouble:
                    continue  # every page says so
                except Exception:
                    log.exception("run %s could not be looked up", run)
                    continue
                if result is not None and not self.service.owns(run):
                    history.catch_up(result)

    def _news(self) -> dict[str, Message[Any]]:
        """The newest points of the curves that are drawn on, by run."""
        first: dict[str, int] = {}
        for watcher in self.watchers:
            run = watcher.run
            if watcher.waiting and run is not None and not run.state.final:
                first[run.id] = min(watcher.sent, first.get(run.id, watcher.sent))
        traces = {run: self._histories[run].trace for run in first}
        return {
            run: newest(trace, first[run])
            for run, trace in traces.items()
            if first[run] < len(trace)
        }

    async def _round(self) -> None:
        turns, news = len(self.watchers), {}
        if turns > MANY:
            news = self._news()
            turns = ceil(turns * TICK / TURN)  # not all in one tick, which would be late then
        # On its own, for a name that lives as long as the server would keep the last one's session.
        for watcher in sorted(self.watchers, key=lambda watcher: watcher.last):
            if watcher.run is not None and watcher.waiting and watcher.run.id in news:
                watcher.tell(news[watcher.run.id])
            if turns > 0 or watcher.urgent:
                turns -= watcher.schedule_update()
            watcher.expire_if_idle()
            await asyncio.sleep(STAGGER)

    def _forget(self) -> None:
        now = time.monotonic()
        watched = {w.run.id for w in self.watchers if w.run is not None}
        for run in list(self._histories):
            if run in watched:
                self._unwatched.pop(run, None)
            elif now - self._unwatched.setdefault(run, now) > FORGET:
                del self._histories[run], self._unwatched[run]
