"""`python -m scant_dashboard.followers.draw HOURS`: renders pages of followed runs for a server.

The first line on standard input is the store's address. Each later line is a request in JSON:
`{"follow": number, "study", "query"}` starts a page, `{"drop": number}` ends it, and
`{"pace": seconds}` sets the minimum time between two renderings. Each rendering that differs from
the previous one is written to standard output as one line. The state of a run is read from the
store, just as if another server were training it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import panel as pn
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.errors import NotFound
from scant.store import Store
from scant.store.trouble import StoreTrouble
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.live.run_state import fresh
from scant_dashboard.static_page.frames import STYLES, Frame, Frames
from scant_dashboard.static_page.make import ReadOnlyService
from scant_dashboard.static_page.page import static_page
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.upstream import install_all

TICK = 0.2  # minimum seconds between two checks of a page
REST = 5.0  # seconds of pause per second of processor time: a page uses at most a fifth of a core

log = logging.getLogger(__name__)


class SilentService(ReadOnlyService):
    """A read-only run service that drops queries: answers belong to live sessions."""

    async def explore(self, *question: Any) -> dict[str, Any]:
        """Drop the question."""
        raise asyncio.CancelledError


class FollowedPage:
    """A page of a run, rendered repeatedly as the run proceeds.

    Args:
        store: Store that holds the run.
        hours: Maximum duration of a run on this server, in hours; stated on pages.
        study: Name of the study.
        query: Query of the page's address.
    """

    def __init__(self, store: Store, hours: float, study: str, query: Mapping[str, str]) -> None:
        self._store, self._doc = store, Document()
        self.due = 0.0  # monotonic time of the next check
        with set_curdoc(self._doc):
            views = import_module(f"scant_dashboard.pages.{study}.page").views
            site = Site(SilentService(store, hours), Path(), "")
            visit = SessionContext(site, self._doc, "", dict(query), base="./")
            self._page = StudyPage(visit, entry(study), views)
            self._page.watcher.up = True
            self._update_views()
            title, panel = f"{entry(study).title} · Scant", self._page.panel
            self._frames = Frames(self._page)
            text = static_page(title, study, panel, self._frames.markup)
            frame = self._frames.capture()
        # Tokens mark the two parts that `Channel.page` replaces by their latest state.
        for key, token in ((STYLES, "{{styles}}"), (frame.root, "{{main}}")):
            text = text.replace(frame.html(key), token)
        self.first = {"page": text, **self._message(frame, {})}

    def update(self) -> dict[str, Any] | None:
        """Bring the page up to date; return the changed parts, or None if nothing changed.

        Raises:
            NotFound: The run was deleted.
            StoreTrouble: The store does not answer.
        """
        run, before = self._page.run, self._frames.last
        assert run is not None, "the server has seen the run"
        newer = fresh(self._store, run)
        if newer is None or before is None:
            return None
        run.catch_up(newer)
        with set_curdoc(self._doc):
            self._update_views()
            return self._message(self._frames.capture(), before.shells)

    def _update_views(self) -> None:
        """Show new data; once the run is over, also build the views that are otherwise deferred."""
        run, views = self._page.run, self._page.views
        self._page.layout.build(views.live if run is None else views.applicable(run, views.live))
        self._page.watcher.flush()
        if run is not None and run.state.final:
            self._page.layout.complete()
            self._page.layout.asking(False)

    def _message(self, frame: Frame, before: Mapping[str, str]) -> dict[str, Any]:
        run = self._page.run
        assert run is not None, "the server has seen the run"
        state = self._page.bar.status.shown.get("state", "")
        shells = {k: html for k, html in frame.shells.items() if before.get(k) is not html}
        return {
            "root": frame.root,
            "shells": shells,
            "title": " · ".join(filter(None, (state, self._page.entry.title, "Scant"))),
            "final": run.state.final,
            "stamp": [run.record.state.value, run.record.heartbeat],
        }


class Drawing:
    """All pages that are being rendered, and the output for their updates."""

    def __init__(self, store: Store, hours: float, out: TextIO) -> None:
        self._store, self._hours, self._out = store, hours, out
        self._pages: dict[int, FollowedPage] = {}
        self._pace = TICK

    def handle(self, request: dict[str, Any]) -> None:
        """Execute a request of the server."""
        self._pace = request.pop("pace", self._pace)
        self._pages.pop(request.get("drop", -1), None)
        if "follow" not in request:
            return
        number = request.pop("follow")
        try:
            page = FollowedPage(self._store, self._hours, **request)
        except Exception:
            log.exception("the page of a followed run could not be built")
            self._say({"of": number, "gone": True})
            return
        self._say({"of": number, **page.first})
        if not page.first["final"]:
            self._pages[number] = page

    def round(self) -> None:
        """Update the pages that are due."""
        for number, page in list(self._pages.items()):
            began, used = time.monotonic(), time.process_time()
            if began < page.due:
                continue
            message: dict[str, Any] | None = None
            try:
                message = page.update()
            except StoreTrouble:
                pass  # every page shows a banner
            except Exception as error:
                if not isinstance(error, NotFound):
                    log.exception("the page of a followed run could not be drawn")
                message = {"gone": True}
            if message is not None:
                self._say({"of": number, **message})
                if message.get("final") or message.get("gone"):
                    del self._pages[number]
            rest = max(self._pace, REST * (time.process_time() - used))
            # A check without changes is repeated soon, otherwise each would cost a whole pace.
            page.due = began + TICK / 2 if message is None else max(page.due + rest, began)

    def _say(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


async def main(hours: float, out: TextIO) -> None:
    """Render pages until standard input ends."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    drawing = Drawing(Store.open((await lines.readline()).decode().strip()), hours, out)

    async def handle() -> None:
        while line := await lines.readline():
            drawing.handle(json.loads(line))

    hearing = asyncio.create_task(handle())
    while not hearing.done():
        drawing.round()
        await asyncio.sleep(TICK / 4)
    await hearing


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with the messages
    install_all.install()
    pn.extension("katex", "filedropper")
    asyncio.run(main(float(sys.argv[1]), answers))
