"""Workers that the server starts: other users of the machine can reach their ports, no more."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import Security
from distributed.core import rpc

from engine.runs.cluster import Cluster


async def heard(address: str, key: Security) -> bool:
    """Whether what listens at an address answers to who has this key."""
    try:
        async with rpc(address, connection_args=key.get_connection_args("client")) as other:
            await asyncio.wait_for(other.identity(), 10)
    except (OSError, RuntimeError):
        return False
    return True


def test_who_has_not_the_servers_key_is_not_heard_by_scheduler_or_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SCANT_SCHEDULER", raising=False)

    async def story() -> None:
        cluster = await Cluster.connect(workers=1)
        answers = await cluster.client.run(os.getpid)
        assert os.getpid() not in answers.values()
        for address in (cluster.local.scheduler_address, *answers):
            assert await heard(address, cluster.local.security)
            assert not await heard(address, Security.temporary())
            assert not await heard(address.replace("tls://", "tcp://"), Security())
        await cluster.close()

    with ThreadPoolExecutor(1) as apart:  # a browser of other tests has a loop on this thread
        apart.submit(asyncio.run, story()).result()
