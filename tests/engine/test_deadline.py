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


def test_shares_are_of_what_is_left_and_an_extension_moves_the_end() -> None:
    clock = Clock()
    deadline = Deadline(10.0, clock)
    clock.now = 2.0
    half = deadline.share(0.5)
    assert half.left == 4.0
    with deadline.extension(20.0) as gaps:
        clock.now += 15.0
        assert gaps.left == 5.0
    assert (deadline.left, deadline.used) == (8.0, 17.0)
    assert list(half.units("a", "one")) == []
    assert deadline.skipped == ["one"]
    with Deadline(clock=clock).extension(1.0) as endless:
        assert endless.left == np.inf
