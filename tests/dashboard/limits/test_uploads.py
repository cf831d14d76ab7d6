"""Upload bytes: counted from the first chunk, refused in a sentence, held as long as needed."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
import pytest
from bokeh.document import Document
from panel.io.document import _cleanup_doc
from panel.io.state import _state, set_curdoc
from panel.models.file_dropper import UploadEvent

from scant.errors import BadInput
from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame import session
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.limits import uploads
from scant_dashboard.limits.client import Client
from scant_dashboard.limits.uploads import CHUNK, Received, UploadBudget, UploadReceiver
from scant_dashboard.study_page.page import StudyPage
from scant_dashboard.template import PageContent
from scant_dashboard.upstream import busy_cleanup
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, views

ANNA, BEN = Client("192.0.2.1", "anna"), Client("192.0.2.1", "ben")
FAR = Client("192.0.2.2", "carl")


def chunk(number: int, total: int, data: Any = b"x" * CHUNK, name: str = "t.csv") -> dict[str, Any]:
    return {"name": name, "chunk": number, "total_chunks": total, "data": data, "type": "text/csv"}


def receiver(budget: UploadBudget, client: Client = ANNA, limit: int = 100_000_000) -> Any:
    return UploadReceiver(budget, client, limit)


def test_a_file_comes_whole_and_counts_until_it_is_released() -> None:
    budget = UploadBudget()
    taking = receiver(budget)
    assert taking.take(chunk(1, 3)) is None
    assert budget.used == 3 * CHUNK
    assert taking.take(chunk(2, 3, b"y" * CHUNK)) is None
    whole = taking.take(chunk(3, 3, b"end"))
    assert isinstance(whole, Received)
    assert whole.content == b"x" * CHUNK + b"y" * CHUNK + b"end"
    assert budget.used == 2 * CHUNK + 3
    whole.reservation.release()
    assert budget.used == 0


def test_a_file_that_is_announced_too_large_is_refused_at_its_first_chunk() -> None:
    budget = UploadBudget()
    taking = receiver(budget)
    with pytest.raises(BadInput, match="at least 598 MB; this page takes files of at most 100 MB"):
        taking.take(chunk(1, 300))
    assert budget.used == 0
    assert [taking.take(chunk(k, 300)) for k in range(2, 301)] == [None] * 299
    assert not taking.active
    assert taking.take(chunk(1, 1, b"small")).content == b"small"  # another file is welcome


def test_a_file_that_is_larger_than_announced_is_refused() -> None:
    budget = UploadBudget()
    taking = receiver(budget, limit=3 * CHUNK // 2)
    taking.take(chunk(1, 2))
    with pytest.raises(BadInput, match="at least 4 MB; this page takes files of at most 3 MB"):
        taking.take(chunk(2, 2))
    assert budget.used == 0


@pytest.mark.parametrize(
    "second",
    [
        chunk(3, 4),
        chunk(2, 5),
        chunk("2", 4),  # type: ignore[arg-type]
        chunk(2, 4, None),
        chunk(2, 4, "text"),
        chunk(2, 4, bytes(CHUNK + 1)),
    ],
)
def test_chunks_that_do_not_fit_end_the_upload(second: dict[str, Any]) -> None:
    budget = UploadBudget()
    taking = receiver(budget)
    taking.take(chunk(1, 4))
    with pytest.raises(BadInput, match="drop the file again"):
        taking.take(second)
    assert budget.used == 0
    assert not taking.active


@pytest.mark.parametrize("total", [0, -3, "9", None, 1.5])
def test_a_number_of_chunks_that_cannot_be(total: Any) -> None:
    with pytest.raises(BadInput, match="no parts"):
        receiver(UploadBudget()).take(chunk(1, total))


def test_what_a_visitor_an_address_and_the_server_may_hold() -> None:
    budget = UploadBudget(per_visitor=4 * CHUNK, per_address=6 * CHUNK, overall=7 * CHUNK)
    first = receiver(budget)
    first.take(chunk(1, 3))
    with pytest.raises(BadInput, match="at most 8 MB may"):
        receiver(budget).take(chunk(1, 2))
    receiver(budget, FAR).take(chunk(1, 1))  # the small file of a visitor elsewhere gets in
    second = receiver(budget, BEN)
    second.take(chunk(1, 3))
    with pytest.raises(BadInput, match="from your network"):
        receiver(budget, Client("192.0.2.1")).take(chunk(1, 1))
    third = receiver(budget, FAR)
    with pytest.raises(BadInput, match="This server is taking in"):
        third.take(chunk(1, 2))
    first.drop()
    third.take(chunk(1, 2))
    del second, third
    gc.collect()
    assert budget.used == 0  # even of receivers that nobody has closed


def test_an_upload_that_stalls_is_dropped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "STALLED", 0.01)

    async def main() -> None:
        budget, sentences = UploadBudget(), list[str]()
        taking = UploadReceiver(budget, ANNA, 10**8, sentences.append)
        taking.take(chunk(1, 2))
        await until(lambda: bool(sentences))
        assert "'t.csv' stopped" in sentences[0]
        assert budget.used == 0
        assert taking.take(chunk(2, 2)) is None

    asyncio.run(main())


# --- the wizard ---


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def opened(site: Site, doc: Document) -> StudyPage:
    """A page with the upload wizard, as its session has it."""
    made: list[StudyPage] = []

    def content(visit: SessionContext) -> PageContent:
        made.append(StudyPage(visit, entry("redshift"), views))
        return PageContent("Redshift", [made[0].panel], "redshift")

    with set_curdoc(doc):
        session.page(site, content)().server_doc(doc)
    made[0].turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
    return made[0]


def upload(page: StudyPage, *chunks: dict[str, Any]) -> None:
    """Chunks as the websocket brings them."""
    for each in chunks:
        page.data.upload._drop._server_event(page.visit.doc, UploadEvent(None, each))


BANDS = "ugriz"
TABLE = ",".join([f"mag_{b}" for b in BANDS] + [f"mag_{b}_err" for b in BANDS] + ["z"]) + "\n"
TABLE += "".join(f"2{k / 7},22.{k},22,22,21,0.1,0.1,0.1,0.1,0.1,0.{k}\n" for k in range(10, 90))


def test_a_table_is_read_from_its_chunks_and_its_bytes_go_with_the_next(site: Site) -> None:
    async def main() -> None:
        page = opened(site, Document())
        wizard = page.data.upload
        upload(page, chunk(1, 1, TABLE.encode()))
        await until(lambda: wizard._use.visible)
        assert wizard._file == ("t.csv", TABLE.encode())
        assert site.uploads.used == len(TABLE)
        upload(page, chunk(1, 3, name="next.csv"))
        assert wizard._file is None
        assert site.uploads.used == 3 * CHUNK
        wizard._store()  # pressed in that moment

    asyncio.run(main())


def test_an_upload_over_the_limit_is_refused_on_the_page_and_not_held(site: Site) -> None:
    async def main() -> None:
        page = opened(site, Document())
        upload(page, *(chunk(k, 300) for k in range(1, 301)))
        shown = page.data.upload._message.object
        assert "this page takes files of at most 200 MB" in shown
        assert site.uploads.used == 0
        assert page.data.upload._drop._file_buffer == {}

    asyncio.run(main())


@pytest.mark.slow
def test_nothing_of_an_upload_outlives_its_session(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first busy session started a task of Panel's that held its document for good."""
    busy_cleanup.install()
    monkeypatch.setattr(_state, "_busy_cleanup_scheduled", None)

    async def main() -> None:
        doc = Document()
        page = opened(site, doc)
        with set_curdoc(doc):
            pn.state._add_busy_event("reading")
            upload(page, chunk(1, 1, TABLE.encode()))
        await until(lambda: page.data.upload._use.visible)
        held: Any = page.data.upload._file
        content = held[1]
        with set_curdoc(doc):
            upload(page, chunk(1, 2, name="half.csv"))  # and one that is under way
        del held
        _end(doc)
        pn.state._remove_busy_event("reading")
        ref = weakref.ref(doc)
        del doc, page
        await asyncio.sleep(0)
        gc.collect()
        assert ref() is None
        assert site.uploads.used == 0
        held_by = sys.getrefcount(content)
        assert held_by == 2  # this name, and the argument

    asyncio.run(main())


def test_work_for_a_page_starts_without_its_document(site: Site) -> None:
    """What it opens, such as a connection to a worker, keeps the context it was opened in."""
    inside: list[Any] = []

    async def work() -> None:
        inside.append(pn.state._curdoc.get())

    async def main() -> None:
        doc = Document()
        page = opened(site, doc)
        done: list[bool] = []
        with set_curdoc(doc):
            page.background(work(), lambda _: done.append(True))
        await until(lambda: done == [True])

    asyncio.run(main())
    assert inside == [None]


def _end(doc: Document) -> None:
    from types import SimpleNamespace

    for callback in list(doc.session_destroyed_callbacks):
        call: Callable[[Any], None] = callback
        call(SimpleNamespace(_document=doc, id="session"))
    _cleanup_doc(doc, destroy=True)
