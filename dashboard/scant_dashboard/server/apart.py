"""Work in separate processes, so that the server stays responsive."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import Any

from scant.errors import BadInput, Unavailable
from scant.store import Store

NICE = 10  # below the priority of runs and the server
WAITING = 8  # maximum number of visitors waiting for a file
REFUSED = 2  # exit status if standard error has a message for the user

log = logging.getLogger(__name__)


async def start_process(module: str, *arguments: str, **given: Any) -> asyncio.subprocess.Process:
    """Start `python -m module` at low priority, with pipes for its input and output.

    The store's address is passed by standard input, because it may contain a password, which a
    command line would reveal.

    Args:
        module: Name of the module.
        arguments: Command-line arguments.
        given: Further arguments of `asyncio.create_subprocess_exec`.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        **given,
    )
    # Not in `preexec_fn`: the server blocks until the new program is loaded, which would take long
    # at low priority.
    with suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    return process


async def run_process(module: str, database: str, *arguments: str) -> bytes:
    """Return the output of `python -m module`, which reads the store's address from standard input.

    Raises:
        BadInput: It exited with status 2; the message is its last line on standard error.
        RuntimeError: It failed.
    """
    process = await start_process(module, *arguments, stderr=asyncio.subprocess.PIPE)
    try:
        made, errors = await process.communicate(database.encode())
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    message = errors.decode(errors="replace").strip()
    if process.returncode == REFUSED:
        raise BadInput(message.splitlines()[-1])
    if process.returncode:
        raise RuntimeError(message[-2000:])
    return made


def database(store: Store) -> str:
    """Return the address of a store, with its password."""
    return str(store.engine.url.render_as_string(hide_password=False))


class Replays:
    """Makes replay files of runs, one at a time.

    Args:
        service: The run service of the runs.
    """

    def __init__(self, service: Any) -> None:
        self._service = service
        self._one = asyncio.Lock()
        self._waiting = 0

    async def made(self, run: str) -> bytes:
        """Return the replay file of a run (`static_page.replay`).

        Raises:
            BadInput: The run has not finished, or was deleted.
            Unavailable: Too many requests are waiting, or it failed.
        """
        if self._waiting >= WAITING:
            raise Unavailable("Several replays are being made; try again in a minute.")
        self._waiting += 1
        try:
            async with self._one:
                address = database(self._service.store)
                return await run_process("scant_dashboard.static_page.replay", address, run)
        except RuntimeError:
            log.exception("the replay of run %s could not be made", run)
            raise Unavailable(
                "The replay could not be made; the server's log has the reason."
            ) from None
        finally:
            self._waiting -= 1
