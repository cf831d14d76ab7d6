"""The services that all pages of one server share, from start to shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from scant.errors import BadInput
from scant_dashboard.auth.sessions import LoginSessions
from scant_dashboard.limits.carried import CarriedFiles
from scant_dashboard.limits.page_handler import PageLimits
from scant_dashboard.limits.uploads import UploadBudget
from scant_dashboard.live.hub import Hub
from scant_dashboard.room.room import Rooms
from scant_dashboard.server.apart import Replays
from scant_dashboard.server.fetches import Fetches

CLOSING = 8.0  # seconds at most that a closing server waits for checkpoints and workers

log = logging.getLogger(__name__)


class Background(Protocol):
    """Work that begins and ends with the server."""

    def start(self) -> None:
        """Begin, on the running event loop."""

    def close(self) -> None:
        """End it."""


@dataclass
class Site:
    """What the pages of one server share.

    Attributes:
        service: The `scant.runs.RunService`.
        data_dir: Where uploads, runs and the cookie secret lie.
        key: What signs cookies.
        hub: Fans the runs' events out to the pages.
        fetches: Downloads of data sets that visitors have asked for.
        replays: Runs as one file each, for who keeps them.
        limits: Page requests in their turns, and the sessions that live.
        uploads: What uploads may take of the server's memory.
        carried: Files on their way from one page to another.
        rooms: Lessons whose presenters ask the room.
        fault: Why the run service did not come up; `""` while all is well.
        logins: Who is logged in; None where the server does not ask for a login.
        background: What is started and closed with the server: the makers of pages without
            sessions.
    """

    service: Any
    data_dir: Path
    key: str
    hub: Hub = field(init=False)
    fetches: Fetches = field(init=False)
    replays: Replays = field(init=False)
    limits: PageLimits = field(default_factory=PageLimits)
    uploads: UploadBudget = field(default_factory=UploadBudget)
    carried: CarriedFiles = field(default_factory=CarriedFiles)
    rooms: Rooms = field(default_factory=Rooms)
    fault: str = ""
    logins: LoginSessions | None = None
    background: Sequence[Background] = ()

    def __post_init__(self) -> None:
        self.hub = Hub(self.service)
        self.fetches = Fetches(self.data_dir)
        self.replays = Replays(self.service)

    async def open(self) -> None:
        """Start the run service and the hub, on the running event loop.

        Raises:
            BadInput: Nothing answers at the scheduler's address, or its workers cannot be used.
        """
        self.hub.start()
        self.rooms.start()
        for work in self.background:
            work.start()
        try:
            await self.service.start()
        except BadInput:
            raise  # whoever gave the address is there to hear it
        except Exception as error:
            log.exception("the run service did not start")
            self.fault = f"Runs cannot start on this server: {error}"

    async def close(self) -> None:
        """Let running runs write their checkpoints, then let go of everything."""
        self.hub.close()
        self.rooms.stop()
        for work in self.background:
            work.close()
        if self.logins is not None:
            self.logins.close()
        try:
            await asyncio.wait_for(self.service.close(), CLOSING)
        except Exception:
            log.warning("the run service did not close in time", exc_info=True)
