"""How long waiting runs are told to wait, and where a resumed run stands in the queue."""

from __future__ import annotations

import time

import pytest

from scant.events import Finished, Progress, State
from tests.engine.runs.fake_worker_client import running, until

pytestmark = pytest.mark.usefixtures("toy")


@pytest.mark.slow
async def test_a_wait_follows_the_pace_of_the_run_ahead_and_a_late_one_promises_nothing(
    url: str,
) -> None:
    server, client, first = await running(url)
    second = await server.submit("toy", {}, "demo", "bea")
    client.say(Progress(2, -1.0, 20.0, -1.0, -1.0))  # ten seconds a step, of 40
    ahead, behind = server.lifecycle.live[first], server.lifecycle.live[second]
    await until(lambda: behind.announced and behind.announced.seconds)
    assert behind.announced.seconds == pytest.approx(380, abs=10)
    ahead.ends = time.monotonic() - 1  # the last step is over, and its report takes a while
    await until(lambda: behind.announced and behind.announced.seconds is None)
    await server.close(0.1)


async def test_a_run_that_was_paused_at_work_does_not_queue_again(url: str) -> None:
    server, client, first = await running(url)
    await server.pause(first, "ada")
    client.say(Finished(State.PAUSED, "Paused after step 1."))
    await until(lambda: server.store.run(first).state is State.PAUSED)
    for who in ("bea", "cyd", "dan"):
        await server.submit("toy", {}, "demo", who)
    await until(lambda: len(client.begun) == 2)
    await server.resume(first, "ada")
    assert server.lifecycle.queue.order()[0] == first
    await server.close(0.1)
