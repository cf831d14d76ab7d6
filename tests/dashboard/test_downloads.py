"""A table of one's own: asked about, taken home with the run; and a person's model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

import scant
from scant.errors import BadInput
from scant.store import Store
from scant.studies import entry
from scant.tables.read import read_table
from scant.training.api import restore
from scant_dashboard import export
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.controls.test_fetch import until
from tests.dashboard.fakes import FakeService, views
from tests.paths import TEMPLATES


def test_a_table_comes_back_to_the_last_bit_and_runs_no_formula(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "label": ["=cmd|calc", None, "a, b"],
            "p0": rng.random(3).astype(np.float32),
            "flux [mJy]": [1e-300, np.nan, 1 / 3],
        }
    )
    file = tmp_path / export.TABLE
    file.write_bytes(export.table_csv(frame))
    again = pd.read_csv(file, float_precision="round_trip")
    assert again["label"].fillna("").tolist() == ["'=cmd|calc", "", "a, b"]
    np.testing.assert_array_equal(again["p0"], frame["p0"].astype(float))
    np.testing.assert_array_equal(again["flux [mJy]"], frame["flux [mJy]"])


def test_the_wizard_asks_for_what_it_cannot_tell_and_says_what_is_learnt_from(
    tmp_path: Path,
) -> None:
    site = Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)
    rows = "".join(f"roof,{i / 10},{i % 4},{i},{i + 2}\n" for i in range(9))
    file = b"Station,PM2.5,wind,time_start [h],time_end [h]\n" + rows.encode()

    async def act(upload: Any) -> None:
        upload._drop.value = {"<b>.csv": file}
        await until(lambda: upload._table.questions)
        (question,) = upload._table.questions
        assert "Which column is to be learned" in question["text"]
        assert question["options"] == ["PM2.5", "wind"]
        assert question["taken"] == 0
        assert "role='alert'" not in upload._message.object
        for answer in (1, 0):
            upload._table._handle_msg({"question": 0, "answer": answer})
            await until(lambda a=answer: upload._table.questions[0]["taken"] == a)
        message = upload._message.object
        assert "2 columns to learn from: time_start [h], time_end [h]." in message
        assert "<b>.csv" not in message
        upload._store()
        store = site.service.store
        await until(lambda: store.uploads("anna"))
        kept = store.upload_table(store.uploads("anna")[0].id)
        assert list(kept) == ["task", "y", "time [h]_lo", "time [h]_hi"]  # wind was y before

    async def main() -> None:
        doc = Document()
        with set_curdoc(doc):
            page = StudyPage(SessionContext(site, doc, "anna", {}), entry("aggregation"), views)
        page.turn = lambda *acts: [one() for one in acts]  # type: ignore[method-assign]
        await act(page.data.upload)

    asyncio.run(main())


def test_a_persons_model_is_one_that_load_reads() -> None:
    values = {"expert": "you", "n_components": 4, "baselines": False, "repeats": 1}
    table = read_table(TEMPLATES / "clamp.csv", entry("clamp").table).frame
    run = scant.fit("clamp", table.assign(label=None), device="cpu", **values)
    list(run)
    with pytest.raises(BadInput, match="There is no model yet"):
        run.study.explore("model", labels=[])
    rows = [int(r) for r in run.study.active.askable[:12]]
    labels = [[row, i % 2] for i, row in enumerate(rows)]
    file = run.study.explore("model", labels=labels)["file"].tobytes()
    p = run.study.active.p.cpu().numpy()
    again = restore("clamp", run.study.settings.values(), file, "cpu")
    np.testing.assert_allclose(again.active.p.cpu().numpy(), p, rtol=1e-6)
    assert again.predict(table.drop(columns="label"))["probability"].between(0.5, 1).all()
