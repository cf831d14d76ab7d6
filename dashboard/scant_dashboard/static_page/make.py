"""`python -m scant_dashboard.static_page.make FOLDER KEY HOURS PAGE…`: write static pages.

Standard input is the store's address; each page is named on standard output once it is complete.
This is a separate process because a page takes a second, during which a server could not respond.
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
from scant_dashboard.controls.own_table import invitation
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.pages.gallery import cards
from scant_dashboard.static_page.page import static_page
from scant_dashboard.static_page.pictures import pictures, with_pictures
from scant_dashboard.static_page.published import GALLERY, file_of, shipped_page, styles_key
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.upstream import install_all

PATIENCE = 60.0  # seconds to wait for the model's answers; figures without them stay empty


class ReadOnlyService:
    """The part of a run service that a page without a visitor uses."""

    def __init__(self, store: Store, hours: float = 1.0) -> None:
        self.store, self.limits = store, Limits(hours=hours)
        self._models: dict[str, Any] = {}

    def subscribe(self, watcher: Any) -> Any:
        """Do nothing: no events occur."""
        return lambda: None

    def may_steer(self, record: Any, owner: str) -> bool:
        """Return False: nobody can control the run."""
        return False

    def prefetch_demo(self, study: str) -> None:
        """Do nothing: no run will start."""

    def presenter(self, visitor: str) -> str:
        """Return "": there is no presenter."""
        return ""

    def healthy(self) -> bool:
        """Return True."""
        return True

    def storing(self) -> str:
        """Return "": the store is available."""
        return ""

    def owns(self, run: str) -> bool:
        """Return False: this process executes no runs."""
        return False

    async def explore(self, run: str, question: str, query: Any) -> Any:
        """Return the answer of the run's model."""
        if run not in self._models:
            from scant.training.api import restore

            record, model = self.store.run(run), self.store.model(run)
            if model is None:
                raise NotFound(f"Run {run} has no fitted model to ask.")
            self._models[run] = restore(record.study, record.settings, model)
        return self._models[run].explore(question, **query)


class LoneDocument(Document):
    """A document without a server: next-tick callbacks are called on the event loop."""

    def add_next_tick_callback(self, callback: Any) -> Any:
        """Schedule the callback on the loop."""
        return asyncio.get_running_loop().call_soon(callback)


@contextmanager
def opened(study: str, service: Any, query: dict[str, str]) -> Iterator[StudyPage]:
    """Build a study's page in its initial state; requires a running event loop.

    Args:
        study: Name of the study.
        service: The run service of the page.
        query: Query of the page's address.
    """
    doc = LoneDocument()
    with set_curdoc(doc):
        views = import_module(f"scant_dashboard.pages.{study}.page").views
        site = Site(service, Path(), "")
        visit = SessionContext(site, doc, "", query, base="./")
        page = StudyPage(visit, entry(study), views)
        page.layout.complete()
        page.watcher.flush()
        yield page


def prepare() -> None:
    """Set Panel up in this process."""
    install_all.install()
    pn.extension("katex", "filedropper")


async def made(study: str, service: Any) -> str:
    """Return the gallery, or a study's page of its recorded run, with the model's answers."""
    if study == GALLERY:
        return static_page("Scant", "", column(cards(), invitation()))
    with opened(study, service, {}) as page:
        await asyncio.wait_for(page.wait_for_tasks(), PATIENCE)
        page.layout.complete()
        page.read(at_once=True)
        return static_page(f"{entry(study).title} · Scant", study, page.panel)


def _write(folder: Path, key: str, service: Any, study: str) -> None:
    """Write a page atomically."""
    file = file_of(folder, key, study)
    part = file.with_suffix(".part")
    page, shipped = asyncio.run(made(study, service)), shipped_page(study, styles_key())
    part.write_text(with_pictures(page, pictures(shipped)), encoding="utf-8")
    part.replace(file)
    print(study, flush=True)


def main(folder: str, key: str, hours: str, *studies: str) -> None:
    """Write these pages."""
    prepare()
    service = ReadOnlyService(Store.open(sys.stdin.read()), float(hours))
    for study in studies:
        _write(Path(folder), key, service, study)


if __name__ == "__main__":
    main(*sys.argv[1:])
