"""Each score of a page has one value: that of the recorded report."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import holoviews.plotting.bokeh  # noqa: F401  would be imported within the first test's time
import pytest

import scant.training.api  # noqa: F401  likewise, with PyTorch
from scant.events import Metric, Report
from scant.package_data import package_file
from scant.store import Store
from scant.store.recordings import SUFFIX
from scant.studies import STUDIES, entry
from scant.studies.demo_draws import TOLD, scores, sentence
from scant.studies.split import counts_of
from scant_dashboard.controls.verdict_card import card
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.static_page import make

# Sentences on other rows than all held-out ones name them so.
OTHER_ROWS = re.compile(r"bins? of|missing|most confident|splits|session|without|log marginal")
AXES = re.compile(r"bound|labels|outlier rate|^p of")  # names that are axes or no scores, too


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/runs.db")
    yield opened
    opened.close()


def recording(study: str) -> bytes:
    return package_file("recordings", study + SUFFIX).read_bytes()


def told(store: Store, study: str) -> list[str]:
    """The sentences of a recorded page: captions, verdict, notes and limits."""
    make.prepare()

    async def collect() -> list[str]:
        with make.opened(study, make.ReadOnlyService(store, 2.0), {}) as page:
            await page.wait_for_tasks()
            page.layout.complete()
            page.read(at_once=True)
            return [str(view.alt) for view in page.views.every()]

    report = store.report(f"demo-{study}")
    assert report is not None
    sheet = html.unescape(re.sub(r"<[^>]+>", " ", card(report)))
    return [*asyncio.run(collect()), sheet, *report.notes, *report.limits, *entry(study).limits]


def mentions(texts: Sequence[str], names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each score with the number behind its name, and the sentence."""
    names = sorted((n for n in names if not AXES.search(n)), key=len, reverse=True)
    each = "|".join(map(re.escape, names))
    number = re.compile(rf"(?<![\w-])({each})(?: \(%\)|: this run)?:? (-?[\d,]+(?:\.\d+)?%?)(?!\w)")
    parts = [part for text in texts for part in re.split(r"(?<=\.)\s+|; (?=\D*\d+ missing)", text)]
    return [
        (name, value, part)
        for part in parts
        if not OTHER_ROWS.search(part)
        for name, value in number.findall(part)
    ]


def agrees(metrics: Sequence[Metric], name: str, value: str) -> bool:
    """Whether a method has this score, to the digits given; percent may be of a share."""
    bare = value.rstrip("%").replace(",", "")
    unit = 0.501 * 10.0 ** -len(bare.partition(".")[2])  # half of the last digit
    scales = (1.0, 100.0) if value.endswith("%") else (1.0,)
    of_name = [m.value for m in metrics if m.name == name]
    return any(abs(scale * v - float(bare)) <= unit for v in of_name for scale in scales)


@pytest.mark.parametrize("study", STUDIES)
def test_all_mentions_of_a_score_are_those_of_the_report(store: Store, study: str) -> None:
    run = store.import_recording(recording(study))
    report = store.report(run)
    assert report is not None
    found = mentions(told(store, study), [m.name for m in report.metrics])
    assert len({name for name, *_ in found}) >= 2  # the table's caption has two
    wrong = [part for name, value, part in found if not agrees(report.metrics, name, value)]
    assert not wrong
    # Of a report with other scores, each number above would be a wrong one.
    others = [replace(m, value=1.37 * m.value + 0.5) for m in report.metrics]
    assert not any(agrees(others, name, value) for name, value, _ in found)


@pytest.mark.parametrize("study", STUDIES)
def test_nobody_types_a_score_into_the_prose_of_a_page(study: str) -> None:
    names = {score for _, score in scores(study)} | {score for _, score in TOLD[study]}
    story, _ = read_prose(f"scant_dashboard.pages.{study}")
    written = re.compile(rf"({'|'.join(map(re.escape, names))})\D{{0,40}}?-?\d*\.\d")
    assert not [text for text in (story, *entry(study).limits) if written.search(text)]


@pytest.mark.parametrize("study", STUDIES)
def test_the_rows_to_expect_of_a_demonstration_are_those_of_its_run(
    store: Store, study: str
) -> None:
    run = store.run(store.import_recording(recording(study)))
    catalog = entry(study)
    source = next(s for s in catalog.sources if s.name == "demo")
    settings = catalog.settings.parse(catalog.presets["demo"])
    n_rows = source.size(settings) if callable(source.size) else source.size
    assert n_rows is not None
    if catalog.parts is not None:
        expected = catalog.parts(settings, n_rows[0], source.counts)
        assert expected == counts_of(run.metadata, n_rows[0])


@pytest.mark.parametrize("study", STUDIES)
def test_a_recording_is_one_of_the_draws_whose_spread_is_told(store: Store, study: str) -> None:
    report = store.report(store.import_recording(recording(study)))
    assert report is not None
    seed = int(entry(study).settings.parse(entry(study).presets["demo"]).data_seed)
    for method, name in TOLD[study]:
        values = scores(study)[method, name]
        own = next(m.value for m in report.metrics if (m.method, m.name) == (method, name))
        assert own == pytest.approx(values[seed], rel=1e-3)  # the file has four digits
        assert sum(v < own for v in values.values()) not in (0, len(values) - 1)  # no extreme
    assert " draws, " in sentence(study)


def test_the_check_finds_a_number_that_was_typed_in() -> None:
    metrics = Report((Metric("this run", "NMSE", 0.3144),)).metrics
    [(name, value, _)] = mentions(["26 rows selected: NMSE 0.08857."], ["NMSE"])
    assert not agrees(metrics, name, value)
    assert agrees(metrics, name, "0.3144")
    assert agrees(metrics, name, "31%")
