"""The end of a fit's time: shares of what is left, and units of work that end within it."""

from __future__ import annotations

import numpy as np

from scant.deadline import Deadline


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
