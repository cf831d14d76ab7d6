"""A worker that computes without a word is not taken for dead; one that does nothing is."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from scant.events import Finished, Progress, State
from scant.runs import RunService
from scant.runs.dispatch import pool
from scant.store import Store
from tests.engine.runs.fake_worker_client import FakeWorkerClient, until

pytestmark = [pytest.mark.usefixtures("toy"), pytest.mark.timeout(120)]


class ComputingClient(FakeWorkerClient):
    """A client whose worker uses its processor until it is told not to."""

    local = True

    def __init__(self) -> None:
        super().__init__()
        self.computing, self.looks, self.used, self.renewed = True, 0, 100.0, 0

    async def cpu_seconds(self, address: str) -> float | None:
        self.looks += 1
        self.used += self.computing
        return self.used

    async def renew(self, address: str, run: str, attempt: int) -> None:
        self.renewed += 1


async def _running(url: str) -> tuple[RunService, ComputingClient, str]:
    client = ComputingClient()
    server = RunService(Store.open(url), client=client)
    await server.start()
    run = await server.submit("toy", {}, "demo", "ada")
    await until(lambda: client.begun)
    client.say(Progress(1, -1.0, 0.1, -1.0, -1.0))
    await until(lambda: server.lifecycle.live[run].worker)
    return server, client, run


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "COUNT_SECONDS", 0.02)
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 0.2)


def test_processor_time_is_a_sign_of_life_and_its_lack_is_none(tmp_path: Path) -> None:
    async def story() -> None:
        server, client, run = await _running(f"sqlite:///{tmp_path / 'scant.db'}")
        heard = server.lifecycle.live[run].heard
        await until(lambda: time.monotonic() - heard > 5 * pool.SILENCE_SECONDS)
        assert client.looks > 3
        assert server.store.run(run).losses == client.renewed == 0
        client.computing = False
        await until(lambda: client.renewed)
        await until(lambda: server.store.run(run).losses == 1)
        await server.close(0.1)

    asyncio.run(asyncio.wait_for(story(), 50))


def test_a_computation_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "COMPUTING_SECONDS", 0.5)

    async def story() -> None:
        server, client, _ = await _running(f"sqlite:///{tmp_path / 'scant.db'}")
        await until(lambda: client.renewed)
        client.say(Finished(State.CONVERGED, "It converged."))
        await server.close(0.1)

    asyncio.run(asyncio.wait_for(story(), 50))
