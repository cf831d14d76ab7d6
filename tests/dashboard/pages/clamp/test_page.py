"""The clamp page's own views: labels into the store first, the model asked with all that stand."""

from __future__ import annotations

import asyncio
import csv
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bokeh.events import Tap

from scant.events import Report, Snapshot
from scant.store import Store
from scant.store.records import Label
from scant.studies.clamp.settings import ClampSettings
from scant.tables.annotations.formats import read
from scant_dashboard.controls.labeling_widget import card
from scant_dashboard.pages.clamp.labeling_view import LabelingView
from scant_dashboard.pages.clamp.labels_view import Labels
from scant_dashboard.pages.clamp.page import alternatives, hidden, views
from scant_dashboard.pages.clamp.picture import CHOOSE, NO_PICTURES, Picture
from scant_dashboard.pages.clamp.pool import Efficiency, PoolView
from scant_dashboard.pages.clamp.queue import NO_IMAGES, Queue
from scant_dashboard.pages.clamp.session_labels import SessionLabels
from scant_dashboard.pages.clamp.session_lists import agreement
from tests.dashboard.pages.clamp.labeling_fakes import METADATA, N, arrays, run


def desk_of(frame: Any) -> tuple[LabelingView, Labels]:
    desk = LabelingView(frame, lambda *_: None)
    return desk, Labels(frame, desk)


def test_the_desk_opens_for_a_person_and_invites_beside_a_simulated_expert(frame: Any) -> None:
    desk, labels = desk_of(frame)
    simulated = run(expert="simulated")
    desk.clear(simulated)
    assert desk.invite.visible
    assert not desk.container.visible
    desk.invite.clicks += 1
    assert frame.service.asked[-1][0] == "submit"
    assert frame.service.asked[-1][1]["expert"] == "you"
    assert frame.opened == ["new"]
    desk.clear(run())
    assert not desk.invite.visible
    undecided = run()
    undecided.record.settings["expert"] = "auto"
    desk.clear(undecided)
    assert not desk.invite.visible
    desk.update(Snapshot(1, arrays()), METADATA | {"expert": "simulated"})
    assert desk.invite.visible
    labels.open(run())
    assert desk.container.visible
    assert not desk.invite.visible
    assert desk.alt.startswith("0 of 6 rows labeled: 0 no clamp, 0 clamp.")


def test_labels_and_predictions_are_taken_home(frame: Any, store: Store) -> None:
    store.add_label("r", 0, "clamp", "=ada")
    store.add_label("r", 0, "no clamp", "bo")
    store.add_label("r", 1, "clamp", "bo")
    store.add_label("r", 1, "", "bo")
    store.add_label("r", 4, "", "bo", unsure=True)
    desk, labels = desk_of(frame)
    labels.open(run())
    given = list(csv.DictReader(asyncio.run(labels.history()).splitlines()))
    assert [g["row"] for g in given] == ["100", "100", "101", "101", "104"]  # of the table
    assert [g["stands"] for g in given] == ["False", "True", "False", "False", "True"]
    assert [g["unsure"] for g in given] == ["False"] * 4 + ["True"]
    assert (given[4]["picture"], given[4]["left"], given[4]["width"]) == ("b.jpg", "30.0", "20.0")
    assert not given[0]["labeler"].startswith("=")
    assert given[0]["time"].endswith("+00:00")
    out = read(asyncio.run(labels.labels_file()), "labels.csv")
    assert [(a.picture, a.box, a.label, a.labeler, a.unsure) for a in out] == [
        ("a.jpg", (0.0, 0.0, 20.0, 20.0), "no clamp", "bo", False),
        ("b.jpg", (30.0, 0.0, 20.0, 20.0), "", "bo", True),
    ]
    labels.format.value = "YOLO"
    assert labels.labels.filename == "labels.yolo.zip"
    assert "Without labelers" in labels.format_limits.object
    out = read(asyncio.run(labels.labels_file()), "labels.zip")
    assert [a.label for a in out] == ["no clamp"]  # has no place for doubts
    pool = list(csv.DictReader(labels.pool_csv().splitlines()))
    assert [p["row"] for p in pool] == [str(100 + i) for i in range(N)]
    assert [p["given"] for p in pool] == ["no clamp", "", "", "", "unsure", ""]
    assert {p["label"] for p in pool} == {"no clamp", "clamp"}
    assert min(float(p["probability"]) for p in pool) >= 0.5
    assert "bo" in labels.table.object
    assert "1 of 6 rows labeled: 1 no clamp, 0 clamp; 1 unsure; 1 to be decided." in desk.alt
    assert "F1 still rises" in desk.alt


