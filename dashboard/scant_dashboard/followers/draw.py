"""`python -m scant_dashboard.followers.draw HOURS`: draws the pages of followed runs for a server.

The first line of the standard input is the store's address. Each further one is a request in
JSON: `{"follow": number, "study", "query"}` begins a page, `{"drop": number}` ends it,
and `{"pace": seconds}` says how long figures stand at least. A line goes out for each look at a
page that shows something new. What a run does is read from the store, as it is where another
server trains the run.
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
from scant_dashboard.static_page.make import Shown
from scant_dashboard.static_page.page import static_page
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.upstream import install_all

TICK = 0.2  # seconds between two looks at a page, at least
REST = 5.0  # seconds for each of processor time: no more than a fifth of a core goes to a page

log = logging.getLogger(__name__)


class Unasked(Shown):
    """A run service whose models are not asked: answers are for who has a page of their own."""

    async def explore(self, *question: Any) -> dict[str, Any]:
        """Drop the question."""
        raise asyncio.CancelledError


class Drawn:
    """A page of a run, looked at again and again.

    Args:
        store: Where the run is read.
        hours: That a run may use on this server, which pages say.
        study: Whose page it is.
        query: Of the address.
    """

    def __init__(self, store: Store, hours: float, study: str, query: Mapping[str, str]) -> None:
        self._store, self._doc = store, Document()
        self.due = 0.0  # when it is to be looked at again
        with set_curdoc(self._doc):
            views = import_module(f"scant_dashboard.pages.{study}.page").views
            site = Site(Unasked(store, hours), Path(), "")
            visit = SessionContext(site, self._doc, "", dict(query), base="./", returning=True)
            self._page = StudyPage(visit, entry(study), views)
            self._page.watcher.up = True
            self._settle()
            title, panel = f"{entry(study).title} · Scant", self._page.panel
            self._frames = Frames(self._page)
            text = static_page(title, study, panel, self._frames.markup)
            frame = self._frames.look()
        # What a follower who comes later is to see stands in the places of these two.
        for key, token in ((STYLES, "{{styles}}"), (frame.root, "{{main}}")):
            text = text.replace(frame.html(key), token)
        self.first = {"page": text, **self._told(frame, {})}

    def look(self) -> dict[str, Any] | None:
        """What has become of the page: shells by number; None where all is as it was.

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
            self._settle()
            return self._told(self._frames.look(), before.shells)

    def _settle(self) -> None:
        """Show what is new; of a run that is over, all that is otherwise built on the way."""
        run, views = self._page.run, self._page.views
        self._page.layout.build(views.live if run is None else views.shown(run, views.live))
        self._page.watcher.flush()
        if run is not None and run.state.final:
            self._page.layout.complete()
            self._page.layout.asking(False)

    def _told(self, frame: Frame, before: Mapping[str, str]) -> dict[str, Any]:
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
    """All pages that are drawn, and who is told of them."""

    def __init__(self, store: Store, hours: float, out: TextIO) -> None:
        self._store, self._hours, self._out = store, hours, out
        self._pages: dict[int, Drawn] = {}
        self._pace = TICK

    def hear(self, request: dict[str, Any]) -> None:
        """Do what the server asks."""
        self._pace = request.pop("pace", self._pace)
        self._pages.pop(request.get("drop", -1), None)
        if "follow" not in request:
            return
        number = request.pop("follow")
        try:
            page = Drawn(self._store, self._hours, **request)
        except Exception:
            log.exception("the page of a followed run could not be built")
            self._say({"of": number, "gone": True})
            return
        self._say({"of": number, **page.first})
        if not page.first["final"]:
            self._pages[number] = page

    def round(self) -> None:
        """Look at the pages that are due."""
        for number, page in list(self._pages.items()):
            began, used = time.monotonic(), time.process_time()
            if began < page.due:
                continue
            told: dict[str, Any] | None = None
            try:
                told = page.look()
            except StoreTrouble:
                pass  # every page says so
            except Exception as error:
                if not isinstance(error, NotFound):
                    log.exception("the page of a followed run could not be drawn")
                told = {"gone": True}
            if told is not None:
                self._say({"of": number, **told})
                if told.get("final") or told.get("gone"):
                    del self._pages[number]
            rest = max(self._pace, REST * (time.process_time() - used))
            # A look that found nothing is soon made up for, lest each costs a whole pace.
            page.due = began + TICK / 2 if told is None else max(page.due + rest, began)

    def _say(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


async def main(hours: float, out: TextIO) -> None:
    """Draw until the server has nothing more to ask, or is gone."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    drawing = Drawing(Store.open((await lines.readline()).decode().strip()), hours, out)

    async def hear() -> None:
        while line := await lines.readline():
            drawing.hear(json.loads(line))

    hearing = asyncio.create_task(hear())
    while not hearing.done():
        drawing.round()
        await asyncio.sleep(TICK / 4)
    await hearing


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    install_all.install()
    pn.extension("katex", "filedropper")
    asyncio.run(main(float(sys.argv[1]), answers))
