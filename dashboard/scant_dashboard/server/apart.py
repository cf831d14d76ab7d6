"""Work in a process of its own, beside a server that goes on answering."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import Any

from scant.errors import BadInput, Unavailable
from scant.store import Store

NICE = 10  # so that runs and visitors go first
WAITING = 8  # visitors at most who wait for a file
REFUSED = 2  # the status of a process that says in a sentence why it did nothing

log = logging.getLogger(__name__)


async def begun(module: str, *arguments: str, **given: Any) -> asyncio.subprocess.Process:
    """`python -m module`, begun behind runs and visitors; for its input and output there are pipes.

    The store's address goes by the input: it may hold a password, which a command line would show.

    Args:
        module: Its name.
        arguments: Of its command line.
        given: Further ones of `asyncio.create_subprocess_exec`.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        **given,
    )
    # Not by `preexec_fn`: the server stands still until the new program is there, for which the
    # copy of the server, nice already, would wait behind everybody else.
    with suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    return process


async def apart(module: str, database: str, *arguments: str) -> bytes:
    """What `python -m module` prints; it is told the store's address by standard input.

    Raises:
        BadInput: It ended with status 2; the last line that it said.
        RuntimeError: It failed.
    """
    process = await begun(module, *arguments, stderr=asyncio.subprocess.PIPE)
    try:
        made, said = await process.communicate(database.encode())
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    words = said.decode(errors="replace").strip()
    if process.returncode == REFUSED:
        raise BadInput(words.splitlines()[-1])
    if process.returncode:
        raise RuntimeError(words[-2000:])
    return made


def database(store: Store) -> str:
    """The address of a store, with its password."""
    return str(store.engine.url.render_as_string(hide_password=False))


class Replays:
    """Runs as one file each, made one after another.

    Args:
        service: The run service whose store has them.
    """

    def __init__(self, service: Any) -> None:
        self._service = service
        self._one = asyncio.Lock()
        self._waiting = 0

    async def made(self, run: str) -> bytes:
        """The file of a run (`static_page.replay`).

        Raises:
            BadInput: The run is not over, or gone.
            Unavailable: Too many wait already, or it failed.
        """
        if self._waiting >= WAITING:
            raise Unavailable("Several replays are being made; try again in a minute.")
        self._waiting += 1
        try:
            async with self._one:
                address = database(self._service.store)
                return await apart("scant_dashboard.static_page.replay", address, run)
        except RuntimeError:
            log.exception("the replay of run %s could not be made", run)
            raise Unavailable(
                "The replay could not be made; the server's log has the reason."
            ) from None
        finally:
            self._waiting -= 1
