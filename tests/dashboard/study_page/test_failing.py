"""What a page shows where there is nothing good to show: a sentence, never an empty frame."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.errors import Unavailable
from scant.events import Changed, Finished, Progress, Report, Started, State
from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.pages.redshift import page as redshift
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import FakeService, point

NAN = float("nan")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def opened(site: Site, **query: str) -> StudyPage:
    """The true redshift page, as it opens with this query."""
    doc = Document()
    with set_curdoc(doc):
        page = StudyPage(
            SessionContext(site, doc, "anna", query), entry("redshift"), redshift.views
        )
    page.turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
    return page


def ran(site: Site, *events: object) -> str:
    run = site.service.store.add_run("redshift", entry("redshift").settings().values(), "demo", "a")
    site.service.say(run, *events)
    return run


def test_a_run_that_is_not_there(site: Site) -> None:
    page = opened(site, run="nonsense")
    assert "There is no run &#x27;nonsense&#x27;" in page.layout._message.object
    assert page.bar.status.shown["text"] == "no run yet: press Train"
    assert page.bar.buttons["Train"].visible


def test_a_run_to_compare_that_is_not_there(site: Site) -> None:
    page = opened(site, compare="nonsense")
    assert "There is no run &#x27;nonsense&#x27;" in page.layout._message.object
    assert not page.list.comparison.panel.visible


def test_a_run_of_which_no_worker_has_taken_a_step(site: Site) -> None:
    page = opened(site, run=ran(site, Changed(State.QUEUED)))
    assert page.bar.status.shown["text"] == "queued: waiting for a worker"
    page = opened(site, run=ran(site, Changed(State.STARTING)))
    assert page.bar.status.shown["text"].startswith("starting")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 3])
def test_a_run_that_diverged_says_where_and_shows_no_result(site: Site, steps: int) -> None:
    reason = f"The objective was not finite at step {steps + 1}; try fewer basis functions."
    run = ran(
        site,
        Started("cpu", 100),
        *(point(s) for s in range(1, steps + 1)),
        Progress(steps + 1, NAN, 1.0, NAN, NAN),
        Finished(State.DIVERGED, reason),
    )
    page = opened(site, run=run)
    shown = page.bar.status.shown
    assert shown["text"].startswith("diverged: the objective was not finite")
    assert shown["tone"] == "bad"
    assert f"not finite at step {steps + 1}" in page.views.trace.alt
    assert not page.layout._result.visible
    assert page.bar.buttons["Train"].visible


def test_a_run_that_failed_before_its_first_step(site: Site) -> None:
    page = opened(site, run=ran(site, Finished(State.FAILED, "Column 'z' is empty.")))
    assert page.bar.status.shown["text"] == "failed: column 'z' is empty."
    assert not page.layout._result.visible


def test_a_run_stopped_before_there_was_a_model(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    reason = "Stopped before its first checkpoint, so there is no model."
    page = opened(site, run=ran(site, Finished(State.STOPPED, reason, Report())))
    assert page.bar.status.shown["text"].startswith("stopped before its first checkpoint")
    assert not page.layout._result.visible
    assert caplog.records == []  # no figure broke on what is not there


def test_a_question_that_no_worker_can_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object) -> None:
        raise Unavailable("No worker is up at the moment; try again in a few seconds.")

    monkeypatch.setattr(site.service, "explore", nobody)
    answers: list[object] = []

    async def somebody(*_: object) -> dict[str, object]:
        return {"p": 1}

    async def main() -> StudyPage:
        page = opened(site, run=ran(site, Changed(State.QUEUED)))
        page.ask("density", answers.append, row=0, off=[])
        await page.wait_for_tasks()
        assert "No worker is up at the moment" in page.layout._message.object
        assert answers == []
        assert page._asking == 0
        monkeypatch.setattr(site.service, "explore", somebody)
        page.ask("density", answers.append, row=0, off=[])
        await page.wait_for_tasks()
        return page

    page = asyncio.run(main())
    assert answers == [{"p": 1}]
    assert not page.layout._message.visible


def test_what_cannot_be_shown_is_said_and_the_rest_of_the_turn_is_done(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    page = opened(site)
    del page.turn  # of the class again
    done: list[str] = []

    def broken() -> None:
        raise ZeroDivisionError

    async def main() -> None:
        with set_curdoc(page.visit.doc):
            page.turn(broken, lambda: done.append("after"))
            for callback in page.visit.doc.session_callbacks:
                callback.callback()

    asyncio.run(main())
    assert done == ["after"]
    assert "An error occurred" in page.layout._message.object
    assert "ZeroDivisionError" in caplog.text
