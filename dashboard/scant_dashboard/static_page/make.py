"""`python -m scant_dashboard.static_page.make FOLDER KEY HOURS PAGE…`: write static pages.

The store's address comes by standard input; each page is named on standard output once its page
is whole. A process of its own: a page takes a second, in which a server would answer nobody.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.errors import NotFound
from scant.runs.limits import Limits
from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.pages.gallery import cards
from scant_dashboard.static_page.page import static_page
from scant_dashboard.static_page.published import GALLERY, file_of
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.upstream import install_all

PATIENCE = 60.0  # seconds that the model's answers may take; without them a figure stays empty


class Shown:
    """As much of a run service as a page needs that nobody touches."""

    def __init__(self, store: Store, hours: float = 1.0) -> None:
        self.store, self.limits = store, Limits(hours=hours)
        self._models: dict[str, Any] = {}

    def subscribe(self, watcher: Any) -> Any:
        """Nothing happens here."""
        return lambda: None

    def may_steer(self, record: Any, owner: str) -> bool:
        """Nobody's page steers nothing."""
        return False

    def prefetch_demo(self, study: str) -> None:
        """Nobody will train."""

    def presenter(self, visitor: str) -> str:
        """Nobody presents."""
        return ""

    def healthy(self) -> bool:
        """All is well."""
        return True

    def storing(self) -> str:
        """Nothing is the matter with the database."""
        return ""

    def owns(self, run: str) -> bool:
        """No server sees to the recorded run."""
        return False

    async def explore(self, run: str, question: str, query: Any) -> Any:
        """What the run's model answers."""
        if run not in self._models:
            from scant.training.api import restore

            record, model = self.store.run(run), self.store.model(run)
            if model is None:
                raise NotFound(f"Run {run} has no fitted model to ask.")
            self._models[run] = restore(record.study, record.settings, model)
        return self._models[run].explore(question, **query)


class LoneDocument(Document):
    """A page's document that no server serves: what waits for a turn gets it at once."""

    def add_next_tick_callback(self, callback: Any) -> Any:
        """Call it on the loop."""
        return asyncio.get_running_loop().call_soon(callback)


@contextmanager
def opened(study: str, service: Any, query: dict[str, str]) -> Iterator[StudyPage]:
    """A study's page as it is before anybody touches it; on a running event loop.

    Args:
        study: Its name.
        service: Of which the page shows what it shows to a visitor who has no runs.
        query: Of the page's address.
    """
    doc = LoneDocument()
    with set_curdoc(doc):
        views = import_module(f"scant_dashboard.pages.{study}.page").views
        # The folded story is unfolded by a style for who has not used a page before.
        site = Site(service, Path(), "")
        visit = SessionContext(site, doc, "", query, base="./", returning=True)
        page = StudyPage(visit, entry(study), views)
        page.layout.complete()
        page.watcher.flush()
        yield page


def prepare() -> None:
    """What Panel needs in a process before the first page."""
    install_all.install()
    pn.extension("katex", "filedropper")


async def made(study: str, service: Any) -> str:
    """The gallery, or a study's page with its recorded run, the model's answers in it."""
    if study == GALLERY:
        return static_page("Scant", "", cards())
    with opened(study, service, {}) as page:
        await asyncio.wait_for(page.settled(), PATIENCE)
        page.layout.complete()
        page.read(at_once=True)
        return static_page(f"{entry(study).title} · Scant", study, page.panel)


def _write(folder: Path, key: str, service: Any, study: str) -> None:
    """A page, whole or not at all."""
    file = file_of(folder, key, study)
    part = file.with_suffix(".part")
    part.write_text(asyncio.run(made(study, service)), encoding="utf-8")
    part.replace(file)
    print(study, flush=True)


def main(folder: str, key: str, hours: str, *studies: str) -> None:
    """Write the pages of these studies."""
    prepare()
    service = Shown(Store.open(sys.stdin.read()), float(hours))
    for study in studies:
        _write(Path(folder), key, service, study)


if __name__ == "__main__":
    main(*sys.argv[1:])
