"""A wall's queue, its limits, its runs' events, and what varies from run to run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scant.errors import BadInput, NotAllowed, NotFound
from scant.events import Event, Finished, Metric, Progress, Report, Started, State
from scant.studies import STUDIES, entry
from scant_dashboard.limits.client import Busy
from scant_dashboard.room import wall as limits
from scant_dashboard.room.room import Room
from scant_dashboard.room.wall import Wall, WallRun
from scant_dashboard.room.wall_presets import PRESETS, SAMPLE, SEED, Variation

HERE = "10.0.0.1"


def everyone(token: str) -> bool:
    return True


def wall(study: str = "mitosis", *tokens: str) -> Wall:
    made = Wall(Variation(study))
    for token in tokens:
        made.join(token)
    return made


def steps(n: int, first: int = 1) -> list[Event]:
    return [Progress(k, -1.0 / k, 0.1 * k, -1.0 / k, -1.0 / k) for k in range(first, first + n)]


def ended(score: float = 0.5, state: State = State.FINISHED, metric: str = "F1") -> Finished:
    return Finished(state, "why", Report((Metric("this run", metric, score),)))


def train(made: Wall, run_id: str, *events: Event) -> WallRun:
    """Take the next run and let it say this."""
    run = made.take(everyone)
    assert run is not None
    run.run = run_id
    made.apply(run_id, events)
    return run


# --- the queue ---


def test_runs_are_trained_in_order_and_a_phone_knows_its_place() -> None:
    made = wall("mitosis", "a", "b", "c")
    assert [made.ahead(t, everyone) for t in "abc"] == [0, 1, 2]
    first = made.take(everyone)
    assert first is made.of("a")
    assert [made.ahead(t, everyone) for t in "abc"] == [0, 0, 1]
    assert made.training() == [first]


def test_a_phone_that_presses_twice_has_one_run() -> None:
    made = wall("mitosis", "a", "b")
    assert made.join("a") is made.of("a")
    assert len(made.runs) == 2
    train(made, "r1", *steps(3), ended())
    assert made.join("a").stage == "done"
    assert len(made.runs) == 2


def test_the_run_of_a_closed_page_is_passed_over_until_it_is_back() -> None:
    made = wall("mitosis", "a", "b", "c")
    here = {"b", "c"}
    assert made.ahead("c", here.__contains__) == 1
    assert made.take(here.__contains__) is made.of("b")
    assert made.take(here.__contains__) is made.of("c")
    assert made.take(here.__contains__) is None
    here.add("a")
    assert made.take(here.__contains__) is made.of("a")


def test_queue_and_wall_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = wall("mitosis", *map(str, range(limits.WAITING)))
    with pytest.raises(Busy, match=f"{limits.WAITING} runs are waiting"):
        made.join("one more")
    made.take(everyone)
    made.join("one more")
    while (run := made.take(everyone)) is not None:
        made.fail(run, "x")
    monkeypatch.setattr(limits, "RUNS", len(made.runs))
    with pytest.raises(Busy, match="its limit"):
        made.join("too many")


def test_two_hundred_phones_get_a_run_or_a_sentence() -> None:
    made, refused = wall(), 0
    for k in range(200):
        try:
            made.join(f"phone {k}")
        except Busy:
            refused += 1
    assert len(made.runs) == limits.WAITING
    assert refused == 200 - limits.WAITING


# --- runs ---


def test_a_run_shows_its_curve_and_then_its_score() -> None:
    made = wall("mitosis", "a")
    run = train(made, "r", Started("cpu", 40), *steps(3))
    state = made.phone_state("a", everyone)["own"]
    assert (state["stage"], state["steps"], state["total"]) == ("training", [1, 2, 3], 40)
    assert state["curve"] == [-1.0, -0.5, -0.3333]
    made.apply("r", [*steps(1, 4), ended(0.731)])
    assert (run.stage, run.score) == ("done", 0.731)
    assert made.phone_state("a", everyone)["own"]["score"] == "F1 0.731"
    made.apply("r", steps(3, 5))  # late
    assert run.steps == [1, 2, 3, 4]


@given(st.integers(1, 3000))
def test_a_curve_stays_short_and_keeps_its_ends(n: int) -> None:
    run = WallRun(1, "a")
    for k in range(1, n + 1):
        run.add(k, -1.0 / k)
    assert len(run.steps) == len(run.curve) <= limits.POINTS
    assert (run.steps[0], run.steps[-1]) == (1, n)
    assert run.steps == sorted(set(run.steps))


def test_a_run_whose_worker_was_lost_goes_on_from_its_checkpoint() -> None:
    made = wall("mitosis", "a")
    run = train(made, "r", Started("cpu", 40), *steps(9))
    made.apply("r", [Started("cpu", 40, 5), *steps(2, 6), ended()])
    assert run.steps == [1, 2, 3, 4, 5, 6, 7]
    assert run.stage == "done"


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (ended(state=State.FAILED), "why"),
        (ended(float("nan")), "The run has no score."),
        (ended(metric="other"), "The run has no score."),
    ],
)
def test_a_run_without_a_score_says_why(last: Finished, reason: str) -> None:
    made = wall("mitosis", "a")
    run = train(made, "r", *steps(2), last)
    assert (run.stage, run.reason, run.score) == ("failed", reason, None)
    assert made.phone_state("a", everyone)["own"]["reason"] == reason


# --- what varies ---


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("kind", ["seed", "sample", "setting"])
def test_every_run_of_every_study_has_valid_settings_of_its_own(study: str, kind: str) -> None:
    setting, low, high = PRESETS[study].setting
    name = setting if kind == "setting" else kind
    variation = Variation.parse(study, {"name": name, "low": low, "high": high})
    settings = [variation.settings(k) for k in range(1, 31)]
    for values in settings:
        entry(study).parse("demo", values)
    assert len({repr(values) for values in settings}) == 30
    varying = {k for k in settings[0] if len({repr(s[k]) for s in settings}) > 1}
    assert varying <= {setting, "seed"} if kind == "setting" else len(varying) == 1
    if kind == "setting":
        values = [s[setting] for s in settings]
        assert (min(values), max(values)) == (low, high)


@pytest.mark.parametrize("n", [2, 5, 9, 30])
def test_any_number_of_runs_covers_the_range_of_a_setting(n: int) -> None:
    variation = Variation("genes", "keep", 0.2, 1.0)
    values = np.sort([variation.value(k) for k in range(1, n + 1)])
    assert (values[0], values[-1]) == (0.2, 1.0)
    gaps = np.diff(values)
    assert gaps.max() <= 2.1 * 0.8 / (n - 1)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"name": "n_basis", "low": 1, "high": 2},
        {"name": "training_size"},
        {"name": "training_size", "low": "x", "high": 2},
        {"name": "training_size", "low": 200, "high": 100},
        {"name": "training_size", "low": -5, "high": 100},
        {"name": "training_size", "low": 5, "high": float("nan")},
        {"name": "training_size", "low": 5, "high": float("inf")},
        {"name": "training_size", "low": 5, "high": 1e12},
    ],
)
def test_what_cannot_vary_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Variation.parse("redshift", raw)


def test_seeds_and_samples_are_named_from_one() -> None:
    assert Variation("redshift", SEED).title(1) == "seed 0"
    assert Variation("redshift", SAMPLE).title(1) == "sample 1"
    assert Variation("redshift", "training_size", 30, 1000).title(3) == "training size 515"


# --- in a room ---


def test_a_room_tells_its_phones_of_the_wall_and_closes_it() -> None:
    room, heard = Room("CODE", "anna"), []
    room.follow(HERE, lambda: heard.append("a"), "a")
    room.follow(HERE, lambda: heard.append("b"), "b")
    with pytest.raises(NotFound, match="There is no wall"):
        room.join_wall("a", HERE)
    made = wall()
    room.start_wall(made)
    assert heard == ["a", "b"]
    assert room.phone_state("a")["wall"]["own"] is None
    room.join_wall("a", HERE)
    assert heard == ["a", "b"] * 2
    train(made, "r", *steps(2))
    assert heard == [*["a", "b"] * 3, "a"]  # a curve is news for its own phone only
    later = wall()
    room.start_wall(later)
    assert made.closed
    assert room.wall is later
    room.close()
    assert later.closed
    assert room.wall is None
    with pytest.raises(NotAllowed):
        later.join("a")


def test_a_phone_is_present_while_its_stream_is_open_and_wakes_the_wall() -> None:
    room, woken = Room("CODE", "anna"), []
    made = wall("mitosis", "a")
    room.start_wall(made)
    made.wake = lambda: woken.append(1)
    assert not room.is_present("a")
    assert room.is_present("")  # the presenter
    end = room.follow(HERE, lambda: None, "a")
    assert room.is_present("a")
    assert woken == [1]
    again = room.follow(HERE, lambda: None, "a")  # a second tab
    end()
    end()
    assert room.is_present("a")
    again()
    assert not room.is_present("a")


def test_joining_is_paced() -> None:
    room = Room("CODE", "anna", lambda: 0.0)
    room.start_wall(wall())
    for _ in range(5):
        room.join_wall("a", HERE)
    with pytest.raises(Busy, match="too fast"):
        room.join_wall("a", HERE)