def test_labels_are_loaded_and_what_was_not_is_said(frame: Any, store: Store) -> None:
    desk, labels = desk_of(frame)
    labels.open(run())
    file = (
        "picture,left,top,width,height,label,labeler,unsure\n"
        "a.jpg,0,0,20,20,Clamp,cy,\n"
        "folder/b.jpg,32,1,20,20,no clamp,,\n"
        "b.jpg,60,0,20,20,,,yes\n"
        "b.jpg,0,0,20,20,rust,,\n"
        "c.jpg,0,0,20,20,clamp,,\n"
    )
    labels.load.load("given.csv", file.encode())
    said = labels.load._message.object
    assert "given.csv: 3 labels of 3 rows loaded, 1 of them unsure" in said
    assert (
        "; not matched with a row of this pool: 1; of classes that this session does not have "
        "(rust): 1." in said
    )
    assert [(v.item, v.label, v.labeler, v.role) for v in store.labels("r")] == [
        (0, "clamp", "cy", "imported"), (4, "no clamp", "imported", "imported"),
        (5, "unsure", "imported", "imported"),
    ]  # fmt: skip
    assert "2 of 6 rows labeled: 1 no clamp, 1 clamp; 1 unsure." in desk.alt
    labels.load.load("given.csv", file.encode())
    assert "0 labels of 0 rows loaded; already here: 3;" in labels.load._message.object
    assert len(store.labels("r")) == 3
    labels.load.load("given.csv", b"no header")
    assert "role='alert'" in labels.load._message.object
    frame.visit.owner = ""
    labels.load.load("given.csv", file.encode())
    assert "allow this page" in labels.load._message.object


def test_two_labelers_agreement_is_said() -> None:
    def said(**people: str) -> str:
        given = [
            Label(item, label, who, 0.0, who)
            for who, own in people.items()
            for item, label in enumerate(own.split())
            if label != "-"
        ]
        return agreement(SessionLabels(given))

    message = said(ada="clamp no no clamp", bo="clamp no clamp clamp no", cy="clamp")
    assert message.startswith("ada and bo both labeled 4 rows and agree on 75%")
    assert "kappa is 0.50" in message
    assert said(ada="clamp no") == ""
    assert "have not labeled the same" in said(ada="no", bo="- no")


def test_pool_and_scores_follow_snapshots_and_then_a_persons_labels() -> None:
    pool, scores = PoolView(), Efficiency()
    for view in (pool, scores):
        view.update(Snapshot(1, arrays()), METADATA)
    assert "2 of 6 rows are labeled" in pool.alt
    assert "GP, active 0.80 with 4 labels, GP, random 0.50 with 4 labels" in scores.alt
    scores.score.value = "recall"
    assert "GP, active 0.70 with 4" in scores.alt
    answer = {name: np.array([v]) for name, v in (("f1", 0.7), ("precision", 0.8), ("recall", 0.6))}
    label: Any = SimpleNamespace(label="clamp")
    pool.on_answer(answer | {"p": np.ones(N), "queue": np.array([1])}, {3: label})
    assert "1 of 6 rows are labeled" in pool.alt
    scores.on_answer(answer, {3: label})
    assert "your labels 0.60 with 1" in scores.alt
    assert "recall by cross-validation on the labels that the model learns from: " in scores.alt
    scores.on_answer(answer | {"held_out": np.array([1.0])}, {3: label})
    assert "recall of held-out rows: " in scores.alt
    scores.on_answer(answer, {})  # taken back
    assert "with 0" in scores.alt
    scores.clear(None)  # type: ignore[arg-type]
    assert scores._own == {}


