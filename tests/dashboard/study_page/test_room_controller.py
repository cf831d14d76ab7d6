"""A page that asks a room: what is asked when, what its screen shows, where phones go."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import param
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.events import Event, Finished, Metric, Progress, Report, State
from scant.store import Store
from scant.studies import entry
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.frame.site import Site
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.pages.omniglot.shots import Shots
from scant_dashboard.plots.votes import VotesPlot
from scant_dashboard.room import address
from scant_dashboard.room.question import Question, jpeg
from scant_dashboard.study_page.page import StudyPage
from tests.dashboard.fakes import Asker, FakeService, views

LOCAL = "http://127.0.0.1:5006/redshift"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")), tmp_path, "k" * 40)
    made.service.store.import_shipped()
    return made


def opened(site: Site, owner: str = "anna", **query: str) -> StudyPage:
    doc = Document()
    visit = SessionContext(site, doc, owner, query, present="present" in query)
    with set_curdoc(doc):
        return StudyPage(visit, entry("redshift"), views)


def asking(page: StudyPage, question: str, **more: Any) -> GuessFirst:
    made = page.guess_first()
    made.ask(question, **more)
    made.know("It is 7.", 7, (6, 8))
    return made


def test_a_room_is_asked_what_its_presenter_has_in_view(site: Site) -> None:
    page = opened(site, present="1")
    first, second = asking(page, "How many?"), asking(page, "And how often?")
    assert page.room.card is not None
    assert not first.first
    page.room.card.pressed += 1
    room = page.room.room
    assert room is not None
    assert room.present is None
    assert first.first  # questions come before answers from now on
    assert first.hidden
    first.seen = True
    assert room.present is not None
    assert room.present.question.text == "How many?"
    first.seen = False  # scrolled past, to the figure
    assert room.present is not None
    second.seen = True
    assert room.present.question.text == "And how often?"
    page.room.card.step = 1
    assert (room.step, room.title) == (1, "Posterior")
    second.seen = False
    assert room.present is None


def test_guesses_come_to_the_screen_once_they_are_revealed(site: Site) -> None:
    page = opened(site, present="1", guess="1")
    asked = asking(page, "How many?")
    assert page.room.card is not None
    page.room.card.pressed += 1
    asked.seen = True
    room = page.room.room
    assert room is not None
    assert room.present is not None
    for k, value in enumerate((5, 7, 9)):
        room.vote(f"phone {k}", "10.0.0.1", room.present.number, value)
    page.room._show_counts()
    assert (page.room.card.votes, page.room.card.phones) == (3, 3)
    assert (asked.votes, asked.guesses, asked.below.objects) == (3, [], [])
    asked.revealed = True
    assert asked.guesses == [5, 7, 9]
    assert room.ballots[0].revealed
    assert room.ballots[0].answer == "It is 7."
    _, words = asked.below.objects
    assert "In the model's band: 1 of 3" in words.object
    asked.ask("Another?")
    assert asked.below.objects == []


def test_a_room_ends_with_a_press_and_survives_a_page_that_is_loaded_anew(site: Site) -> None:
    page = opened(site, present="1")
    assert page.room.card is not None
    page.room.card.pressed += 1
    code = page.room.code
    assert code is not None
    page.room._on_page_closed(None)
    again = opened(site, present="1", room=code)
    assert again.room.code == code
    assert again.room.room is page.room.room
    assert again.room.room is not None
    assert again.room.room.left is None
    page.room._on_page_closed(None)  # its page is not the room's any more
    assert again.room.room.left is None
    assert again.room.card is not None
    again.room.card.pressed += 1
    assert site.rooms.find(code) is None


@pytest.mark.slow
def test_others_who_come_with_a_rooms_code_follow_it(site: Site) -> None:
    page = opened(site, present="1", guess="1")
    assert opened(site).room.card is None  # nobody presents
    assert page.room.card is not None
    page.room.card.pressed += 1
    room = page.room.room
    assert room is not None
    query = {k: v[0] for k, v in parse_qs(urlsplit(room.page).query).items()}
    assert room.page.startswith("redshift?")
    assert query["room"] == room.code
    assert "present" not in query
    follower = opened(site, owner="berta", **query)
    assert follower.room.card is not None
    assert follower.room.card.follows == room.code
    assert follower.room.room is None
    thief = opened(site, owner="berta", present="1", room=room.code)
    assert thief.room.room is None
    assert opened(site, room="XXXXX").room.card is None


def test_a_page_of_the_room_shows_the_presenters_run_until_it_is_ones_own(site: Site) -> None:
    runs = [site.service.store.add_run("redshift", {}, "demo", "anna") for _ in range(4)]
    page = opened(site, present="1")
    assert page.room.card is not None
    page.room.card.pressed += 1
    room = page.room.room
    assert room is not None
    assert room.run == "demo-redshift"
    query = {k: v[0] for k, v in parse_qs(urlsplit(room.page).query).items()}
    pupils = [opened(site, owner=name, **query) for name in ("berta", "carl")]
    for pupil in pupils:
        pupil.turn = lambda *acts: [act() for act in acts]  # type: ignore[method-assign]
    page.open(runs[0])
    assert f"run={runs[0]}" in room.page
    assert [pupil.run.id for pupil in pupils if pupil.run] == [runs[0]] * 2
    berta, carl = pupils
    assert berta.room.card is not None
    assert carl.room.card is not None
    room.lead(False)
    page.open(runs[1])
    assert [pupil.run.id for pupil in pupils if pupil.run] == [runs[0]] * 2
    room.lead(True)
    assert [pupil.run.id for pupil in pupils if pupil.run] == [runs[1]] * 2
    berta.room.card.follows = ""  # *My own copy*
    carl.open(runs[2])  # a run that he trained
    assert carl.room.card.follows == ""
    page.open(runs[3])
    assert [pupil.run.id for pupil in pupils if pupil.run] == [runs[1], runs[2]]
    late = opened(site, owner="dora", **query)  # a link of before
    assert late.room.card is not None
    assert late.room.card.follows == room.code
    assert late.room._mirror is not None
    late.room._mirror._open()  # as scheduled on its document
    assert late.run is not None
    assert late.run.id == runs[3]


def test_too_many_rooms_are_refused_in_a_sentence(site: Site) -> None:
    for _ in range(3):
        site.rooms.open("anna")
    page = opened(site, present="1")
    assert page.room.card is not None
    page.room.card.pressed += 1
    assert page.room.room is None
    assert "You have 3 rooms open" in page.layout._message.object


# --- the wall ---


class WallService(FakeService):
    """A run service that notes what a wall trains."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.owners: list[str] = []
        self.discarded: list[str] = []

    async def submit(
        self, study: str, values: Any, data: str, owner: str, *, address: str, presenter: str
    ) -> str:
        self.owners.append(owner)
        return owner

    async def discard(self, run: str) -> None:
        self.discarded.append(run)

    def status(self) -> Any:
        return SimpleNamespace(workers=2)


