"""The clamp page's own views: labels into the store first, the model asked with all that stand."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dashboard.controls.labelling import Desk as Component
from dashboard.controls.labelling import card
from dashboard.pages.clamp import hidden, otherwise, views
from dashboard.pages.clamp_label import Desk, Labels, agreement
from dashboard.pages.clamp_picture import CHOOSE, NO_PICTURES, Picture
from dashboard.pages.clamp_pool import Efficiency, Pool
from dashboard.pages.clamp_queue import NO_IMAGES, Queue
from dashboard.pages.clamp_session import DONE, NONE_OF_OTHERS, OTHERS, Session
from engine.catalog.clamp import ENTRY, ClampSettings
from engine.errors import BadInput, Unavailable
from engine.events import Report, Snapshot
from engine.store import Store

N = 6
WORDS: dict[str, Any] = {
    "classes": ["no clamp", "clamp"],
    "methods": ["GP, active", "GP, random"],
    "compared": ["GP, active", "GP, random"],
    "pictures": ["a.jpg", "b.jpg"],
    "images": True,
    "columns": [],
    "rows": {"pool": N, "validation": 0, "test": 0},
}


def arrays() -> dict[str, np.ndarray]:
    return {
        "labels": np.array([2.0, 4.0]),
        "f1": np.array([[0.5, 0.8], [0.4, 0.5]]),
        "precision": np.array([[0.5, 0.9], [0.4, 0.5]]),
        "recall": np.array([[0.5, 0.7], [0.4, 0.5]]),
        "f1_random_sd": np.array([0.1, 0.1]),
        "pool_xy": np.arange(2.0 * N).reshape(N, 2),
        "pool_p": np.linspace(0, 1, N),
        "row": np.arange(N) + 100,
        "picture": np.array([0, 0, 0, 1, 1, 1]),
        "asked": np.array([0, 5]),
        "asked_label": np.array([0, 1]),
        "queue": np.array([2, 3]),
        "queue_p": np.array([0.4, 0.6]),
    }


class Service:
    """Answers as the study does, from the labels that it is sent; keeps what it was asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.down = False

    async def explore(self, run: str, question: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((question, asked))
        if self.down:
            raise Unavailable("No worker is up at the moment; try again in a few seconds.")
        if question == "patches":
            k = len(asked["rows"])
            return {
                "image": np.full((k, 8, 8, 3), 90, np.uint8),
                "thumb": np.full((k, 4, 8, 3), 90, np.uint8),
                "box": np.tile([0.0, 0.0, 0.5, 1.0], (k, 1)),
                "x": np.empty((k, 0)),
            }
        done = {row for row, _ in asked["labels"]}
        queue = [i for i in range(N) if i not in done][: asked["batch"]]
        return {
            "queue": np.array(queue, int),
            "queue_p": np.full(len(queue), 0.5),
            "reason": np.array([f"p = 0.50, row {i}" for i in queue], str),
            "p": np.linspace(0, 1, N),
            "f1": np.array([0.7]),
            "precision": np.array([0.8]),
            "recall": np.array([0.6]),
            "advice": np.array(["Go on: F1 still rises."]),
        }

    async def submit(self, study: str, values: Any, data: str, owner: str) -> str:
        self.asked.append(("submit", dict(values)))
        return "new"


class Frame:
    """Stands for the page's frame; work in the background is done at once."""

    mine, present = True, False
    entry = ENTRY

    def __init__(self, store: Store) -> None:
        self.service = Service(store)
        doc = SimpleNamespace(
            add_periodic_callback=lambda act, _: act, remove_periodic_callback=lambda _: None
        )
        self.visit = SimpleNamespace(doc=doc, owner="me")
        self.opened: list[str] = []
        self.questions: list[tuple[str, dict[str, Any]]] = []
        self.then: Callable[[Any], None] = lambda _: None

    def ask(self, question: str, then: Callable[[Any], None], **asked: Any) -> None:
        self.questions.append((question, asked))
        self.then = then

    def background(
        self,
        work: Any,
        then: Callable[[Any], None],
        refused: Callable[[str], None] | None = None,
        last: Callable[[], None] = lambda: None,
    ) -> None:
        try:
            then(asyncio.run(work))
        except (BadInput, Unavailable) as error:
            (refused or (lambda _: None))(str(error))
        last()

    def open(self, run: str) -> None:
        self.opened.append(run)

    def turn(self, *acts: Callable[[], None]) -> None:
        for act in acts:
            act()

    def address(self) -> None: ...

    def read(self, at_once: bool = False) -> None: ...

    def link(self, **query: Any) -> str:
        return "./clamp?"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/runs.db")
    yield opened
    opened.close()


@pytest.fixture
def frame(store: Store) -> Any:
    return Frame(store)


def run(words: dict[str, Any] | None = None, **settings: Any) -> Any:
    return SimpleNamespace(
        id="r",
        words=WORDS | (words or {}),
        report=Report((), arrays()),
        record=SimpleNamespace(
            settings=ClampSettings.parse({"expert": "you"} | settings).values(), data="demo"
        ),
        recorded=False,
    )


class Press:
    """A desk whose browser is this test."""

    def __init__(self, frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: list[dict[str, Any]] = []
        self.learnt: list[int] = []
        monkeypatch.setattr(Component, "_send_msg", lambda _, data: self.heard.append(data))
        self.session = Session(
            frame, lambda _, labels: self.learnt.append(len(labels)), lambda: None
        )
        self.session.open(run())
        self.turn = 0

    def __call__(self, act: str, who: str = "ada", **more: Any) -> dict[str, Any]:
        self.turn += 1
        message = {"act": act, "turn": self.turn, "who": who, **more}
        self.session.desk._handle_msg(message)
        answers = [h for h in self.heard if h["turn"] == self.turn]
        return answers[-1] if answers else {}

    @property
    def queue(self) -> list[int]:
        return [one["row"] for one in self.session.desk.queue]


@pytest.fixture
def press(frame: Any, monkeypatch: pytest.MonkeyPatch) -> Press:
    return Press(frame, monkeypatch)


def test_a_label_is_in_the_store_before_the_press_is_answered(
    press: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert press.queue == [0, 1, 2, 3, 4, 5]
    held: list[list[int]] = []
    monkeypatch.setattr(
        Component, "_send_msg", lambda _, data: held.append([v.item for v in store.labels("r")])
    )
    press("label", row=2, value=1)
    assert held == [[2]]
    (label,) = store.labels("r")
    assert (label.label, label.labeller) == ("clamp", "ada")
    _, asked = [a for a in frame.service.asked if a[0] == "ask"][-1]
    assert asked["labels"] == [[2, 1]]
    assert press.queue == [0, 1, 3, 4, 5]


def test_a_label_that_cannot_be_kept_is_said_and_the_patch_stays(
    press: Press, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise BadInput("The disk is full.")

    monkeypatch.setattr(Store, "add_label", full)
    answer = press("label", row=2, value=1)
    assert answer["error"] == "Not saved: The disk is full."
    assert "next" not in answer
    monkeypatch.undo()
    assert store.labels("r") == []


def test_a_row_that_is_none_of_the_pool_is_refused(press: Press, store: Store) -> None:
    assert "no patch 99" in press("label", row=99, value=0)["error"]
    assert store.labels("r") == []


def test_undo_takes_back_the_last_act_and_shows_its_patch_again(press: Press, store: Store) -> None:
    press("label", row=0, value=0)
    press("skip", row=1)
    assert press.queue == [2, 3, 4, 5]
    assert press("undo")["back"] == 1
    press("skip", row=1)
    press("undo")
    answer = press("undo")
    assert answer["back"] == 0
    assert [v.label for v in store.labels("r")] == ["no clamp", ""]
    assert press.session.standing == {}
    assert press("undo")["said"] == "There is nothing of yours to undo."
    assert not press.session.desk.undoable


def test_after_a_reload_labels_are_read_back_and_can_be_undone(
    press: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    press("label", row=0, value=0)
    press("label", row=1, value=1)
    fresh = Press(frame, monkeypatch)
    fresh("ready")
    assert [h["row"] for h in fresh.session.desk.history] == [1, 0]
    assert fresh.queue == [2, 3, 4, 5]
    assert fresh("undo")["back"] == 1
    assert list(fresh.session.standing) == [0]


def test_another_window_is_heard_of(
    press: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Press(frame, monkeypatch)
    other("label", who="bo", row=3, value=1)
    press.session._read()
    assert [h["who"] for h in press.session.desk.history] == ["bo"]
    assert 3 not in press.queue


def test_a_label_is_changed_from_the_history(press: Press, store: Store) -> None:
    press("label", row=0, value=0)
    assert press("again", row=0)["back"] == 0
    press("label", row=0, value=1)
    assert press.session.standing[0].label == "clamp"
    assert len(store.labels("r")) == 2


def test_a_second_person_is_asked_what_the_first_has_labelled(press: Press) -> None:
    press("label", row=0, value=0)
    press("label", row=4, value=1)
    press.session.choose(OTHERS)
    assert press.queue == []
    assert press.session.desk.idle == NONE_OF_OTHERS
    press("who", who="bo")
    assert press.queue == [0, 4]
    press("label", who="bo", row=0, value=1)
    assert press.queue == [4]


def test_every_patch_is_sent_once_unless_the_browser_begins_anew(press: Press, frame: Any) -> None:
    def sent() -> list[int]:
        return [r for q, a in frame.service.asked if q == "patches" for r in a["rows"]]

    press("label", row=0, value=0)
    assert sorted(sent()) == list(range(N))
    press("ready")
    assert sorted(sent()) == sorted([*range(N), *range(N)])


def test_a_model_that_cannot_answer_is_asked_again(press: Press, frame: Any) -> None:
    frame.service.down = True
    press("label", row=0, value=0)
    assert press.learnt == [0]
    frame.service.down = False
    press("label", row=1, value=0)
    assert press.learnt == [0, 2]


def test_the_pool_may_run_out(press: Press) -> None:
    for row in range(N):
        press("label", row=row, value=row % 2)
    assert press.queue == []
    assert press.session.desk.idle == DONE


def test_one_question_at_a_time_and_the_latest_labels_win(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    press = Press(frame, monkeypatch)
    waiting: list[Callable[[], None]] = []
    straight = frame.background

    def later(work: Any, then: Any, refused: Any = None, last: Any = lambda: None) -> None:
        if getattr(work, "__name__", "") == "explore":
            waiting.append(lambda: straight(work, then, refused, last))
        else:
            straight(work, then, refused, last)

    monkeypatch.setattr(frame, "background", later)
    for row in (0, 1, 2):
        press("label", row=row, value=0)
    assert len(waiting) == 1
    waiting.pop()()
    assert press.learnt[-1] == 1
    assert len(waiting) == 1
    waiting.pop()()
    assert press.learnt[-1] == 3
    assert waiting == []


def desk_of(frame: Any) -> tuple[Desk, Labels]:
    desk = Desk(frame, lambda *_: None)
    return desk, Labels(frame, desk)


def test_the_desk_opens_for_a_person_and_invites_beside_a_simulated_expert(frame: Any) -> None:
    desk, labels = desk_of(frame)
    simulated = run(expert="simulated")
    desk.clear(simulated)
    assert desk.invite.visible
    assert not desk.room.visible
    desk.invite.clicks += 1
    assert frame.service.asked[-1][0] == "submit"
    assert frame.service.asked[-1][1]["expert"] == "you"
    assert frame.opened == ["new"]
    desk.clear(run())
    assert not desk.invite.visible
    labels.open(run())
    assert desk.room.visible
    assert desk.alt.startswith("0 of 6 patches labelled: 0 no clamp, 0 clamp.")


def test_labels_and_predictions_are_taken_home(frame: Any, store: Store) -> None:
    store.add_label("r", 0, "clamp", "=ada")
    store.add_label("r", 0, "no clamp", "bo")
    store.add_label("r", 1, "clamp", "bo")
    store.add_label("r", 1, "", "bo")
    desk, labels = desk_of(frame)
    labels.open(run())
    given = list(csv.DictReader(labels.labels_csv().splitlines()))
    assert [g["row"] for g in given] == ["100", "100", "101", "101"]  # of the table
    assert [g["stands"] for g in given] == ["False", "True", "False", "False"]
    assert not given[0]["labeller"].startswith("=")
    assert given[0]["time"].endswith("+00:00")
    pool = list(csv.DictReader(labels.pool_csv().splitlines()))
    assert [p["row"] for p in pool] == [str(100 + i) for i in range(N)]
    assert [p["given"] for p in pool] == ["no clamp", *[""] * (N - 1)]
    assert {p["label"] for p in pool} == {"no clamp", "clamp"}
    assert min(float(p["probability"]) for p in pool) >= 0.5
    assert "bo" in labels.table.object
    assert "1 of 6 patches labelled" in desk.alt
    assert "F1 still rises" in desk.alt


def test_two_labellers_agreement_is_said() -> None:
    ada = {1: "clamp", 2: "no", 3: "no", 4: "clamp"}
    bo = {1: "clamp", 2: "no", 3: "clamp", 4: "clamp", 9: "no"}
    said = agreement({"ada": ada, "bo": bo, "cy": {1: "clamp"}})
    assert said.startswith("ada and bo both labelled 4 patches and agree on 75%")
    assert "kappa is 0.50" in said
    assert agreement({"ada": ada}) == ""
    assert "have not labelled the same" in agreement({"ada": {1: "no"}, "bo": {2: "no"}})


def test_pool_and_scores_follow_snapshots_and_then_a_persons_labels() -> None:
    pool, scores = Pool(), Efficiency()
    for view in (pool, scores):
        view.update(Snapshot(1, arrays()), WORDS)
    assert "2 of 6 patches are labelled" in pool.alt
    assert "GP, active 0.80 with 4, GP, random 0.50 with 4" in scores.alt
    scores.score.value = "recall"
    assert "GP, active 0.70 with 4" in scores.alt
    answer = {name: np.array([v]) for name, v in (("f1", 0.7), ("precision", 0.8), ("recall", 0.6))}
    label: Any = SimpleNamespace(label="clamp")
    pool.learnt(answer | {"p": np.ones(N), "queue": np.array([1])}, {3: label})
    assert "1 of 6 patches are labelled" in pool.alt
    scores.learnt(answer, {3: label})
    assert "your labels 0.60 with 1" in scores.alt
    scores.learnt(answer, {})  # taken back
    assert "with 0" in scores.alt
    scores.clear(None)  # type: ignore[arg-type]
    assert scores._own == {}


def test_the_queue_shows_images_and_a_click_opens_the_picture(frame: Any) -> None:
    queue = Queue(frame)
    picked: list[int] = []
    queue.picked = picked.append
    queue.open(run())
    assert frame.questions == [("patches", {"rows": [2, 3]})]
    frame.then({"image": np.full((2, 8, 8, 3), 200, np.uint8)})
    assert "The next 2 patches, p from 0.40 to 0.60" in queue.alt
    queue.plot.frames.selected.indices = [1]
    assert picked == [3]
    queue.clear(None)  # type: ignore[arg-type]
    queue.open(run({"images": False}))
    assert queue.alt.startswith(NO_IMAGES)


def test_a_crowd_does_not_ask_all_at_once(frame: Any) -> None:
    frame.mine = False
    Queue(frame).open(run(expert="simulated"))
    Picture(frame).open(run(expert="simulated"))
    assert frame.questions == []


def test_a_picture_shows_every_patch_and_a_verdict(frame: Any) -> None:
    picture = Picture(frame, lambda: [[1, 0]])
    assert picture.alt == CHOOSE
    picture.open(run())
    assert frame.questions == [("picture", {"row": 3, "labels": [[1, 0]]})]  # the likeliest
    frame.then(
        {
            "image": np.zeros((90, 160, 3), np.uint8),
            "boxes": np.array([[0.0, 0, 80, 90], [80, 0, 160, 90]]),
            "p": np.array([0.2, 0.8]),
            "rows": np.array([3, 4]),
            "truth": np.array([0, 1]),
            "verdict": np.array([0.8]),
        }
    )
    assert "With p = 0.80 this picture shows clamp somewhere; of its 2 patches 1" in picture.alt
    assert "By the table 1 of them do." in picture.alt
    assert picture.plot.boxes.data["right"].max() <= 160
    picture.which.value = 0
    assert frame.questions[-1][1]["row"] == 0
    picture.clear(None)  # type: ignore[arg-type]
    picture.open(run({"pictures": []}))
    assert picture.alt == NO_PICTURES


def test_what_a_run_has_nothing_for_is_hidden() -> None:
    assert {"Objective", "Figures"} <= hidden(run())
    assert "The labels" not in hidden(run())
    assert hidden(run(expert="simulated")) == {"The labels"}
    assert "A whole picture" in hidden(run({"pictures": []}))


def test_otherwise_offers_what_this_run_did_not_do() -> None:
    said, others = otherwise(run(expert="simulated"))
    assert said == "This run asked by band."
    assert {"acquisition": "random"} in [o.settings for o in others]
    assert {"acquisition": "band"} not in [o.settings for o in others]
    for other in others:  # every link leads to settings that there are
        ClampSettings.parse(run(expert="simulated").record.settings | other.settings)


def test_every_view_has_a_heading_of_its_own(frame: Any) -> None:
    made = views(frame)
    titles = [view.title for view in made.every()]
    assert len(titles) == len(set(titles))
    assert {title for title, _ in made.steps} <= set(titles)


def test_a_card_holds_what_the_browser_needs() -> None:
    none = np.empty((0, 0, 3), np.uint8)
    made = card(3, np.zeros((4, 4, 3), np.uint8), np.zeros((2, 4, 3), np.uint8), np.zeros(4))
    assert made["image"].startswith("data:image/jpeg;base64,")
    assert made["shape"] == 2.0
    bare = card(3, none, none, np.zeros(4), [("area", 1.23456)])
    assert bare == {"row": 3, "features": [["area", "1.235"]]}
