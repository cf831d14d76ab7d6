"""How soon a password may be tried again."""

from __future__ import annotations

from scant_dashboard.auth.throttle import FORGOTTEN_SECONDS, Throttle


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def attempts(throttle: Throttle, clock: Clock, n: int, name: str, address: str) -> list[int]:
    """The waits between `n` wrong passwords of somebody who waits as long as told."""
    waits = []
    for _ in range(n):
        wait = throttle.begin(name, address)
        waits.append(wait)
        if wait:
            clock.now += wait
            assert throttle.begin(name, address) == 0
    return waits


def test_the_wait_doubles_up_to_a_quarter_of_an_hour() -> None:
    clock = Clock()
    waits = attempts(Throttle(clock=clock), clock, 18, "ada", "10.0.0.1")
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]


def test_of_many_at_once_only_the_first_are_looked_at() -> None:
    throttle = Throttle(clock=Clock())
    assert sum(throttle.begin("ada", "10.0.0.1") == 0 for _ in range(200)) == 4


def test_who_tries_many_names_waits_and_others_do_not() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    tried = [throttle.begin(f"user{i}", "10.0.0.1") == 0 for i in range(200)]
    assert sum(tried) == 21
    assert throttle.begin("ada", "10.0.0.2") == 0


def test_many_addresses_against_one_name_wait_a_minute_at_most() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    waits = [throttle.begin("ada", f"10.0.{i // 250}.{i % 250}") for i in range(200)]
    assert waits.count(0) == 21
    for i in range(40):
        clock.now += 61
        assert throttle.begin("ada", f"10.1.0.{i}") == 0
    assert throttle.begin("ada", "10.2.0.1") == 60


def test_all_of_an_ipv6_network_is_one_address() -> None:
    throttle = Throttle(clock=Clock())
    waits = [throttle.begin(f"user{i}", f"2001:db8::{i:x}") for i in range(50)]
    assert waits.count(0) == 21
    assert throttle.begin("ada", "2001:db8:0:1::1") == 0


def test_a_right_password_clears_the_pair_and_time_clears_the_rest() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    for _ in range(3):
        assert throttle.begin("ada", "10.0.0.1") == 0
    assert throttle.begin("ada", "10.0.0.1") == 0
    throttle.succeeded("ada", "10.0.0.1")
    assert [throttle.begin("ada", "10.0.0.1") for _ in range(4)] == [0, 0, 0, 0]
    assert throttle.begin("ada", "10.0.0.1") > 0
    clock.now += FORGOTTEN_SECONDS
    assert [throttle.begin("ada", "10.0.0.1") for _ in range(4)] == [0, 0, 0, 0]


def test_an_account_of_ones_own_does_not_clear_an_address() -> None:
    throttle = Throttle(clock=Clock())
    allowed = 0
    for i in range(200):
        if throttle.begin("mallory", "10.0.0.1") == 0:
            throttle.succeeded("mallory", "10.0.0.1")
        allowed += throttle.begin(f"user{i}", "10.0.0.1") == 0
    assert allowed <= 21


def test_what_is_remembered_is_bounded() -> None:
    throttle = Throttle(capacity=300, clock=Clock())
    for i in range(1000):
        throttle.begin(f"user{i}" * 1000, f"10.{i // 250}.0.{i % 250}")
    assert len(throttle) == 300