def tell(service: WallService, run: str, *events: Event) -> None:
    for watcher in list(service.watchers):
        watcher(run, list(events))


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_presenter_starts_a_wall_and_its_figure_shows_the_runs(tmp_path: Path) -> None:
    service = WallService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}"))
    service.store.import_shipped()

    async def walk() -> None:
        page = opened(Site(service, tmp_path, "k" * 40), present="1")
        card, wall = page.room.card, page.room.wall
        assert card is not None
        assert wall is not None
        assert not wall.figure.panel.visible
        assert card.wall_step == len(page.steps)
        card.wall_request = {"name": "seed"}  # no room yet
        assert card.wall_count == ""
        card.pressed += 1
        room = page.room.room
        assert room is not None
        card.wall_request = {"name": "training_size", "low": "9", "high": "3"}
        assert "must be below" in card.wall_fault
        card.wall_request = {"name": "seed"}
        assert (card.wall_fault, card.wall_count) == ("", "1 run")
        assert wall.figure.panel.visible
        room.follow("10.0.0.1", lambda: None, "phone")
        room.join_wall("phone", "10.0.0.1")
        await turns()
        assert service.owners == [f"room:{room.code}:{k}" for k in (1, 2)]
        metric = Metric("this run", "RMSE", 0.05)
        z = np.linspace(0, 1, 100)
        report = Report((metric,), {"z_true": z, "z_mean": z})
        for run in service.owners:
            tell(service, run, Progress(1, -1.0, 0.1, 0, 0), Finished(State.FINISHED, "", report))
        await turns()
        assert service.discarded == service.owners
        wall._show()
        assert card.wall_count == "2 runs"
        assert wall.view.alt.startswith("2 runs have ended. RMSE from 0.05 to 0.05.")
        card.step = card.wall_step
        assert room.title == "The wall"
        again = opened(page.visit.site, present="1", room=room.code, step=str(card.wall_step + 1))
        assert again.lesson.warnings == ()
        assert again.room.wall is not None
        assert again.room.wall.view.alt == wall.view.alt
        again.room.wall._card.wall_request = {"name": ""}
        assert room.wall is None
        await turns()
        assert service.watchers == [page.hub.on_events] or service.watchers == []

    asyncio.run(walk())


