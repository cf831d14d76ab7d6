"""Fetching a data set from the page: one download a server, watched by every session that asks."""

from __future__ import annotations

import asyncio
import html
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import panel_material_ui as pmui

from dashboard.pages.place import column
from dashboard.shell import text
from engine.datasets.sources import fetched_path
from engine.errors import BadInput

if TYPE_CHECKING:
    from dashboard.pages.study_page import StudyPage

EVERY = 500  # milliseconds between readings of the progress
PAUSE = 0.3  # seconds before a second attempt; a visitor who is offline should hear it soon


@dataclass
class Underway:
    """A download: bytes so far, bytes in all (None where the server does not say), its end."""

    end: asyncio.Future[Path]
    done: int = 0
    total: int | None = None

    def progress(self, done: int, total: int | None) -> None:
        """Called by the downloading thread."""
        self.done, self.total = done, total


class Fetches:
    """The downloads of one server. Used on its event loop; what is fetched lies in `data_dir`.

    `fetch` is `engine.datasets.fetch.fetch`, or what a test puts in its place.
    """

    def __init__(self, data_dir: Path, fetch: Callable[..., Path] | None = None) -> None:
        self._data_dir = data_dir
        self._fetch = fetch
        self.underway: dict[str, Underway] = {}

    def here(self, name: str) -> bool:
        """Whether a data set has been fetched."""
        return fetched_path(name, self._data_dir).is_file()

    async def fetch(self, name: str) -> Path:
        """Fetch a data set, or join whoever is fetching it.

        Raises:
            BadInput: No connection, or an answer that is not the data set.
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
            except OSError as error:  # a full disk, a folder that may not be written
                failed = BadInput(f"The data set {name!r} could not be kept: {error}.")
            except Exception as error:
                failed = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, path, failed)

        # A daemon: a server that is told to stop does not wait for somebody else's server.
        threading.Thread(target=work, name=f"fetch {name}", daemon=True).start()

    def _call(self, name: str, progress: Callable[[int, int | None], None]) -> Path:
        if self._fetch is not None:
            return self._fetch(name, self._data_dir, progress)
        from engine.datasets.fetch import fetch

        return fetch(name, self._data_dir, progress, pause=PAUSE)


class FetchButton:
    """The button under a source that must be fetched first, and how its download is doing."""

    def __init__(self, page: StudyPage) -> None:
        self._page, self._fetches = page, page.visit.site.fetches
        self._name = ""
        self._timer: Any = None
        self._button = pmui.Button(
            label="Fetch", on_click=lambda _: self._go(), variant="outlined", size="small", margin=0
        )
        self._said = text("")
        self.panel = column(self._button, self._said, css=":host { gap: 6px; }", visible=False)

    def show(self, name: str) -> None:
        """Offer to fetch this source; "" offers nothing."""
        self._name = name
        self.panel.visible = bool(name)
        if not name:
            return
        if self._fetches.here(name):
            self._offer(False, "Fetched; it lies in this server's data folder.")
        elif name in self._fetches.underway:
            self._go()
        else:
            self._offer(True, "It is fetched once, over the internet, before a run can use it.")

    @property
    def wanting(self) -> str:
        """What must come before a run can use the chosen source, as a sentence; "" if nothing."""
        name = self._name
        if not name or self._fetches.here(name):
            return ""
        title = next((s.title for s in self._page.entry.sources if s.name == name), name)
        if name in self._fetches.underway:
            return f"“{title}” is still being fetched; press Train once it is here."
        return f"“{title}” is not on this server yet; press Fetch below it first."

    def _go(self) -> None:
        name = self._name
        self._offer(False, "Fetching: asking the server…")
        if self._timer is None:
            self._timer = self._page.visit.doc.add_periodic_callback(self._tick, EVERY)
        self._page.background(
            self._fetches.fetch(name),
            lambda _: self._ended(name, ""),
            refused=lambda sentence: self._ended(name, sentence),
        )

    def _tick(self) -> None:
        underway = self._fetches.underway.get(self._name)
        if underway is None or not underway.done:
            return
        of = f" of {underway.total / 1e6:.1f}" if underway.total else ""
        self._offer(False, f"Fetching: {underway.done / 1e6:.1f}{of} MB so far.")

    def _ended(self, name: str, refused: str) -> None:
        if self._timer is not None and not self._fetches.underway:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None
        if name != self._name:
            return  # another source is chosen by now
        if refused:
            self._offer(True, refused, "error", "alert")
        else:
            self.show(name)
            self._page.data.changed()

    def _offer(self, offered: bool, sentence: str, kind: str = "quiet", role: str = "note") -> None:
        self._button.visible = offered
        self._said.object = f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>"
