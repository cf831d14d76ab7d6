"""Lessons: what a link may say of a page, what is kept back until it is guessed, lost workers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import panel as pn
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.events import Metric, Report
from scant.store import Store
from scant.studies import entry
from scant_dashboard.controls import health_banner
from scant_dashboard.controls.health_banner import NO_WORKER, HealthBanner
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.hidden_until_revealed import (
    HIDDEN_TEXT,
    HiddenUntilRevealed,
    ask_coverage,
    without_coverage,
)
from scant_dashboard.page_parts.lesson import LONGEST, SECTIONS, Lesson, on, read
from scant_dashboard.pages.clamp.queue import guess_candidates
from scant_dashboard.pages.redshift import page as redshift
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import FakeService, Says, views

TITLES = ("Objective", "Coverage of intervals")
PRESETS = ("demo", "as published")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)


def opened(site: Site, make: Any = views, **query: str) -> StudyPage:
    doc = Document()
    with set_curdoc(doc):
        return StudyPage(SessionContext(site, doc, "anna", query), entry("redshift"), make)


def markup(page: StudyPage) -> str:
    return " ".join(str(pane.object) for pane in page.panel.select(pn.pane.HTML))


# --- the link ---


def test_a_lesson_is_read_from_a_query() -> None:
    query = {
        "hide": "data, coverage-of-intervals",
        "text": "  Two\nlines ",
        "step": "2",
        "guess": "",
        "preset": "AS-published",
        "n_basis": "7",
    }
    lesson = read(query, TITLES, 2, PRESETS)
    assert lesson.hide == {"data", "coverage-of-intervals"}
    assert lesson.hides("Coverage of intervals")
    assert lesson.hides("Data")
    assert not lesson.hides("Objective")
    assert (lesson.text, lesson.step, lesson.guess) == ("Two lines", 2, True)
    assert lesson.preset == "as published"
    assert lesson.warnings == ()


def test_former_headings_of_figures_are_still_hidden() -> None:
    titles = ["Posterior mean and deviation"]
    lesson = read({"hide": "what-the-averages-give-away"}, titles, 1, ())
    assert lesson.hides(titles[0])
    assert not lesson.warnings


def test_words_read_back_say_the_same() -> None:
    lesson = Lesson(frozenset({"keep", "objective"}), "Why & how?", 2, True)
    assert read(lesson.query(), TITLES, 2, PRESETS) == lesson
    assert Lesson().query() == {}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"hide": "data,everything"}, "There is nothing called 'everything' to hide; there are"),
        ({"step": "3"}, "a whole number from 1 to 2, which is the number of figures"),
        ({"step": "<b>"}, "got '<b>'"),
        ({"step": "²"}, "got '²'"),
        ({"preset": "best"}, "There is no preset 'best'; there are demo and as published."),
        ({"text": "x" * 301}, "has 301 characters; the first 300 are shown"),
    ],
)
def test_what_makes_no_sense_is_said_and_left_out(query: dict[str, str], said: str) -> None:
    lesson = read(query, TITLES, 2, PRESETS)
    (warning,) = lesson.warnings
    assert said in warning
    assert len(lesson.text) <= LONGEST + 1
    assert lesson.hide <= {"data"}
    assert lesson.step is None
    assert not lesson.preset


@pytest.mark.parametrize(("word", "holds"), [("", True), ("1", True), ("0", False), ("No", False)])
def test_a_word_without_a_value_counts(word: str, holds: bool) -> None:
    assert on({"guess": word}, "guess") is holds
    assert not on({}, "guess")


# --- the page ---


def test_a_page_opens_as_the_lesson_has_it(site: Site) -> None:
    whole = markup(opened(site))
    for title in ("story", "Data", "Settings", "Keep", "Runs", "Limits and sources"):
        assert title == "story" or f">{title}</h2>" in whole
    page = opened(
        site,
        hide="story,data,settings,keep,runs,limits-and-sources,posterior,train,replay,moon",
        text="Look <b>twice</b>",
        n_basis="13",
    )
    observed = markup(page)
    for title in ("Data", "Settings", "Keep", "Runs", "Limits and sources"):
        assert f">{title}</h2>" not in observed
    assert "Look &lt;b&gt;twice&lt;/b&gt;" in observed
    assert "nothing called &#x27;moon&#x27; to hide" in observed
    every = set(page.panel.select())
    assert page.bar.buttons["Train"] not in every
    assert page.replay.panel not in every
    assert not page.panel.select(pn.pane.Markdown)  # the story
    assert page.form.raw_values()["n_basis"] == "13"


def test_hidden_figures_and_sections_stay_hidden_when_a_run_has_ended(site: Site) -> None:
    site.service.store.import_shipped()
    page = opened(site, hide="posterior,result")
    shown = {f.view.title for f in page.figures.values() if f.panel.visible}
    assert shown == {"Objective", "Figures", "Questions"}
    assert not page.layout._result.visible
    assert page.layout._explore.visible


@pytest.mark.slow
def test_a_preset_fills_the_form_and_settings_hold_over_it(site: Site) -> None:
    site.service.store.import_shipped()
    name, preset = next((n, p) for n, p in entry("redshift").presets.items() if p)
    raw_values = opened(site, preset=name, seed="7").form.raw_values()
    assert raw_values["seed"] == "7"
    assert {k: str(raw_values[k]) for k in preset} == {k: str(v) for k, v in preset.items()}
    beside_a_run = opened(site, preset=name, run="demo-redshift")
    assert beside_a_run.run is not None
    assert {k: str(beside_a_run.form.raw_values()[k]) for k in preset} == {
        k: str(v) for k, v in preset.items()
    }


def test_a_link_is_made_that_opens_as_it_says(site: Site) -> None:
    site.service.store.import_shipped()
    maker = opened(site).keep.lesson
    assert not maker._form.objects  # built only when it is asked for
    maker._form.visible = True
    presenter = [site.service.presenter("anna")]
    only = {"run": ["demo-redshift"], "presenter": presenter}
    assert parse_qs(urlsplit(maker.link.value).query) == only
    maker.hide.value = ["data", "figures"]
    maker.text_input.value_input = "  What is\nscarce? "
    maker.step.value, maker.guess.value, maker.present.value = 2, True, True
    made = parse_qs(urlsplit(maker.link.value).query)
    assert made == {
        "run": ["demo-redshift"], "hide": ["data,figures"], "text": ["What is scarce?"],
        "step": ["2"], "guess": ["1"], "present": ["1"], "presenter": presenter,
    }  # fmt: skip
    page = opened(site, **{k: v[0] for k, v in made.items()})
    assert page.lesson.warnings == ()
    assert page.lesson.hides("Figures")
    assert page.guessing


def test_a_link_names_a_preset_or_the_settings_of_the_form(site: Site) -> None:
    page = opened(site)
    maker = page.keep.lesson
    maker._form.visible = True
    page.form.widgets["n_basis"].value = "17"
    maker.begin.value = "the settings in the form"
    made = parse_qs(urlsplit(maker.link.value).query)
    assert made.pop("presenter") == [site.service.presenter("anna")]
    assert made == {"n_basis": ["17"], "data_seed": ["0"], "seed": ["0"]}
    page.form.widgets["n_basis"].value = "many"
    maker.write()
    assert "n_basis" in page.layout._message.object
    name = next(iter(entry("redshift").presets))
    maker.begin.value = f"preset:{name}"
    assert parse_qs(urlsplit(maker.link.value).query)["preset"] == [name]


def test_the_parts_that_can_be_hidden_have_names_of_their_own() -> None:
    for study in ("redshift", "aggregation"):
        page_titles = {"objective", "figures"}
        assert not page_titles & SECTIONS.keys(), study


# --- guess, then reveal ---


def test_an_answer_leaves_the_server_only_when_it_is_revealed() -> None:
    reveal, turned = GuessFirst(first=True), []
    reveal.watch(lambda: turned.append(reveal.hidden))
    reveal.ask("How many?")
    reveal.know("Seven do.", 7)
    assert reveal.hidden
    assert (reveal.answer, reveal.truth) == ("", None)
    reveal.revealed = True
    assert (reveal.answer, reveal.truth) == ("Seven do.", 7)
    reveal.ask("And now?")
    assert (reveal.answer, reveal.truth, reveal.revealed) == ("", None, False)
    reveal.know("Eight do.", 8)
    reveal.revealed = True
    reveal.first = False
    assert turned[:3] == [True, False, True]
    assert (reveal.answer, reveal.revealed) == ("", False)
    reveal.first = True
    assert reveal.hidden


def told() -> tuple[Report, dict[str, Any]]:
    metrics = (
        Metric("this run", "RMSE", 0.05),
        Metric("this run", "coverage of the 95% interval", 93.0),
    )
    coverage = np.array([[0.5, 0.95], [0.45, 0.93]])
    notes = ("The 95% intervals hold 93.0% of the test rows.", "Another note.")
    return Report(metrics, {"coverage": coverage}, notes), {"rows": {"test": 200}}


class Page:
    """What `HiddenUntilRevealed` needs of the frame."""

    run = object()

    def __init__(self) -> None:
        self.reads = 0

    def read(self, at_once: bool = False) -> None:
        self.reads += 1


@pytest.mark.parametrize("first", [True, False])
def test_coverage_is_kept_back_wherever_it_would_be_said(first: bool) -> None:
    page: Any = Page()
    reveal = GuessFirst(first=first)
    heard: list[Report] = []
    table: Any = Says("Figures")
    table.update = lambda report, metadata: heard.append(report)
    plot = Says("Coverage")
    figures = HiddenUntilRevealed(page, table, reveal, less=without_coverage, ask=ask_coverage)
    covered = HiddenUntilRevealed(page, plot, reveal, above=True)
    report, metadata = told()
    for view in (figures, covered):
        view.update(report, metadata)
    assert "200 held-out values" in reveal.question
    if first:
        assert [m.name for m in heard[-1].metrics] == ["RMSE"]
        assert heard[-1].notes == ("Another note.",)
        assert covered.alt == HIDDEN_TEXT
        assert plot.alt == "cleared"
        assert not plot.panel.visible
        reveal.revealed = True
        assert reveal.answer == "186 of 200 intervals contain their value, 93 of a hundred."
        assert reveal.truth == pytest.approx(93)
    assert heard[-1] == report
    assert covered.alt == plot.alt == "report of 2 figures"
    assert plot.panel.visible
    query = reveal.turn
    figures.update(report, metadata)  # a replay that has ended shows the same report again
    assert reveal.turn == query


def test_without_held_out_rows_there_is_nothing_to_guess() -> None:
    reveal = GuessFirst(first=True)
    ask_coverage(reveal, Report((), {"coverage": np.empty((2, 0))}), {"rows": {"test": 0}})
    assert reveal.question == ""
    assert not reveal.hidden


def test_a_missing_band_is_shown_nowhere_before_it_is_revealed(site: Site) -> None:
    site.service.store.import_shipped()
    page = opened(site, redshift.views, guess="1")
    query: list[tuple[str, dict[str, Any]]] = []
    page.ask = lambda question, then, **more: query.append((question, more))  # type: ignore[method-assign]
    view = next(v for v in page.views.explore if v.title.startswith("What if an input")).view()
    before = view.alt
    worse = dict(page.run.report.arrays) | {  # type: ignore[union-attr]
        "metrics": np.array([0.14, 1.0, 90.0, 60.0, *np.zeros(7)])
    }
    worse["z_mean"] = worse["z_mean"] + 0.1
    query.clear()
    view.bands.value = view.bands.options[1:]
    first = view.bands.options[0]
    assert view.reveal.question == f"Without {first}: by what factor will the RMSE grow?"
    assert ("density", {"row": view._row, "off": []}) in query
    assert ("density", {"row": view._row, "off": [first]}) not in query
    view._answered(worse)
    view._answered_whole({"metrics": np.array([0.07, 1.5, 98.0, 80.0, *np.zeros(7)])})
    assert view.alt == before
    assert view.reading.object == ""
    view.reveal.revealed = True
    assert view.reveal.answer == "RMSE grows by a factor of 2.0."
    assert view.alt != before
    assert f"without {first}" in view.reading.object
    assert query[-1] == ("density", {"row": view._row, "off": [first]})


def test_the_model_asks_about_one_of_four_patches() -> None:
    n = 8
    arrays = {
        "pool_p": np.array([0.5, 0.9, 0.1, 0.45, 0.02, 0.99, 0.3, 0.01]),
        "role": np.array([0, 0, 0, 0, 0, 0, 0, 1]),
        "asked": np.array([1]),
        "queue": np.array([0, 3]),
    }
    assert guess_candidates(arrays, 0) == [
        0,
        4,
        5,
        6,
    ]  # 1 was asked, 3 is in the queue, 7 is held out
    arrays["asked"] = np.arange(1, n)
    assert guess_candidates(arrays, 0) == [0]


# --- nobody to train ---


@pytest.mark.slow
def test_train_says_why_it_cannot_and_recordings_can_still_be_replayed(site: Site) -> None:
    site.service.store.import_shipped()
    site.fault = "Runs cannot start on this server: no workers."
    page = opened(site)
    page._train()
    assert page.bar.status.shown["text"] == f"not started: {site.fault}"
    assert site.fault in page.trouble.panel.object
    page.replay._begin()
    page.replay._seek(page.replay._slider.end)
    assert page.replay._scrubber.visible
    assert "replaying a recording" in page.bar.status.shown["text"]
    assert "Recorded" in markup(page)


def test_lost_workers_are_told_of_once_nobody_replaces_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(health_banner, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    message = HealthBanner(site, Document())
    assert not message.panel.visible
    site.service.up = False
    message._check()
    assert not message.panel.visible
    clock[0] += health_banner.PATIENCE + 1
    message._check()
    assert message.panel.visible
    assert NO_WORKER in message.panel.object
    site.service.up = True
    message._check()
    assert not message.panel.visible
