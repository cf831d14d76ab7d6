"""The page as a place of work: runs beside runs, one step named everywhere, formulas, titles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.events import Started, State
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls.status import reading
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.live.hub import Update
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.widgets import markdown
from scant_dashboard.pages.aggregation.box import range_warning
from scant_dashboard.plots.surface import SurfacePlot
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, point, report, views


def lived(folder: Path, act: Callable[[Any], Awaitable[None]], **visit: Any) -> None:
    async def main() -> None:
        service = FakeService(Store.open(f"sqlite:///{folder / 'runs.db'}"), steps=3, pause=0.01)
        site = Site(service, folder, "k" * 40)
        site.hub.start()
        doc = Document()
        with set_curdoc(doc):
            context = SessionContext(site, doc, "anna", {}, **visit)
            page: Any = StudyPage(context, entry("redshift"), views)
        page.turn = lambda *acts: [one() for one in acts]
        await act(page)
        site.hub.close()
        await service.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_variant_trains_beside_the_run_on_show_and_both_are_compared(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        first = await page.submit(page.form.read(), "demo")
        page.open(first)
        page.train_variant({"weights": "balanced"})
        await until(lambda: page.run.id != first)
        assert page.run.record.settings["weights"] == "balanced"
        assert page.list.table.chosen == [first, page.run.id]
        await until(lambda: page.list.comparison.panel.visible)

    lived(tmp_path, act)


def test_bar_and_captions_name_the_same_step(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        page.open(await page.submit(page.form.read(), "demo"))
        page.watcher.hub.leave(page.watcher)  # what comes is said here
        run = RunState(page.run.id, page.run.record)
        run.apply([Started("cpu", 90)])
        caption = page.figures[id(page.views.trace)]._reading
        for step in range(1, 40):
            run.apply([point(step)])
            page._show(Update(run, 0, None, finished=False))
            facts = dict(page.bar.status.shown["facts"])
            if facts:
                assert facts["step"].split()[0] == caption.text.split()[0]

    lived(tmp_path, act)


def test_limits_begin_with_what_predicts_in_the_run_on_show(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        page.open(await page.submit(page.form.read(), "demo"))
        page.watcher.hub.leave(page.watcher)  # what comes is said here
        run, made = RunState(page.run.id, page.run.record), report()
        for limits in ((), made.limits, ()):
            run.report = made if limits else None
            page._show(Update(run, 0, None, finished=False))
            items = "".join(f"<li>{text}</li>" for text in (*limits, *page.entry.limits))
            assert unescape(page.layout.sources.object).startswith(f"<ul>{items}</ul>")

    lived(tmp_path, act)


def test_the_tab_names_the_state_and_a_recording_none(tmp_path: Path) -> None:
    async def act(page: Any) -> None:
        run = await page.submit(page.form.read(), "demo")
        state = page.hub.history(run)
        assert reading(state)["state"] == "queued"
        state.state = State.HIT_LIMIT
        assert reading(state)["state"] == "limit reached"
        state.recorded = True
        assert reading(state)["state"] == ""
        assert page.bar.status.page == "Redshift"

    lived(tmp_path, act)


def test_formulas_within_sentences_are_set_as_formulas() -> None:
    for study in ("genes", "aggregation"):
        _, equations = read_prose(f"scant_dashboard.pages.{study}")
        for part in markdown(equations):
            assert isinstance(part, pn.pane.LaTeX) == ("$" in str(part.object))


def test_the_box_that_is_asked_about_is_drawn_and_one_outside_the_data_is_warned_of() -> None:
    plot = SurfacePlot(select=True)
    plot.mark([1, 2], [3, 5])
    box = {name: float(values[0]) for name, values in plot.query.data.items()}
    assert box == {"left": 1, "right": 3, "bottom": 2, "top": 5}
    data = [[0.0, 10.0], [0.0, 4.0]]
    assert range_warning([1, 1], [3, 4], data, ("x", "y")) == ""
    assert "Part of this box lies outside the data, which have y from 0 to 4" in range_warning(
        [1, 2], [3, 5], data, ("x", "y")
    )
    assert range_warning([11, 2], [12, 3], data, ("x", "y")).startswith("This box lies outside")
