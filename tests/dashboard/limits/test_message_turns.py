"""Messages of open pages: one at a time of each address, and nobody waits for another address."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest

from scant_dashboard.auth.visitor_cookie import COOKIE, sign
from scant_dashboard.limits import message_turns
from scant_dashboard.limits.message_turns import BoundedSocket, MessageTurns

KEY = "k" * 40


class Handler:
    """What handles messages where nothing bounds them."""

    def __init__(self, address: str, visitor: str, log: list[str]) -> None:
        headers = HTTPHeaders({"Cookie": f"{COOKIE}={sign(visitor, KEY)}"})
        self.request = HTTPServerRequest("GET", "/ws", headers=headers)
        self.request.remote_ip = address
        self.ws_connection: Any = SimpleNamespace()
        self.log, self.inside = log, asyncio.Event()
        self.go = asyncio.Event()

    async def answer(self, message: str) -> str:
        self.log.append(message)
        self.inside.set()
        await self.go.wait()
        return f"answer to {message}"

    async def send_message(self, work: str) -> None:
        self.log.append(work)


def socket(turns: MessageTurns, address: str, visitor: str, log: list[str]) -> Any:
    kind = type("Socket", (BoundedSocket, Handler), {"turns": turns, "key": KEY})
    return kind(address, visitor, log)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_messages_of_an_address_wait_for_each_other_and_visitors_take_turns() -> None:
    async def main() -> None:
        turns, log = MessageTurns(), list[str]()
        mallory = [socket(turns, "10.0.0.1", "mallory", log) for _ in range(3)]
        ada, bob = socket(turns, "10.0.0.1", "ada", log), socket(turns, "10.0.0.2", "bob", log)
        named = [*zip(mallory, ("m1", "m2", "m3"), strict=True), (ada, "a"), (bob, "b")]
        tasks = [asyncio.create_task(one.answer(name)) for one, name in named]
        await bob.inside.wait()  # who comes from elsewhere does not wait
        await mallory[0].inside.wait()
        await settled()
        assert sorted(log) == ["b", "m1"]
        for one, _ in named:
            one.go.set()
        await asyncio.gather(*tasks)
        begun = [word for word in log if word in ("m1", "m2", "m3", "a")]
        assert begun == ["m1", "a", "m2", "m3"]
        assert log.index("answer to m1") < log.index("a")  # it is sent within the turn

    asyncio.run(asyncio.wait_for(main(), 30))


def test_who_does_not_take_its_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        turns, log = MessageTurns(), list[str]()
        stuck, ada = socket(turns, "a", "mallory", log), socket(turns, "a", "ada", log)
        first = asyncio.create_task(stuck.answer("never taken"))
        await stuck.inside.wait()
        ada.go.set()
        await ada.answer("a")
        assert log == ["never taken", "a", "answer to a"]
        first.cancel()

    monkeypatch.setattr(message_turns, "HELD", 0.01)
    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_message_of_who_has_gone_is_not_handled() -> None:
    async def main() -> None:
        turns, log = MessageTurns(), list[str]()
        first, second = (socket(turns, "a", "ada", log) for _ in range(2))
        tasks = [asyncio.create_task(one.answer("m")) for one in (first, second)]
        await first.inside.wait()
        second.ws_connection = None
        first.go.set()
        await asyncio.gather(*tasks)
        assert log == ["m", "answer to m"]

    asyncio.run(asyncio.wait_for(main(), 30))
