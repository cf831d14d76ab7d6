"""Downloads of data sets: one at a time per data set and server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scant.data_dir import fetched_path
from scant.errors import BadInput

PAUSE = 0.3  # seconds before a second attempt; short, so that failures are reported soon


@dataclass
class Underway:
    """A download: bytes so far, total bytes (None if unknown), and its end."""

    end: asyncio.Future[Path]
    done: int = 0
    total: int | None = None

    def progress(self, done: int, total: int | None) -> None:
        """Update the progress; called by the downloading thread."""
        self.done, self.total = done, total


class Fetches:
    """The downloads of one server, to `data_dir`. For its event loop.

    Args:
        data_dir: The server's data directory.
        fetch: Replaces `scant.data_sources.fetch.fetch` in tests.
    """

    def __init__(self, data_dir: Path, fetch: Callable[..., Path] | None = None) -> None:
        self._data_dir = data_dir
        self._fetch = fetch
        self.underway: dict[str, Underway] = {}

    def here(self, name: str) -> bool:
        """Whether a data set has been fetched."""
        return fetched_path(name, self._data_dir).is_file()

    async def fetch(self, name: str) -> Path:
        """Fetch a data set, or wait for its running download.

        Raises:
            BadInput: There is no connection, or the response is not the data set.
        """
        if name not in self.underway:
            self._begin(name)
        return await asyncio.shield(self.underway[name].end)

    def _begin(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        self.underway[name] = made = Underway(loop.create_future())

        def finish(path: Path | None, error: Exception | None) -> None:
            del self.underway[name]
            if error is not None:
                made.end.set_exception(error)
            else:
                assert path is not None
                made.end.set_result(path)

        def work() -> None:
            path: Path | None = None
            failed: Exception | None = None
            try:
                path = self._call(name, made.progress)
            except BadInput as error:
                failed = error
            except OSError as error:  # e.g. a full disk or a read-only folder
                failed = BadInput(f"The data set {name!r} could not be kept: {error}.")
            except Exception as error:
                failed = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, path, failed)

        # A daemon, so that shutdown does not wait for another server.
        threading.Thread(target=work, name=f"fetch {name}", daemon=True).start()

    def _call(self, name: str, progress: Callable[[int, int | None], None]) -> Path:
        if self._fetch is not None:
            return self._fetch(name, self._data_dir, progress)
        from scant.data_sources.fetch import fetch

        return fetch(name, self._data_dir, progress, pause=PAUSE)
