"""A table whose measurements have gaps, before and after the wizard is told which they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, views

BOXES = "station,start [h],end [h],level [ppb],wind\n" + "".join(
    f"{place},{at},{at + 2},{'' if at == 8 else at / 7},{at % 5}\n"
    for place in "ab"
    for at in range(12)
)


def test_a_gap_in_what_is_not_mapped_yet_is_no_error(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        doc = Document()
        with set_curdoc(doc):
            page: Any = StudyPage(
                SessionContext(site, doc, "anna", {}), entry("aggregation"), views
            )
        page.turn = lambda *acts: [one() for one in acts]
        upload = page.data.upload
        upload._drop.value = {"boxes.csv": BOXES.encode()}
        await until(lambda: upload._table.questions)
        assert "role='alert'" not in upload._message.object
        upload._map("y", ["level [ppb]"])
        await until(lambda: "2 rows without a value" in upload._message.object)
        assert upload._use.visible
        assert "2 rows without a value in &#x27;y&#x27; were left out" in upload._message.object
        upload._store()
        await until(lambda: page.data.value.startswith("upload:"))
        assert "boxes.csv: 22 rows" in upload._about.object
        assert "note'>2 rows without" in upload._about.object  # the file is named once

        upload._drop.value = {"hole.csv": BOXES.replace("a,3,5,", "a,,5,").encode()}
        await until(lambda: upload._table.questions)
        upload._map("y", ["level [ppb]"])
        await until(lambda: "3 rows without a value in" in upload._message.object)
        assert "role='alert'" not in upload._message.object  # it is left out, and said

    service = FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}"))
    asyncio.run(act(Site(service, tmp_path, "k" * 40)))
