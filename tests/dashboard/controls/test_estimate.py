"""What a fit will take is said before Train, and again when settings or data change."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.data_dir import fetched_path
from scant.data_sources.open import open_table
from scant.store import Store
from scant.studies import STUDIES, Source, entry
from scant.studies.split import EVERYTHING
from scant.tables.schema import counts
from scant_dashboard.controls.estimate import memory
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import FakeService, views

GENERATED = [
    (study, source)
    for study in STUDIES
    for source in entry(study).sources
    if source.generator and source.name != "strokes105"  # 11,027 columns take ten seconds to check
]


@pytest.mark.slow
@pytest.mark.parametrize(("study", "source"), GENERATED, ids=[s.name for _, s in GENERATED])
def test_the_size_of_generated_data_is_known_without_making_them(
    study: str, source: Source
) -> None:
    result = entry(study)
    settings = result.settings.parse({"seed": 1})
    table = open_table(result, source.name, settings)
    assert source.rows_and_columns(settings) == table.shape
    counted = counts(table, result.table)
    assert {name: counted.get(name) for name in source.counts} == source.counts


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def on_the_page(site: Site, act: Callable[[Any], None], study: str = "redshift") -> None:
    async def main() -> None:
        doc = Document()
        with set_curdoc(doc):
            act(StudyPage(SessionContext(site, doc, "anna", {}), entry(study), views))

    asyncio.run(main())


def megabytes(page: Any) -> float:
    match = re.search(r"about .+ and ([\d.]+) (MB|GB) on one core", page.estimate.panel.object)
    assert match is not None
    return float(match[1]) * (1000 if match[2] == "GB" else 1)


def test_it_follows_the_settings_and_the_data(site: Site) -> None:
    path = fetched_path("sdss", site.data_dir)
    frame = pd.DataFrame({name: [0.0] * 20_000 for name in ("z", "u", "g")})

    def act(page: Any) -> None:
        usual = megabytes(page)
        assert "With these settings, a fit takes about" in page.estimate.panel.object
        assert "a fit and the methods compared with it take about" in page.estimate.of(200, 5, {})
        page.form.widgets["n_basis"].value = "400"
        many = megabytes(page)
        assert many > usual
        page.form.widgets["n_basis"].value = "no number"
        assert not page.estimate.panel.visible
        page.form.fill(entry("redshift").start())
        assert megabytes(page) == usual
        assert "2,000 rows to train on" in page.estimate.panel.object

        page.data._choice.value = "sdss"
        assert not page.estimate.panel.visible  # not fetched: nobody knows
        path.parent.mkdir(parents=True)
        frame.to_parquet(path)
        page.data.changed()
        assert page.estimate.panel.visible
        page.form.widgets["training_size"].value = "20000"
        assert megabytes(page) > usual

        few = page.service.store.add_upload(frame[:40], owner="anna", name="few", study="redshift")
        page.form.fill(entry("redshift").start())
        page.data._uploaded(few)
        assert page.form.widgets["refit"].value == EVERYTHING  # its model is for other tables
        twice = megabytes(page)
        page.form.widgets["refit"].value = "no"
        assert megabytes(page) < min(usual, twice)
        assert "28 rows to train on, 4 to validate, 8 to test, of 40." in page.estimate.panel.object
        assert page.form.scarcity.label == "Scarcity: 28 rows to learn from, of 40"
        page.data._choice.value = "demo"
        assert page.form.widgets["training_size"].value == "2000"

    on_the_page(site, act)


def test_an_upload_is_told_by_what_its_columns_hold(site: Site) -> None:
    def act(page: Any) -> None:
        message = {}
        for tasks in (2, 8):
            frame = pd.DataFrame(
                {
                    "task": [f"task {i % tasks}" for i in range(400)],
                    "x": range(400),
                    "y": [0.5 * i for i in range(400)],
                }
            )
            kept = page.service.store.add_upload(
                frame, owner="anna", name="mine", study="aggregation"
            )
            page.data._uploaded(kept)
            message[tasks] = page.estimate.panel.object
            assert message[tasks] == page.estimate.of_table(frame)
        assert message[2] != message[8]

    on_the_page(site, act, "aggregation")


def test_memory_is_no_finer_than_an_estimate_is() -> None:
    assert [memory(b) for b in (3.54e8, 9.6e8, 2.34e9)] == ["350 MB", "1.0 GB", "2.3 GB"]
