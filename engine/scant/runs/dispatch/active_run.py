"""A live run, as the run service holds it in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from scant.events import Queued, State
from scant.runs.backlog import Backlog
from scant.store import RunRecord


@dataclass
class ActiveRun:
    """A run that waits for a worker or is on one."""

    id: str
    owner: str
    study: str
    data: str
    settings: dict[str, Any]
    state: State = State.QUEUED
    attempt: int = 0
    losses: int = 0
    wish: str | None = None
    assigned: bool = False  # between leaving the queue and the attempt's end
    started: bool = False  # training has begun in this attempt
    worker: str | None = None  # known from the attempt's first message
    wished: float = 0.0  # when the worker was last told the wish, by the monotonic clock
    heard: float = 0.0  # when the worker was last heard, by the monotonic clock
    cpu: float = 0.0  # seconds of processor time that its local worker had used at the last look
    computed: float = 0.0  # when that last rose, by the monotonic clock
    since: float = field(default_factory=time.monotonic)  # when the attempt began
    steps: int = 0  # of its training at most; 0 before it has begun
    ends: float | None = None  # by the monotonic clock, at the pace of its steps so far
    announced: Queued | None = None  # place and wait as watchers know them
    address: str = ""  # the code of where it was submitted from
    resident: int = 0  # bytes that its worker held when it was last heard
    memory: int = 0  # bytes that its worker may hold; 0 for no limit
    heeded: bool = False  # the training loop has taken the wish
    over: bool = False  # how the attempt ended is known, and waits to be put down
    loss: str = ""  # why the attempt's worker is lost, where this is how it ended
    backlog: Backlog = field(default_factory=Backlog)  # said in this attempt, not yet put down
    draining: bool = False  # the backlog is being put down

    @classmethod
    def of(cls, record: RunRecord) -> ActiveRun:
        """A live run from its row in the store."""
        return cls(
            record.id,
            record.owner,
            record.study,
            record.data,
            dict(record.settings),
            attempt=record.attempt,
            losses=record.losses,
        )
