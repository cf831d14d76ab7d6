"""A Postgres that is gone for a while, and comes back: nothing is lost and nobody restarts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from scant.errors import Unavailable
from scant.events import Checkpoint, Finished, Progress, State
from scant.runs import leases, store_writer
from scant.runs.dispatch import pool
from scant.runs.workers.protocol import Ended
from tests.deploy.conftest import Postgres
from tests.engine.runs.fake_worker_client import running, until


def step(number: int) -> Progress:
    return Progress(number, -1.0 / number, 0.1 * number, -1.0, -1.0)


def test_every_step_and_state_is_there_when_postgres_has_come_back(
    toy: str, postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POLL_SECONDS", "BEAT_SECONDS", "ADOPT_SECONDS"):
        monkeypatch.setattr(leases, name, 0.1)
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 20.0)
    monkeypatch.setattr(store_writer, "LAST_PAUSE", 0.2)

    async def story() -> None:
        server, client, run = await running(postgres_server.url)
        await asyncio.to_thread(postgres_server.stop)
        for number in range(2, 41):
            client.say(step(number))
            await asyncio.sleep(0.05)
        assert "does not answer" in server.storing()
        with pytest.raises(Unavailable, match="database"):
            await server.pause(run, "ada")
        with pytest.raises(Unavailable, match="does not answer"):
            server.store.run(run)  # as pages read it
        await asyncio.to_thread(postgres_server.start)
        await until(lambda: not server.storing())
        await until(lambda: server.store.trace(run).step.tolist() == list(range(1, 41)))
        assert (server.store.run(run).state, server.store.run(run).losses) == (State.RUNNING, 0)

        client.say(Checkpoint(40, b"forty"))
        await until(lambda: server.store.checkpoint(run) == Checkpoint(40, b"forty"))
        await asyncio.to_thread(postgres_server.stop)
        client.inbox.put_nowait(Ended(run, 1, "KilledWorker"))  # a loss that cannot be written yet
        await until(server.storing)
        await asyncio.to_thread(postgres_server.start)
        await until(lambda: len(client.begun) == 2)
        assert client.checkpoints[1] == b"forty"
        client.say(step(41), Finished(State.CONVERGED, "It converged."))
        await until(lambda: server.store.run(run).state is State.CONVERGED)
        await until(lambda: not server.owns(run))
        assert server.store.run(run).losses == 1
        await server.close(0.1)
        server.store.delete_run(run)

    with ThreadPoolExecutor(1) as apart:  # a browser of other tests has a loop on this thread
        apart.submit(asyncio.run, asyncio.wait_for(story(), 120)).result()
