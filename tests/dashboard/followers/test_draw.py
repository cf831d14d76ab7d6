"""The drawing of a followed run, as its process does it."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import panel as pn
import pytest

from scant.events import Finished, Started, State
from scant.store import Store
from scant_dashboard.followers.draw import Drawing
from tests.dashboard.fakes import point


@pytest.mark.slow
def test_a_run_is_drawn_as_it_goes_on_to_its_end(tmp_path: Path) -> None:
    pn.extension("katex", "filedropper")
    store, out = Store.open(f"sqlite:///{tmp_path / 'runs.db'}"), StringIO()
    run = store.add_run("redshift", {}, "demo", "me")
    store.write(run, [Started("cpu", 10), point(1), point(2)])
    drawing = Drawing(store, 2.0, out)

    def said() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        out.seek(0)
        out.truncate()
        return lines

    async def story() -> None:
        request = {"study": "redshift", "query": {"run": run}}
        drawing.handle({"follow": 7, **request, "pace": 0.0})
        (first,) = said()
        assert first["of"] == 7
        assert first["page"].count("{{main}}") == first["page"].count("{{styles}}") == 1
        assert any("step 2 of" in shell or "Step 2" in shell for shell in first["shells"].values())
        drawing.round()
        assert said() == []  # nothing is new
        store.write(run, [point(3)])
        store.update_run(run, state=State.RUNNING)
        (more,) = await _next(drawing, said)
        assert len(more["shells"]) < len(first["shells"]) / 4
        assert any("data-source=" in shell for shell in more["shells"].values())  # the curve
        assert more["title"] == "running · Redshift · Scant"
        store.write(run, [Finished(State.FAILED, "It failed.")])
        (last,) = await _next(drawing, said)
        assert last["final"]
        drawing.handle({"follow": 8, **request})
        assert said()[0]["final"]
        drawing.handle({"follow": 9, **request, "study": "nothing"})
        assert said() == [{"of": 9, "gone": True}]

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_run_that_is_deleted_is_drawn_no_more(tmp_path: Path) -> None:
    pn.extension("katex", "filedropper")
    store, out = Store.open(f"sqlite:///{tmp_path / 'runs.db'}"), StringIO()
    run = store.add_run("redshift", {}, "demo", "me")
    drawing = Drawing(store, 2.0, out)

    async def story() -> None:
        drawing.handle({"follow": 0, "study": "redshift", "query": {"run": run}})
        store.delete_run(run)
        out.seek(0)
        out.truncate()
        while not out.getvalue():
            drawing.round()
            await asyncio.sleep(0.01)
        assert '{"of": 0, "gone": true}' in out.getvalue()

    asyncio.run(asyncio.wait_for(story(), 60))


async def _next(drawing: Drawing, said: Any) -> Any:
    while not (lines := said()):
        drawing.round()
        await asyncio.sleep(0.01)
    return lines
