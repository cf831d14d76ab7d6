"""Data sets fetched from the page: once a server, in a thread, with a sentence where it fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.data_dir import fetched_path
from scant.errors import BadInput
from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.server.fetches import Fetches
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import FakeService, views


class Server:
    """In place of the download: waits until it is told how to end."""

    def __init__(self) -> None:
        self.calls = 0
        self.says = ""
        self.go = threading.Event()

    def __call__(self, name: str, folder: Path, progress: Callable[..., None]) -> Path:
        self.calls += 1
        progress(2_000_000, 8_000_000)
        assert self.go.wait(30)
        if self.says:
            raise BadInput(self.says)
        path = fetched_path(name, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path


def test_two_who_ask_share_one_download_and_the_loop_serves_on(tmp_path: Path) -> None:
    server = Server()

    async def main() -> list[Path]:
        fetches = Fetches(tmp_path, server)
        query = [asyncio.create_task(fetches.fetch("sdss")) for _ in range(2)]
        while not (underway := fetches.underway.get("sdss")) or not underway.done:
            await asyncio.sleep(0.01)  # would hang if the download held the loop
        assert (underway.done, underway.total) == (2_000_000, 8_000_000)
        assert not fetches.here("sdss")
        server.go.set()
        paths = await asyncio.gather(*query)
        assert fetches.here("sdss")
        assert fetches.underway == {}
        return paths

    assert asyncio.run(main()) == [fetched_path("sdss", tmp_path)] * 2
    assert server.calls == 1


def test_a_visitor_who_leaves_does_not_end_the_download_of_another(tmp_path: Path) -> None:
    server = Server()

    async def main() -> None:
        fetches = Fetches(tmp_path, server)
        leaving, staying = (asyncio.create_task(fetches.fetch("sdss")) for _ in range(2))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.sleep(0.05)
        server.go.set()
        await staying

    asyncio.run(main())
    assert server.calls == 1


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def on_the_page(site: Site, act: Callable[[Any], Any]) -> Any:
    """Open a page, run `act(panel)` on the loop, and return what it returns."""

    async def main() -> Any:
        doc = Document()
        with set_curdoc(doc):
            page = StudyPage(SessionContext(site, doc, "anna", {}), entry("redshift"), views)
        page.turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
        page.data._choice.value = "sdss"
        return await act(page.data.fetch)

    return asyncio.run(main())


async def until(true: Callable[[], Any]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


def test_a_refusal_is_one_sentence_and_can_be_tried_again(site: Site) -> None:
    server = Server()
    site.fetches = Fetches(site.data_dir, server)

    async def act(fetch: Any) -> None:
        assert fetch.panel.visible
        assert fetch._button.visible
        server.says = "The data set 'sdss' could not be downloaded; check the connection."
        fetch._button.clicks += 1
        assert not fetch._button.visible
        await until(lambda: (u := site.fetches.underway.get("sdss")) and u.done)
        fetch._tick()
        assert "2.0 of 8.0 MB" in fetch._message.object
        server.go.set()
        await until(lambda: "check the connection" in fetch._message.object)
        assert "role='alert'" in fetch._message.object
        assert fetch._button.visible
        server.says = ""
        fetch._button.clicks += 1
        await until(lambda: "Fetched" in fetch._message.object)
        assert not fetch._button.visible

    on_the_page(site, act)
    assert server.calls == 2


def test_training_on_what_is_not_fetched_is_refused_and_points_at_the_button(site: Site) -> None:
    server = Server()
    site.fetches = Fetches(site.data_dir, server)

    async def act(fetch: Any) -> None:
        page = fetch._page

        def refusal() -> str:
            page._train()
            return str(page.bar.status.shown["text"])

        assert refusal() == (
            "not started: “SDSS galaxies” is not on this server yet; press Fetch below it first."
        )
        fetch._button.clicks += 1
        await until(lambda: "sdss" in site.fetches.underway)
        assert "still being fetched" in refusal()
        assert page.service.store.runs("anna") == []
        server.go.set()
        await until(lambda: "Fetched" in fetch._message.object)
        assert "queued" in refusal()
        await until(lambda: page.service.store.runs("anna"))

    on_the_page(site, act)


def test_a_source_that_needs_no_fetching_offers_none(site: Site) -> None:
    async def act(fetch: Any) -> bool:
        fetch._page.data._choice.value = "demo"
        return bool(fetch.panel.visible)

    assert on_the_page(site, act) is False
