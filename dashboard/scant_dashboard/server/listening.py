"""Checks of a server's port, address and data folder, with clear error messages."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tornado.netutil import bind_sockets

from scant.errors import BadInput

_REASONS = {
    errno.EADDRINUSE: "is in use; stop what listens there or give another --port",
    errno.EACCES: "may not be opened by this user; give a --port of 1024 or above",
}


@contextmanager
def listening(port: int, address: str) -> Iterator[None]:
    """Convert errors of opening a port into clear messages.

    Raises:
        BadInput: The port is invalid, taken or not permitted, or the address is not this machine's.
    """
    if not 0 <= port <= 65535:
        raise BadInput(f"There is no port {port}; give a --port from 0 to 65535 (0: a free one).")
    try:
        yield
    except (OSError, UnicodeError, ValueError) as error:  # ValueError: a name with a NUL
        if isinstance(error, BadInput):
            raise
        number = error.errno if isinstance(error, OSError) else None
        if reason := _REASONS.get(number or 0):
            raise BadInput(f"Port {port} on {address} {reason}.") from error
        raise BadInput(
            f"{address[:80]!r} is no address of this machine; give --address 127.0.0.1 for this "
            "machine only or 0.0.0.0 for all networks."
        ) from error


def check_address(port: int, address: str) -> None:
    """Open the port briefly, so that a server that cannot listen writes no files.

    Raises:
        BadInput: See `listening`.
    """
    with listening(port, address):
        for opened in bind_sockets(port, address):
            opened.close()


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Convert errors of writing to the data folder into clear messages.

    Raises:
        BadInput: The folder cannot be created or written.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise BadInput(
            f"The data folder {str(folder)[:200]!r} cannot be made or written: {reason}; name "
            "another with --data-dir or SCANT_DATA_DIR."
        ) from error
