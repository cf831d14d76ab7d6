"""*Predict a table*: a file goes to a worker and comes back, as often as wanted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.errors import BadInput
from scant.events import Finished, State
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls.predict_panel import PredictPanel
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, report, views

TABLE = b"mag_u,id\n1,a\n2,b\n3,c\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    service = FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}"))
    return Site(service, tmp_path, "k" * 40)


def opened(site: Site, *states: State) -> tuple[StudyPage, list[str]]:
    """A page, and runs that ended so; none is on show yet."""
    store, runs = site.service.store, []
    for state in states:
        runs.append(store.add_run("redshift", {}, "demo", "anna"))
        usable = report() if state.usable else None
        site.service.say(
            runs[-1], Finished(state, "It ended.", usable) if usable else Finished(state, "")
        )
    doc = Document()
    with set_curdoc(doc):
        page = StudyPage(SessionContext(site, doc, "anna", {}), entry("redshift"), views)
    page.turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
    return page, runs


def said(panel: PredictPanel) -> str:
    return str(panel._message.object)


def test_files_are_predicted_one_after_another_and_a_wrong_one_is_named(site: Site) -> None:
    async def main() -> None:
        page, (run, other, failed) = opened(site, State.CONVERGED, State.CONVERGED, State.FAILED)
        panel = page.keep.predict
        page.open(failed)
        assert not panel.panel.visible
        page.open(run)
        assert panel.panel.visible
        assert panel._field.objects == []
        panel._unfold()
        assert panel._field.objects == [panel._drop]
        for name, rows in (("<i>.csv", 3), ("again.csv.gz", 4)):
            panel._drop.value = {name: TABLE + b"4,d\n" * (rows - 3)}
            assert not panel._file.visible
            await until(lambda: panel._file.visible)
            assert f"{rows} rows predicted. 2 of them lie outside" in said(panel)
            assert "<i>" not in said(panel)
            assert "&lt;b&gt;note" in said(panel)
        assert panel._file.filename == "again.predictions.zip"
        assert panel._content() == b"zip of " + TABLE + b"4,d\n"
        panel._drop.value = {"b.csv": b"x\n1\n"}
        await until(lambda: "b.csv lacks the column" in said(panel))
        assert "role='alert'" in said(panel)
        assert not panel._file.visible
        with pytest.raises(BadInput, match="choose a file again"):
            panel._content()
        panel._drop.value = {"late.csv": TABLE}
        page.open(other)  # the answer that is to come is of the run before
        await asyncio.sleep(0.05)
        assert not panel._file.visible
        assert not panel._message.visible
        assert await page.keep._predictions() == f"predictions of {other}".encode()

    asyncio.run(main())