def test_the_queue_shows_images_and_a_click_opens_the_picture(frame: Any) -> None:
    queue = Queue(frame)
    picked: list[int] = []
    queue.picked = picked.append
    queue.open(run())
    assert frame.asked == [("patches", {"rows": [2, 3]})]
    frame.then({"image": np.full((2, 8, 8, 3), 200, np.uint8)})
    assert "The next 2 rows, p from 0.40 to 0.60" in queue.alt
    assert "For 0 of the 4 rows left, p is within 0.05 of one half." in queue.alt
    queue.plot.frames.selected.indices = [1]
    assert picked == [3]
    queue.clear(None)  # type: ignore[arg-type]
    queue.open(run({"images": False}))
    assert queue.alt.startswith(NO_IMAGES)


def test_a_crowd_does_not_ask_all_at_once(frame: Any) -> None:
    frame.owns_run = False
    Queue(frame).open(run(expert="simulated"))
    Picture(frame).open(run(expert="simulated"))
    assert frame.asked == []


def test_a_picture_shows_every_patch_and_a_verdict(frame: Any) -> None:
    picture = Picture(frame, lambda: [[1, 0]])
    assert picture.alt == CHOOSE
    picture.open(run())
    assert frame.asked == [("picture", {"row": 3, "labels": [[1, 0]]})]  # the likeliest
    answer = {
        "image": np.zeros((90, 160, 3), np.uint8),
        "boxes": np.array([[0.0, 0, 80, 90], [80, 0, 160, 90]]),
        "p": np.array([0.2, 0.8]),
        "rows": np.array([3, 4]),
        "truth": np.array([0, 1]),
        "verdict": np.array([0.8]),
    }
    frame.then(answer)
    assert (
        "This picture shows clamp with p = 0.80; p is above one half in 1 of its 2 patches."
        in picture.alt
    )
    assert (
        "Patches that show it by their labels in the table: 1. Click a patch to label it."
        in picture.alt
    )
    assert picture.plot.boxes.data["right"].max() <= 160
    picked: list[int] = []
    picture.picked = picked.append
    assert picture.patch.value == 4
    picture.label.clicks += 1
    picture.patch.value = 3
    picture.label.clicks += 1
    assert picked == [4, 3]
    clicked: list[tuple[int, list[float]]] = []
    picture.clicked = lambda row, offset: clicked.append((row, offset.tolist()))
    picture.plot.figures[0]._trigger_event(Tap(picture.plot.figures[0], x=100.0, y=45.0))
    assert clicked == [(4, [-0.25, 0.0])]
    picture.which.value = 0
    assert frame.asked[-1][1]["row"] == 0
    picture._answered(answer | {n: answer[n][:1] for n in ("boxes", "p", "rows", "truth")})
    assert "This picture shows clamp with p = 0.80. In the table it does not." in picture.alt
    picture.open(run({"placed": True}))
    frame.then(answer)
    assert "Click any place to label the patch around it" in picture.alt
    picture.clear(None)  # type: ignore[arg-type]
    picture.open(run({"pictures": []}))
    assert picture.alt == NO_PICTURES


def test_what_a_run_has_nothing_for_is_hidden() -> None:
    assert {"Objective", "Figures"} <= hidden(run())
    assert "The labels" not in hidden(run())
    assert hidden(run(expert="simulated")) == {"The labels"}
    assert "A whole picture" in hidden(run({"pictures": []}))


def test_otherwise_offers_what_this_run_did_not_do() -> None:
    message, others = alternatives(run(expert="simulated"))
    assert message == "This run sampled by rare class first."
    assert {"acquisition": "random"} in [o.settings for o in others]
    assert {"acquisition": "rare class first"} not in [o.settings for o in others]
    message, others = alternatives(run(expert="simulated", acquisition="band"))
    assert message == "This run sampled by band."
    assert {"acquisition": "band"} not in [o.settings for o in others]
    for other in others:  # every link leads to settings that there are
        ClampSettings.parse(run(expert="simulated").record.settings | other.settings)


@pytest.mark.parametrize(("share", "imbalance"), [(0.5, 20.0), (0.04, 4.0)])
def test_another_imbalance_is_offered(share: float, imbalance: float) -> None:
    made = run(expert="simulated")
    truth = (np.arange(100) < 100 * share).astype(int)
    made.report = Report((), {**made.report.arrays, "truth": truth})
    _, others = alternatives(made)
    assert [o.settings["imbalance"] for o in others if "imbalance" in o.settings] == [imbalance]


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