# --- where phones go ---


@pytest.mark.parametrize(
    ("here", "beyond", "goes", "reached"),
    [
        (LOCAL, False, "http://127.0.0.1:5006/room/K7QPX", False),
        (LOCAL, True, "http://192.168.1.20:5006/room/K7QPX", True),
        ("http://localhost/redshift", True, "http://192.168.1.20/room/K7QPX", True),
        ("http://192.168.1.5:5006/redshift", True, "http://192.168.1.5:5006/room/K7QPX", True),
        ("https://x.example/user/a/proxy/5006/redshift", False,
         "https://x.example/user/a/proxy/5006/room/K7QPX", True),
    ],
)  # fmt: skip
def test_phones_go_where_the_presenter_is(
    monkeypatch: pytest.MonkeyPatch, here: str, beyond: bool, goes: str, reached: bool
) -> None:
    monkeypatch.setattr(address, "network_address", lambda: "192.168.1.20")
    assert address.phone_address(here, "K7QPX", beyond) == (goes, reached)


def test_a_qr_code_is_an_svg_element_without_text_of_the_address() -> None:
    drawn = address.qr_code("http://192.168.1.20:5006/room/K7QPX")
    assert drawn.startswith("<svg")
    assert "script" not in address.qr_code("http://h/<script>")


# --- what is drawn ---


def test_votes_are_drawn_as_their_question_asks() -> None:
    number = VotesPlot(Question("?", unit="%"), [10, 60, 70], 65.0, (55, 75))
    assert number.alt == (
        "3 guesses. They range from 10% to 70%; the median is 60%. The model's answer is 65%, its "
        "band 55% to 75%. In the model's band: 2 of 3."
    )
    choice = VotesPlot(Question("?", ("A", "B")), [0, 1, 1], 1.0)
    assert choice.alt == "3 guesses. 1 A, 2 B. The model's answer is B."
    picture = jpeg(np.full((60, 80, 3), 128, np.uint8))
    band = (0.4, 0.4, 0.6, 0.6)
    point = VotesPlot(Question("?", picture=picture), [(0.5, 0.5), (0.1, 0.9)], (0.5, 0.5), band)
    assert "In the model's band: 1 of 2" in point.alt
    for plot in (number, choice, point):
        assert plot.alt in plot.figures[0].html_attributes["aria-label"]
    for empty in (Question("?"), Question("?", ("A",)), Question("?", picture=picture)):
        assert VotesPlot(empty, [], None).alt.startswith("0 guesses.")


def test_a_point_of_a_curve_is_held_back_until_it_is_guessed() -> None:
    page: Any = Asker()
    page.guess_first = lambda **more: GuessFirst(first=True, **more)
    page.read = lambda at_once=False: None
    view = Shots(page)
    view._of = "the held-out rows"
    view._offer([1, 2, 3], 3)
    view.slider.value = 1
    with param.edit_constant(view.slider):
        view.slider.value_throttled = 0  # the browser tells the number of the stop
    assert view.reveal.question.startswith("With one example of each class: what share of the")
    page.then({"accuracy": np.array([0.5, 0.7]), "nearest": np.array([0.2, 0.4])})
    assert view.container.objects == []
    assert "50" not in view.alt
    view.reveal.revealed = True
    assert view.reveal.answer == "It recognizes 60% on average over the groups."
    assert view.reveal.band == pytest.approx([50, 70])
    assert view.container.objects
    assert "60.0%" in view.alt
    view.slider.value = 2
    view._on_stop()
    page.then({"accuracy": np.array([0.8, 0.8]), "nearest": np.array([0.2, 0.4])})
    assert "80.0%" not in view.alt  # the first point stays, the second is asked about
    assert "60.0%" in view.alt
