"""`python -m scant.dashboard.static_page.make STUDY HOURS FIRST RETURNING`: write a page.

The store's address comes by standard input.

A process of its own: making a page takes a second, in which a server would answer nobody.
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
from scant.dashboard.frame.session import SessionContext
from scant.dashboard.server.site import Site
from scant.dashboard.static_page.page import static_page
from scant.dashboard.study_page.page import StudyPage
from scant.dashboard.upstream import install_all
from scant.runs.limits import Limits
from scant.store import Store
from scant.studies import entry


class Shown:
    """As much of a run service as a page needs that nobody touches."""

    def __init__(self, store: Store, hours: float) -> None:
        self.store, self.limits = store, Limits(hours=hours)

    def subscribe(self, watcher: Any) -> Any:
        """Nothing happens here."""
        return lambda: None

    def may_steer(self, record: Any, owner: str) -> bool:
        """Nobody's page steers nothing."""
        return False

    def prefetch_demo(self, study: str) -> None:
        """Nobody will ask the model."""

    def healthy(self) -> bool:
        """All is well."""
        return True

    def storing(self) -> str:
        """Nothing is the matter with the database."""
        return ""

    def owns(self, run: str) -> bool:
        """No server sees to the recorded run."""
        return False

    async def explore(self, *question: Any) -> dict[str, Any]:
        """Questions are for live pages; this one is not answered."""
        await asyncio.Event().wait()
        return {}


@contextmanager
def opened(
    study: str, store: Store, query: dict[str, str], hours: float = 1.0, returning: bool = False
) -> Iterator[StudyPage]:
    """A study's page as it is before anybody touches it; on a running event loop.

    Args:
        study: Its name.
        store: What is read.
        query: Of the page's address.
        hours: That a run may use, which the page says.
        returning: Whether the visitor has used a page before.
    """
    doc = Document()
    with set_curdoc(doc):
        views = import_module(f"scant.dashboard.pages.{study}.page").views
        visit = SessionContext(Site(Shown(store, hours), Path(), ""), doc, "", query)
        visit.returning = returning
        page = StudyPage(visit, entry(study), views)
        page.layout.complete()
        page.watcher.flush()
        yield page


def prepare() -> None:
    """What Panel needs in a process before the first page."""
    install_all.install()
    pn.extension("katex", "filedropper")


async def made(study: str, store: Store, hours: float, returning: bool) -> str:
    """A study's page."""
    with opened(study, store, {}, hours, returning) as page:
        return static_page(f"{entry(study).title} · Scant", study, page.panel)


def main(study: str, hours: str, *files: str) -> None:
    """Write both forms of a page, whole or not at all."""
    prepare()
    store = Store.open(sys.stdin.read())
    for returning, name in enumerate(files):
        text = asyncio.run(made(study, store, float(hours), bool(returning)))
        part = Path(name).with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
