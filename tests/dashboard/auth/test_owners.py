"""Clicks on buttons that a visitor is not shown, as a client of its own making sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.events import Changed, Finished, State
from scant.runs import RunService
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls.estimate import STEERED
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import views

KEY = "k" * 40


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A true service, of which no worker is up."""
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    yield Site(RunService(store, key=KEY), tmp_path, KEY)
    store.close()


def opened(site: Site, owner: str, **query: str) -> StudyPage:
    doc = Document()
    with set_curdoc(doc):
        page = StudyPage(
            SessionContext(site, doc, owner, query, address="10.1.2.3"), entry("redshift"), views
        )
    page.turn = lambda *acts: [act() for act in acts]  # type: ignore[assignment, method-assign]
    return page


def lived(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 30))


async def settled(page: StudyPage) -> None:
    await page.wait_for_tasks()


def buttons(page: Any) -> set[str]:
    return {name for name, button in page.bar.buttons.items() if button.visible}


@pytest.mark.slow
@pytest.mark.parametrize("visitor", ["bob", ""])
@pytest.mark.parametrize("name", ["Pause", "Resume", "Stop"])
def test_a_click_on_anothers_hidden_button_is_refused(site: Site, name: str, visitor: str) -> None:
    async def story() -> None:
        store = site.service.store
        run = store.add_run("redshift", {}, "demo", "ada", server="other")
        store.write(run, [Changed(State.RUNNING)])
        if name == "Resume":
            store.write(run, [Finished(State.PAUSED, "Paused.")])
        before = store.run(run)
        page = opened(site, visitor, run=run)
        assert buttons(page) == {"Train"}
        page.bar.buttons[name].clicks += 1  # as a message of the websocket does
        await settled(page)
        assert f"You cannot {name.lower()} this run" in page.layout._message.object
        assert store.run(run) == before
        assert store.read_requests("other", [run]) == ({}, [])  # nor was it left to another server
        assert name in buttons(opened(site, "ada", run=run))

    lived(story)


def test_a_click_on_anothers_hidden_delete_is_refused(site: Site) -> None:
    async def story() -> None:
        store = site.service.store
        table = store.add_upload(
            pd.DataFrame({"z": [0.1]}), owner="ada", name="mine.csv", study="redshift"
        )
        page = opened(site, "bob", data=f"upload:{table}")
        assert not page.data.upload._delete.visible
        page.data.upload._delete.clicks += 1
        await settled(page)
        assert "&#x27;mine.csv&#x27; can be deleted only by" in page.layout._message.object
        assert len(store.upload_table(table)) == 1

    lived(story)


def test_who_made_the_lessons_link_may_stop_what_is_started_from_it(site: Site) -> None:
    async def story() -> None:
        maker = opened(site, "teacher").keep.lesson
        maker._form.visible = True
        code = site.service.presenter("teacher")
        assert f"presenter={code}" in maker.link.value
        pupil = opened(site, "pupil", presenter=code)
        assert STEERED in pupil.estimate.panel.object
        assert "this server allows 2 h per run" in pupil.estimate.panel.object
        pupil.bar.buttons["Train"].clicks += 1
        await settled(pupil)
        assert pupil.run is not None
        run = pupil.run.id
        assert "Stop" in buttons(opened(site, "teacher", run=run))
        assert "Stop" not in buttons(opened(site, "bob", run=run, presenter=code))
        teacher = opened(site, "teacher", run=run)
        teacher.bar.buttons["Stop"].clicks += 1
        await settled(teacher)
        assert site.service.store.run(run).state is State.STOPPED

    lived(story)


def test_a_fit_beyond_the_hours_is_refused_beside_the_form_and_by_train(site: Site) -> None:
    async def story() -> None:
        page = opened(site, "ada")
        huge = {"training_size": 1_000_000, "n_basis": 1000, "max_steps": 500}
        page.form.fill({**huge, "errors": "as noise"})
        assert "this server allows 2 h a run" in page.estimate.panel.object
        assert "class='error'" in page.estimate.panel.object
        page.bar.buttons["Train"].clicks += 1
        await settled(page)
        assert "not started: A fit with these settings would take" in page.bar.status.shown["text"]
        assert [r for r in site.service.store.runs() if r.owner] == []

    lived(story)
