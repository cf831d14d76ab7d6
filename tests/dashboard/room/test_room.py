"""A room's state: votes, one a phone, its limits, the reveal, its end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scant.errors import BadInput, NotAllowed, NotFound
from scant_dashboard.limits.client import Busy
from scant_dashboard.room import room as limits
from scant_dashboard.room.question import Question, jpeg, pixels, within
from scant_dashboard.room.room import Room, Rooms

NUMBER = Question("How many?", span=(10, 20, 1))
CHOICE = Question("Which?", ("A", "B", "C"))
POINT = Question("Where?", picture=b"jpeg")
HERE = "10.0.0.1"


class Clock:
    """Seconds that pass when told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def asked(question: Question, clock: Clock | None = None) -> Room:
    room = Room("CODE", "anna", clock or Clock())
    room.ask(question, False, [question])
    return room


def slowly(room: Room, *votes: tuple[str, Any]) -> None:
    """Votes with a second between them."""
    for token, value in votes:
        room._clock.now += 1  # type: ignore[attr-defined]
        room.vote(token, HERE, room.present.number, value)  # type: ignore[union-attr]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(10, 20)), min_size=1))
def test_a_phone_counts_once_with_its_last_answer(votes: list[tuple[str, float]]) -> None:
    room = asked(NUMBER)
    slowly(room, *votes)
    assert room.present is not None
    assert room.present.votes == dict(votes)
    assert set(room.phones) == {token for token, _ in votes}
    for token, value in dict(votes).items():
        (shown,) = room.phone_state(token)["questions"]
        assert shown["mine"] == value
        assert not ({"votes", "truth"} & shown.keys())


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@pytest.mark.parametrize("question", [NUMBER, CHOICE, POINT])
@given(raw=JSON)
def test_whatever_is_sent_is_an_answer_or_refused(question: Question, raw: Any) -> None:
    try:
        vote = question.vote(raw)
    except BadInput:
        return
    numbers = vote if isinstance(vote, tuple) else (vote,)
    assert all(isinstance(v, float) and math.isfinite(v) for v in numbers)
    assert not isinstance(raw, bool)
    low, high = {"number": (10, 20), "choice": (0, 2), "point": (0, 1)}[question.kind]
    assert all(low <= v <= high for v in numbers)


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (NUMBER, [10, 20, 12.5], [9, 21, math.nan, math.inf, "12", True, None, [12]]),
        (CHOICE, [0, 2], [-1, 3, 1.0, "A", True]),
        (POINT, [[0, 1], [0.5, 0.25]], [[0.5], [0.5, 1.1], [math.nan, 0], 0.5, [True, 0]]),
    ],
)
def test_an_answer_lies_in_the_bounds_of_its_question(
    question: Question, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        question.vote(value)
    for value in bad:
        with pytest.raises(BadInput):
            question.vote(value)


def test_a_revealed_question_takes_no_more_votes_and_says_its_answer() -> None:
    room = asked(NUMBER)
    slowly(room, ("a", 12), ("b", 13))
    (before,) = room.phone_state("a")["questions"]
    assert (before["revealed"], before["answer"]) == (False, "")
    ballot = room.reveal(NUMBER, "Twelve.")
    assert ballot is not None
    assert ballot.votes == {"a": 12, "b": 13}
    number = ballot.number
    with pytest.raises(NotAllowed):
        room.vote("c", HERE, number, 12)
    (after,) = room.phone_state("a")["questions"]
    assert (after["revealed"], after["answer"], after["mine"]) == (True, "Twelve.", 12)
    room.ask(NUMBER, True, [NUMBER])  # still on show
    assert room.present is ballot
    room.ask(NUMBER, False, [NUMBER])  # asked anew
    assert room.present is not ballot
    assert room.present is not None
    assert room.present.votes == {}


def test_a_question_keeps_its_votes_while_another_is_shown() -> None:
    room = asked(NUMBER)
    slowly(room, ("a", 12))
    room.ask(CHOICE, False, [NUMBER, CHOICE])
    slowly(room, ("a", 1))
    room.ask(NUMBER, False, [NUMBER, CHOICE])
    assert room.present is not None
    assert room.present.votes == {"a": 12}
    room.ask(None, False, [CHOICE])  # the first does not stand any more
    assert [b.question for b in room.ballots] == [CHOICE]
    assert room.phone_state("a")["present"] is None
    with pytest.raises(NotFound):
        room.vote("a", HERE, 1, 12)


def test_a_room_remembers_a_bounded_number_of_questions() -> None:
    room = Room("CODE", "anna", Clock())
    for k in range(limits.BALLOTS + 5):
        question = Question(f"How many of {k}?")
        room.ask(question, False, [question])
        room.reveal(question, "All.")
    assert len(room.ballots) == limits.BALLOTS


@pytest.mark.parametrize("hosts", [1, 10])
def test_a_room_and_a_network_have_bounded_phones(hosts: int) -> None:
    room = asked(NUMBER)
    most = limits.PHONES_PER_ADDRESS if hosts == 1 else limits.PHONES
    for k in range(most):
        room.join(f"phone {k}", f"10.0.0.{k % hosts}")
    with pytest.raises(Busy):
        room.join("one more", "10.0.0.0")
    room.join("phone 0", "10.0.0.0")  # which is there already
    assert len(room.phones) == most


def test_forty_phones_of_one_network_vote_at_once_and_one_cannot_hammer() -> None:
    room = asked(NUMBER)
    for k in range(40):
        room.vote(f"phone {k}", HERE, 1, 12)
    for _ in range(limits.PHONE_PACE[0] - 1):
        room.vote("phone 0", HERE, 1, 13)
    with pytest.raises(Busy, match="too fast") as refused:
        room.vote("phone 0", HERE, 1, 13)
    assert refused.value.status == 429
    room._clock.now += refused.value.seconds  # type: ignore[attr-defined]
    room.vote("phone 0", HERE, 1, 14)


def test_news_come_to_followers_until_they_leave_and_votes_to_the_presenter() -> None:
    room = asked(NUMBER)
    heard: list[str] = []
    room.counted = lambda: heard.append("counted")
    end = room.follow(HERE, lambda: heard.append("news"))
    room.vote("a", HERE, 1, 12)
    assert heard == ["counted", "counted"]  # it came, and it voted
    room.go(2, "Bin by bin")
    room.go(2, "Bin by bin")
    room.lead(False)
    assert heard[2:] == ["news", "news"]
    assert room.presenter_state() == {"leads": False, "step": 2, "title": "Bin by bin"}
    end()
    room.lead(True)
    assert len(heard) == 4
    ends = [room.follow(HERE, lambda: None) for _ in range(2 * limits.PHONES_PER_ADDRESS)]
    with pytest.raises(Busy):
        room.follow(HERE, lambda: None)
    ends[0]()
    room.follow(HERE, lambda: None)


# --- the server's rooms ---


def test_a_code_is_found_in_either_case_and_has_no_letter_like_another(clock: Clock) -> None:
    rooms = Rooms(clock)
    room = rooms.open("anna")
    assert rooms.find(room.code.lower()) is room
    assert len(room.code) == limits.LENGTH
    assert not set(limits.LETTERS) & set("O0I1LS5B8Z2")
    assert len(set(limits.LETTERS)) == len(limits.LETTERS)


def test_rooms_are_bounded_by_presenter_and_in_all(clock: Clock) -> None:
    rooms = Rooms(clock)
    mine = [rooms.open("anna") for _ in range(limits.PER_PRESENTER)]
    with pytest.raises(BadInput, match="You have"):
        rooms.open("anna")
    mine[0].close()
    rooms.open("anna")
    for k in range(limits.ROOMS - limits.PER_PRESENTER):
        rooms.open(f"presenter {k}")
    with pytest.raises(BadInput, match="This server"):
        rooms.open("one more")
    assert len(rooms) == limits.ROOMS


def test_nothing_is_left_of_a_room_that_is_over(clock: Clock) -> None:
    rooms = Rooms(clock)
    room = rooms.open("anna")
    room.ask(NUMBER, False, [NUMBER])
    room.vote("a", HERE, room.ballots[0].number, 12)
    clock.now += limits.IDLE - 1
    room.vote("b", HERE, room.ballots[0].number, 12)
    clock.now += limits.IDLE - 1
    assert rooms.find(room.code) is room
    clock.now += 2
    rooms.expire()
    assert rooms.find(room.code) is None
    assert (room.closed, room.phones, room.ballots, room.present) == (True, {}, [], None)


def test_a_room_outlives_its_presenters_page_by_a_moment(clock: Clock) -> None:
    rooms = Rooms(clock)
    room = rooms.open("anna")
    room.presenter_left()
    clock.now += limits.GRACE - 1
    assert rooms.find(room.code) is room
    room.left = None  # the page is back
    clock.now += limits.GRACE
    assert rooms.find(room.code) is room
    room.presenter_left()
    clock.now += limits.GRACE + 1
    assert rooms.find(room.code) is None


def test_codes_are_not_tried_out(clock: Clock) -> None:
    rooms = Rooms(clock)
    room = rooms.open("anna")
    for _ in range(limits.MISS_PACE[0]):
        with pytest.raises(NotFound):
            rooms.entered("none", HERE)
    with pytest.raises(Busy):
        rooms.entered("none", HERE)
    assert rooms.entered(room.code, HERE) is room  # who knows it gets in
    with pytest.raises(NotFound):
        rooms.entered("none", "10.0.0.2")


def test_a_picture_is_kept_small_and_bands_are_intervals_or_boxes() -> None:
    image = np.full((1200, 1600, 3), 200, np.uint8)
    assert pixels(jpeg(image)).shape == (480, 640, 3)
    assert within(3, (2, 4))
    assert not within(5, (2, 4))
    assert within((0.2, 0.3), (0.1, 0.2, 0.3, 0.4))
    assert not within((0.2, 0.5), (0.1, 0.2, 0.3, 0.4))
