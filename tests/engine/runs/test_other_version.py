"""A paused run whose checkpoint another version of Scant wrote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from safetensors.torch import save

from scant.events import Checkpoint, Finished, State
from tests.engine.runs.fake_worker_client import service, until


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("act", "state"), [("resume", State.PAUSED), ("stop", State.FAILED)])
def test_it_is_not_lost_by_resuming(tmp_path: Path, act: str, state: State) -> None:
    async def story() -> None:
        server, client = service(f"sqlite:///{tmp_path / 'runs.db'}")
        run = server.store.add_run("toy", {}, "demo", "ada")
        old = save({}, metadata={"loop": json.dumps({"format": 1})})
        server.store.write(run, [Checkpoint(4, old), Finished(State.PAUSED, "After step 4.")])
        await server.start()
        await getattr(server, act)(run, "ada")
        await until(lambda: "another version" in server.store.run(run).reason)
        await until(lambda: not server.owns(run))
        assert server.store.run(run).state is state
        assert client.begun == []
        await server.close(0.1)

    asyncio.run(asyncio.wait_for(story(), 60))
