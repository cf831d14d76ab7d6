"""State of a live run in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from scant.events import Queued, State
from scant.runs.backlog import Backlog
from scant.store import RunRecord


@dataclass
class ActiveRun:
    """Run that is queued or on a worker; times are by the monotonic clock in seconds."""

    id: str
    owner: str
    study: str
    data: str
    settings: dict[str, Any]
    state: State = State.QUEUED
    attempt: int = 0
    losses: int = 0
    wish: str | None = None
    assigned: bool = False  # from leaving the queue to the end of the attempt
    started: bool = False  # training has begun in this attempt
    worker: str | None = None  # address, from the first message of the attempt
    wished: float = 0.0  # time of the last request to the worker
    heard: float = 0.0  # time of the last message of the worker
    cpu: float = 0.0  # CPU time of a local worker at the last check
    computed: float = 0.0  # time of the last increase of `cpu`
    since: float = field(default_factory=time.monotonic)  # start of the attempt
    steps: int = 0  # maximum number of training steps; 0 before the start
    ends: float | None = None  # expected end of training
    announced: Queued | None = None  # last published queue position and wait
    address: str = ""  # code of the network address
    resident: int = 0  # memory use of the worker in bytes
    memory: int = 0  # memory limit of the worker in bytes; 0 for no limit
    heeded: bool = False  # the training loop has received the request
    over: bool = False  # the attempt has ended, possibly not stored yet
    loss: str = ""  # reason for the loss of the worker
    backlog: Backlog = field(
        default_factory=Backlog
    )  # events of this attempt that are not stored yet
    draining: bool = False  # the backlog is being stored

    @classmethod
    def of(cls, record: RunRecord) -> ActiveRun:
        """Create a live run from its record."""
        return cls(
            record.id,
            record.owner,
            record.study,
            record.data,
            dict(record.settings),
            attempt=record.attempt,
            losses=record.losses,
        )
