"""The desk of the clamp page: a label is kept, then answered, taken back, changed, heard of."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from scant.errors import BadInput, NotFound
from scant.store import Store
from scant.store.records import IMPORTED, Label
from scant.studies.clamp.table import PatchPool
from scant_dashboard.controls.labeling_widget import LabelingWidget as Component
from scant_dashboard.pages.clamp.labeling_view import LabelingView
from scant_dashboard.pages.clamp.labels_out import history_csv, labels_file
from scant_dashboard.pages.clamp.session_queue import (
    DONE,
    MODEL,
    NONE_OF_OTHERS,
    NONE_UNSURE,
    OTHERS,
    PRELABELS,
    UNSURE,
)
from tests.dashboard.pages.clamp.labeling_fakes import Frame, N, Press


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
    assert (label.label, label.labeler) == ("clamp", "ada")
    _, query = [a for a in frame.service.asked if a[0] == "ask"][-1]
    assert query["labels"] == [[2, 1]]
    assert press.queue == [0, 1, 3, 4, 5]


def test_a_label_that_cannot_be_kept_is_said_and_the_patch_stays(
    press: Press, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise BadInput("The disk is full.")

    monkeypatch.setattr(store, "add_label", full)
    answer = press("label", row=2, value=1)
    assert answer["error"] == "Not saved: The disk is full."
    assert "next" not in answer
    monkeypatch.undo()
    assert store.labels("r") == []


def test_a_row_that_is_none_of_the_pool_is_refused(press: Press, store: Store) -> None:
    assert "no row 99" in press("label", row=99, value=0)["error"]
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
    assert press.session.labels.standing == {}
    assert press("undo")["said"] == "You have no label to undo."
    assert not press.session.widget.undoable


def test_after_a_reload_labels_are_read_back_and_can_be_undone(
    press: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    press("label", row=0, value=0)
    press("label", row=1, value=1)
    fresh = Press(frame, monkeypatch)
    fresh("ready")
    assert [h["row"] for h in fresh.session.widget.history] == [1, 0]
    assert fresh.queue == [2, 3, 4, 5]
    assert fresh("undo")["back"] == 1
    assert list(fresh.session.labels.standing) == [0]


def test_another_window_is_heard_of(
    press: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Press(frame, monkeypatch)
    other("label", who="bo", row=3, value=1)
    press.session.poll()
    assert [h["who"] for h in press.session.widget.history] == ["bo"]
    assert 3 not in press.queue


def test_a_label_is_changed_from_the_history(press: Press, store: Store) -> None:
    press("label", row=0, value=0)
    assert press("again", row=0)["back"] == 0
    press("label", row=0, value=1)
    assert press.session.labels.standing[0].label == "clamp"
    assert len(store.labels("r")) == 2


def test_a_second_person_is_asked_what_the_first_has_labeled(press: Press) -> None:
    press("label", row=0, value=0)
    press("label", row=4, value=1)
    press.session.choose(OTHERS)
    assert press.queue == []
    assert press.session.widget.idle == NONE_OF_OTHERS
    press("who", who="bo")
    assert press.queue == [0, 4]
    press("label", who="bo", row=0, value=1)
    assert press.queue == [4]


def test_another_visitor_of_the_same_name_is_somebody_else(
    press: Press, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Frame(store)
    guest.visit.owner = "another visitor"
    other = Press(guest, monkeypatch)
    press("label", who="Ada", row=3, value=1)
    other("label", who="Ada", row=4, value=0)
    assert [(v.labeler, v.visitor) for v in store.labels("r")] == [
        ("Ada", "me"), ("Ada", "another visitor"),
    ]  # fmt: skip
    press.session.poll()
    for desk in (press, other):
        assert [h["who"] for h in desk.session.widget.history] == ["Ada (2)", "Ada"]
    fresh = Press(guest, monkeypatch)  # remembers no act of its own
    fresh("ready", who="Ada")
    assert fresh("undo", who="Ada")["back"] == 4
    assert fresh("undo", who="Ada")["said"] == "You have no label to undo."
    assert list(fresh.session.labels.standing) == [3]


def test_who_has_no_cookie_gives_no_label(press: Press, frame: Any, store: Store) -> None:
    frame.visit.owner = ""
    assert "Not saved: a label belongs to a visitor" in press("label", row=0, value=0)["error"]
    assert store.labels("r") == []


def test_more_than_two_classes_have_a_button_each(
    frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    press = Press(frame, monkeypatch, {"classes": ["crack", "rust", "sound"], "positive": 0})
    assert press.session.widget.classes == ["crack", "rust", "sound"]
    press("label", row=0, value=2)
    press("label", row=1, value=0)
    assert [v.label for v in store.labels("r")] == ["sound", "crack"]
    assert frame.service.asked[-1][1]["labels"] == [[0, 2], [1, 0]]
    assert "no class 4" in press("label", row=2, value=3)["error"]
    assert "no class 0" in press("label", row=2, value=-1)["error"]
    assert len(store.labels("r")) == 2


def test_unsure_teaches_nothing_and_is_asked_again_on_demand(
    press: Press, frame: Any, store: Store
) -> None:
    press("label", row=0, value=1)
    press("unsure", row=1)
    (_, label) = store.labels("r")
    assert (label.item, label.unsure) == (1, True)
    asked = [a for q, a in frame.service.asked if q == "ask"]
    assert asked[-1] == {"labels": [[0, 1]], "batch": 9}  # one more: the model may name it
    assert 1 not in press.queue
    assert [one["row"] for one in press.session.widget.unsure] == [1]
    assert [one["row"] for one in press.session.widget.history] == [0]
    assert press("again", row=1)["back"] == 1
    press.session.choose(UNSURE)
    assert press.queue == [1]
    press("label", row=1, value=0)
    assert press.queue == press.session.widget.unsure == []
    assert press.session.widget.idle == NONE_UNSURE
    assert press.session.labels.taught(press.session.classes) == [[0, 1], [1, 0]]
    press("undo")
    press.session.choose(MODEL)
    assert 1 in press.queue  # nobody says anything of it any more


def test_a_decision_between_two_labelers_stands_over_both(press: Press, store: Store) -> None:
    press("label", who="ada", row=0, value=0)
    assert press("decide", who="cy", row=0)["deciding"] is False  # nothing to decide yet
    press("label", who="bo", row=0, value=1)
    press("label", who="bo", row=3, value=1)
    (dispute,) = press.session.widget.disputes
    given = [{"label": "no clamp", "who": "ada"}, {"label": "clamp", "who": "bo"}]
    assert dispute == {"row": 0, "given": given, "decided": ""}
    assert "agree on 0%" in press.session.widget.agreement
    answer = press("decide", who="cy", row=0)
    assert (answer["back"], answer["deciding"]) == (0, True)
    press("label", who="cy", row=0, value=0, deciding=True)
    assert press.session.widget.disputes[0]["decided"] == "no clamp"
    press("label", who="bo", row=0, value=1)  # insists; the decision stands
    assert press.session.labels.standing[0].label == "no clamp"
    assert press.session.labels.open_disputes == []
    answer = press("undo", who="cy")
    assert (answer["back"], answer["deciding"]) == (0, True)
    assert press.session.labels.open_disputes == [0]
    press("label", who="cy", row=3, value=0, deciding=True)  # nobody disagrees on it
    assert [v.role for v in store.labels("r")][-1] == ""


def test_a_label_of_a_file_is_confirmed_or_corrected(press: Press, store: Store) -> None:
    made = [Label(r, "clamp", IMPORTED, 1.0, "me", IMPORTED) for r in (2, 4)]
    store.add_labels("r", made)
    press.session.poll()
    assert press.session.labels.taught(press.session.classes) == [[2, 1], [4, 1]]
    press.session.choose(PRELABELS)
    assert press.queue == [2, 4]
    assert press.session.widget.queue[0]["suggest"] == 1
    press("label", row=2, value=0)
    assert press.queue == [4]
    assert press.session.labels.standing[2].label == "no clamp"
    assert press.session.widget.disputes == []  # a correction is no disagreement
    press("undo")
    assert press.queue == [2, 4]
    assert press("undo")["said"] == "You have no label to undo."  # the file's are no act


def test_a_patch_chosen_elsewhere_is_shown(press: Press, frame: Any) -> None:
    press.session.pick(5)
    assert frame.service.asked[-1] == ("patches", {"rows": [5]})
    assert press.heard[-1] == {"turn": 0, "show": 5}
    press.session.close()
    press.session.pick(5)
    assert len(press.heard) == 1


@pytest.fixture
def placing(frame: Any, monkeypatch: pytest.MonkeyPatch) -> Press:
    """A session on two pictures of 40 x 20 pixels, whose three patches overlap by half."""
    file = io.BytesIO()
    Image.new("RGB", (20, 20), (200, 0, 0)).save(file, "PNG")
    press = Press(frame, monkeypatch, {"placed": True})
    table = pd.DataFrame({"image": [base64.b64encode(file.getvalue()).decode()] * (100 + N)})
    pool = press.session.pool
    assert pool is not None
    pool._table = PatchPool.of(table)
    pool._arrays["place"] = np.array([[10 * (i % 3), 0, 20, 20, 40, 20] for i in range(N)])
    return press


def test_a_patch_is_placed_by_a_click_and_its_image_is_sent_once(
    placing: Press, frame: Any, store: Store
) -> None:
    view = LabelingView(frame, lambda *_: None)
    press, view.session = placing, placing.session
    view.pick_around(1, np.array([0.05, 0.0]))
    assert press.heard[-1]["show"] == 1
    view.pick_around(1, np.array([0.25, 0.0]))
    new = press.heard[-1]["show"]
    assert new == N + 15
    assert frame.service.asked[-1] == ("patches", {"rows": [new]})
    assert press.session.widget.names == {str(new): "patch at 25, 10 of a.jpg"}
    said = press("label", row=new, value=1)["said"]
    assert said == "Label of patch at 25, 10 of a.jpg: clamp."
    assert [(v.item, v.label) for v in store.labels("r")] == [(new, "clamp")]
    first, second = [a for q, a in frame.service.asked if q == "ask"][-2:]
    assert first == {"labels": [[new, 1]], "batch": 8}
    assert list(second["images"]) == [new]
    assert Image.open(io.BytesIO(second["images"][new])).size == (20, 20)
    press("label", row=0, value=0)
    assert "images" not in frame.service.asked[-1][1]
    assert [h["row"] for h in press.session.widget.history] == [0, new]
    assert "2 of 7 rows labeled" in view.alt
    assert f"no row {new + 1000}" in press("label", row=new + 1000, value=1)["error"]

    pool = press.session.pool
    assert pool is not None
    placed, row = csv.DictReader(history_csv(pool, press.session.labels).splitlines())
    assert (placed["row"], placed["picture"], placed["left"]) == ("", "a.jpg", "15.0")
    assert (row["row"], row["left"], row["width"]) == ("100", "0.0", "20.0")
    assert len(labels_file(pool, press.session.labels.standing, "ImageFolder")) > 0
    assert press("undo")["back"] == 0
    assert press("undo")["back"] == new
    assert press.session.labels.standing == {}
    press.session.close()
    assert press.session.widget.names == {}  # another run's numbers are other patches


def test_a_placed_patch_of_a_deleted_table_has_a_number(
    placing: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = placing.session.pool
    assert pool is not None

    def deleted(_: object) -> None:
        raise NotFound("The table was deleted.")

    monkeypatch.setattr(type(pool), "places", property(deleted))
    assert pool.name(N + 15) == f"row {N + 15}"


def test_placed_patches_of_a_deleted_table_are_not_learned_from(
    placing: Press, frame: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    placing("label", row=N + 15, value=1)
    frame.service.placed.clear()  # another worker

    def deleted(_: int) -> bytes:
        raise NotFound("The table was deleted.")

    monkeypatch.setattr(placing.session.pool, "image", deleted)
    placing("label", row=2, value=0)
    (*_, last) = [a for q, a in frame.service.asked if q == "ask"]
    assert last["labels"] == [[2, 0]]


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
    assert press.batches == [0]
    frame.service.down = False
    press("label", row=1, value=0)
    assert press.batches == [0, 2]


def test_the_pool_may_run_out(press: Press) -> None:
    for row in range(N):
        press("label", row=row, value=row % 2)
    assert press.queue == []
    assert press.session.widget.idle == DONE


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
    assert press.batches[-1] == 1
    assert len(waiting) == 1
    waiting.pop()()
    assert press.batches[-1] == 3
    assert waiting == []
