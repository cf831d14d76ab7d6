"""Two run services on one database, with worker clients that only note what they are told."""

from __future__ import annotations

import asyncio

import pytest

from scant.events import Finished, Progress, Started, State
from tests.engine.runs.fake_worker_client import running, service, until

pytestmark = [
    pytest.mark.usefixtures("toy", "quick"),
    pytest.mark.slow("engine/scant/runs", "engine/scant/store"),
]


async def test_what_one_trains_the_other_leaves_alone_and_may_pause_and_resume(url: str) -> None:
    first, client, run = await running(url)
    second, other = service(url)
    await second.start()
    await asyncio.sleep(0.3)
    assert other.begun == other.abandoned == []
    assert (first.owns(run), second.owns(run)) == (True, False)
    await second.pause(run, "ada")
    await until(lambda: client.told)
    assert client.told == [(run, "pause")]
    client.say(Finished(State.PAUSED, "Paused."))
    await until(lambda: first.store.run(run).state is State.PAUSED)
    await asyncio.sleep(0.2)
    assert other.begun == []  # one that rests is left to rest
    await second.resume(run, "ada")
    await until(lambda: other.begun)
    assert (first.owns(run), second.owns(run)) == (False, True)
    assert (other.begun[0]["attempt"], other.checkpoints) == (2, [b"one"])
    other.say(Started("cpu", 40, 1))
    await first.stop(run, "ada")
    await until(lambda: other.told)
    assert other.told[-1] == (run, "stop")
    other.say(Finished(State.STOPPED, "Stopped."))
    await until(lambda: first.store.run(run).state is State.STOPPED)
    await first.stop(run, "ada")
    assert first.store.read_requests(second.lifecycle.journal.server, []) == ({}, [])
    for each in (first, second):
        await each.close(0.1)


async def test_a_closed_servers_run_goes_on_from_its_checkpoint_with_the_other(url: str) -> None:
    first, _, run = await running(url)
    second, other = service(url)
    await second.start()
    await first.close(0.1)
    await until(lambda: other.begun)
    assert other.abandoned == [run]
    assert (other.begun[0]["attempt"], other.checkpoints) == (2, [b"one"])
    await until(lambda: "The server was restarted; going on from step 1." in
                second.store.notes(run))  # fmt: skip
    await second.close(0.1)


async def test_a_server_lets_go_of_a_run_that_another_took_for_dead(url: str) -> None:
    first, client, run = await running(url)
    first.store.sign_in("another")  # a run of one that is gone would be taken back at once
    first.store.claim(run, "another")
    await until(lambda: not first.owns(run))
    assert client.told == [(run, "abandon")]
    assert first.status().running == 0
    client.say(Progress(2, -0.9, 0.2, -0.9, -0.9))  # the worker's last word comes too late
    await asyncio.sleep(0.2)
    assert first.store.trace(run).step.tolist() == [1]
    await first.close(0.1)
