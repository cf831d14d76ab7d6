"""Page builds: one at a time, fair between clients, bounded, the loop free in between."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from scant.runs.addresses import network
from scant_dashboard.limits.client import Busy, Client
from scant_dashboard.limits.gate import PageGate, Turn, Withdrawn
from scant_dashboard.limits.sessions import LiveSessions


class Builds:
    """Requests that note when they are built."""

    def __init__(self, gate: PageGate) -> None:
        self.gate, self.order, self.inside = gate, list[str](), 0

    async def request(self, name: str, address: str, visitor: str = "") -> None:
        async with self.gate.turn(address, visitor):
            self.inside += 1
            assert self.inside == 1
            self.order.append(name)
            await asyncio.sleep(0.001)
            self.inside -= 1

    def start(self, *clients: tuple[str, str]) -> list[asyncio.Task[None]]:
        """Requests named after their client, in this order."""
        return [
            asyncio.create_task(self.request(f"{address}{visitor}", address, visitor))
            for address, visitor in clients
        ]


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 30))


def test_a_client_with_many_requests_delays_another_by_one_build() -> None:
    async def main() -> None:
        builds = Builds(PageGate())
        tasks = builds.start(*[("a", "")] * 20)
        while not builds.order:
            await asyncio.sleep(0)
        tasks += builds.start(("b", ""))
        await asyncio.gather(*tasks)
        assert builds.order[:3] == ["a", "b", "a"]
        assert len(builds.order) == 21
        assert builds.gate._lines == {}

    run(main())


def test_visitors_of_one_address_take_turns_too() -> None:
    async def main() -> None:
        builds = Builds(PageGate())
        await asyncio.gather(*builds.start(*[("a", "x")] * 3, *[("a", "y")] * 3, ("b", "")))
        assert builds.order == ["ax", "b", "ay", "ax", "ay", "ax", "ay"]

    run(main())


def test_who_comes_again_and_again_does_not_overtake_who_waits() -> None:
    async def main() -> None:
        builds = Builds(PageGate())

        async def again() -> None:
            for _ in range(6):
                await builds.request("a", "a")

        await asyncio.gather(again(), *builds.start(*[("b", "")] * 4))
        assert builds.order[:8] == ["b", "a", "b", "a", "b", "a", "b", "a"]

    run(main())


@pytest.mark.parametrize(
    ("bounds", "waiting", "refused", "status"),
    [
        ({"per_visitor": 2}, [("a", "x")] * 2, ("a", "x"), 429),
        ({"per_address": 3}, [("a", ""), ("a", "x"), ("a", "y")], ("a", "z"), 429),
        ({"overall": 2}, [("a", ""), ("b", "")], ("c", ""), 503),
    ],
)
def test_bounds_on_requests_that_wait(
    bounds: dict[str, int], waiting: list[tuple[str, str]], refused: tuple[str, str], status: int
) -> None:
    async def main() -> None:
        builds = Builds(PageGate(**bounds))
        async with builds.gate.turn("first"):
            tasks = builds.start(*waiting)
            await asyncio.sleep(0)
            with pytest.raises(Busy) as caught:
                await builds.request("refused", *refused)
            assert caught.value.status == status
            assert str(caught.value).endswith("in a few seconds.")
            tasks += builds.start(("elsewhere", "q")) if "overall" not in bounds else []
        await asyncio.gather(*tasks)
        assert "refused" not in builds.order
        assert len(builds.order) == len(tasks)

    run(main())


def test_thirty_newcomers_of_one_address_get_in() -> None:
    async def main() -> None:
        builds = Builds(PageGate())
        await asyncio.gather(*builds.start(*[("school", "")] * 30))
        assert len(builds.order) == 30

    run(main())


def test_a_request_whose_client_went_away_is_not_built() -> None:
    async def main() -> None:
        gate, built = PageGate(), list[str]()

        async def request(turn: Turn, name: str) -> None:
            async with turn:
                built.append(name)

        turns = {name: gate.turn("a") for name in ("stays", "goes", "cancelled")}
        async with gate.turn("first"):
            tasks = {n: asyncio.create_task(request(turn, n)) for n, turn in turns.items()}
            await asyncio.sleep(0)
            turns["goes"].withdraw()
            tasks["cancelled"].cancel()
            with pytest.raises(Withdrawn):
                await tasks["goes"]
            assert gate.waiting == 1
        await tasks["stays"]
        assert built == ["stays"]
        turns["stays"].withdraw()  # too late, and harmless
        await asyncio.wait_for(gate.turn("a").__aenter__(), 5)  # nobody holds the gate

    run(main())


def test_a_withdrawal_in_the_moment_of_its_turn_does_not_hold_the_gate() -> None:
    async def main() -> None:
        gate = PageGate()
        turn = gate.turn("a")
        entering = asyncio.ensure_future(turn.__aenter__())
        await asyncio.sleep(0)
        turn.withdraw()
        gate._grant_next()
        with pytest.raises(Withdrawn):
            await entering
        async with gate.turn("b"):
            assert gate.waiting == 0

    run(main())


def test_a_build_that_fails_lets_the_next_one_in() -> None:
    async def main() -> None:
        gate = PageGate()
        with pytest.raises(ZeroDivisionError):
            async with gate.turn("a"):
                raise ZeroDivisionError
        async with gate.turn("a"):
            pass

    run(main())


def test_the_loop_serves_others_between_two_builds() -> None:
    """An answer to a health check takes some rounds of the loop."""

    async def main() -> None:
        gate, rounds = PageGate(), list[int]()
        count = 0

        async def others() -> None:
            nonlocal count
            while True:
                count += 1
                await asyncio.sleep(0)

        async def build() -> None:
            async with gate.turn("a"):
                rounds.append(count)  # and, as a page's build, no await

        task = asyncio.create_task(others())
        await asyncio.gather(*(build() for _ in range(5)))
        task.cancel()
        assert all(after - before >= 10 for before, after in pairwise(rounds))

    run(main())


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_one_subscriber_is_counted_as_one_address(address: str, counted: str) -> None:
    assert network(address) == counted


def test_sessions_are_counted_by_visitor_address_and_in_all() -> None:
    sessions = LiveSessions(per_visitor=2, per_address=3, overall=4)
    live: list[Any] = []

    def opened(address: str, visitor: str = "") -> None:
        client = Client(address, visitor)
        sessions.check(client)
        live.append(_Session())
        sessions.add(live[-1], client)

    opened("a", "x")
    opened("a", "x")
    with pytest.raises(Busy, match="You have 2 pages") as caught:
        opened("a", "x")
    assert caught.value.status == 429
    opened("a")
    with pytest.raises(Busy, match="Your network has 3 pages"):
        opened("a")
    opened("b")
    with pytest.raises(Busy, match="This server has 4 pages") as caught:
        opened("c")
    assert caught.value.status == 503
    live[0].destroyed = True  # its end frees a place, even while somebody still refers to it
    live.pop(1)
    opened("a", "x")
    opened("c")


class _Session(SimpleNamespace):
    destroyed = False
    __hash__ = object.__hash__
