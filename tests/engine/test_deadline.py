"""The end of a fit's time: shares of what is left, and units of work that end within it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from scant.deadline import Deadline, Effort
from scant.hardware import speed


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_unit_is_begun_if_it_would_end_as_soon_as_the_one_before() -> None:
    clock = Clock()
    deadline, done = Deadline(10.0, clock), []
    for unit in deadline.units("abcde", "letters"):
        clock.now += 3.0
        done.append(unit)
    assert done == ["a", "b", "c"]
    assert deadline.skipped == ["letters"]
    assert list(deadline.units("ab", "letters", expected=0.5)) == ["a", "b"]
    assert list(deadline.units("ab", "pairs", expected=1.5, minimum=1)) == ["a", "b"]
    clock.now = 11.0
    assert list(deadline.units("ab", "late", minimum=1)) == ["a"]
    assert list(deadline.units("", "nothing")) == []
    assert deadline.skipped == ["letters", "late"]


def test_phases_share_the_time_left_and_leave_some_to_later_ones() -> None:
    clock = Clock()
    deadline = Deadline(10.0, clock)
    clock.now = 2.0
    half = deadline.share(0.5)
    assert half.left == 4.0
    assert deadline.leaving(3.0).left == 5.0
    assert (deadline.within(3.0).left, deadline.within(30.0).left) == (3.0, 8.0)
    clock.now += 5.0
    assert (deadline.left, half.left) == (3.0, -1.0)
    assert deadline.leaving(4.0).left == -1.0
    assert list(half.units("a", "one")) == []
    assert list(deadline.leaving(4.0).units("a", "another")) == []
    assert deadline.skipped == ["one", "another"]
    endless = Deadline(clock=clock)
    assert (
        endless.leaving(1.0).left == endless.within(1.0).left == endless.share(0.5).left == np.inf
    )


def test_who_watches_is_told_of_named_units_and_of_the_time_that_is_left() -> None:
    clock, told = Clock(), list[tuple[str, int, int, float | None]]()
    deadline = Deadline(100.0, clock)
    deadline.watch = lambda *phase: told.append(phase)
    for _ in deadline.share(0.5).units(iter("abc"), "methods"):
        clock.now += 4.0
    for _ in deadline.units("ab", label="more"):
        clock.now += 1.0
    list(deadline.units("ab"))
    assert told == [
        ("methods", 0, 3, None), ("methods", 1, 3, 8.0), ("methods", 2, 3, 4.0),
        ("more", 0, 2, None), ("more", 1, 2, 1.0),
    ]  # fmt: skip
    assert not deadline.skipped


def test_effort_stands_still_while_others_work_but_not_for_ever() -> None:
    wall, work = Clock(), Clock()
    effort = Effort(0.5, wall, work)
    deadline = Deadline(10.0, effort)
    wall.now, work.now = 8.0, 8.0  # a machine of half the speed
    assert (effort(), deadline.left, effort.slowed) == (4.0, 6.0, False)
    wall.now = 16.0  # others had the processor
    assert (deadline.left, effort.slowed) == (2.0, True)
    work.now = 18.0
    wall.now = 18.0
    assert (deadline.left, effort.slowed) == (1.0, False)
    wall.now = 2 * 10.0
    assert deadline.left == 0.0


def test_effort_goes_on_in_another_thread() -> None:
    wall, work = Clock(), Clock()
    effort = Effort(1.0, wall, work)
    work.now = 3.0
    assert effort() == 3.0
    with ThreadPoolExecutor(1) as other:
        work.now = 0.5  # by a clock of its own
        assert other.submit(effort).result() == 3.0
        work.now = 2.5
        assert other.submit(effort).result() == 5.0


def test_the_speed_of_a_machine_is_a_share_of_that_of_the_estimates() -> None:
    assert 0 < speed() <= 1
