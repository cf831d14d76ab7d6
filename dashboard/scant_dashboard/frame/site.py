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

CLOSING = 8.0  # maximum seconds that a closing server waits for checkpoints and workers

log = logging.getLogger(__name__)


class Background(Protocol):
    """Background work with the server's lifetime."""

    def start(self) -> None:
        """Start, on the running event loop."""

    def close(self) -> None:
        """Stop."""


@dataclass
class Site:
    """Services shared by the pages of one server.

    Attributes:
        service: The `scant.runs.RunService`.
        data_dir: Folder of uploads, runs and the cookie secret.
        key: Key that signs cookies.
        hub: Distributes the runs' events to the pages.
        fetches: Downloads of data sets requested by visitors.
        replays: Makes runs into single files.
        limits: Limits on page requests and live sessions.
        uploads: Memory budget of uploads.
        carried: Files in transit from one page to another.
        rooms: Rooms of lessons.
        fault: Reason why the run service did not start; "" if it did.
        logins: Login sessions; None if the server requires no login.
        background: Services started and closed with the server: the makers of static pages.
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
            BadInput: No scheduler answers at the given address, or its workers cannot be used.
        """
        self.hub.start()
        self.rooms.start()
        for work in self.background:
            work.start()
        try:
            await self.service.start()
        except BadInput:
            raise  # the operator, who gave the address, gets the message
        except Exception as error:
            log.exception("the run service did not start")
            self.fault = f"Runs cannot start on this server: {error}"

    async def close(self) -> None:
        """Let active runs write their checkpoints, then stop all services."""
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
