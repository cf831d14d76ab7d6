"""Runs outlive the server that began them, closed or killed, and go to clusters elsewhere."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from scant.errors import BadInput
from scant.events import Finished, State
from scant.runs.workers import cluster as workers_cluster
from scant.store import Store
from tests.engine.runs.driver import PATIENCE, Driver, database, in_process, trust_toy
from tests.paths import ROOT

pytestmark = [
    pytest.mark.usefixtures("toy"),
    pytest.mark.timeout(180),
    pytest.mark.slow("engine/scant/runs", "engine/scant/store", "engine/scant/training"),
]
SLOW = {"delay": 0.02, "max_steps": 4000}


@pytest.fixture(scope="module")
def cluster(toy: str) -> Iterator[str]:
    """The address of a cluster that outlives servers: its worker imports torch once for all."""
    trust_toy()
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_a_server_closed_in_order_goes_on_where_it_was_and_leaves_no_warnings(
    cluster: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of a worker in the midst of a step Dask warned that it was alive, and of what it had."""
    values = {"max_steps": 200, "seed": 2}
    first = Driver(database(tmp_path), workers=2)
    stuck = first.submit("bob", delay=10.0)
    first.until_state(stuck, State.RUNNING)
    run = first.submit(delay=0.01, **values)
    waiting = first.submit(max_steps=3)
    first.until_step(run, 20)
    first.close()
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert "distributed" not in capfd.readouterr().err
    store = Store.open(database(tmp_path))
    for each in (stuck, run, waiting):
        assert store.run(each).state is State.QUEUED
    assert store.checkpoint(run).step == store.trace(run).step[-1]
    assert "server was shut down" in store.notes(run)[-1]
    store.write(stuck, [Finished(State.STOPPED, "It has shown what it had to.")])
    store.close()
    second = Driver(database(tmp_path), scheduler=cluster)
    assert second.end(run) is State.HIT_LIMIT
    assert second.end(waiting) is State.HIT_LIMIT
    assert second.curve(run) == in_process(**values)
    second.close()


SERVER = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
import toy
from tests.engine.runs.driver import Driver, trust_toy
if __name__ == "__main__":
    toy.install()
    trust_toy()
    driver = Driver({url!r}, workers=1)
    print(driver.submit(max_steps=200, delay=0.01, seed=6), flush=True)
    time.sleep(600)
"""


def test_a_killed_server_goes_on_from_its_checkpoints(cluster: str, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    url = database(tmp_path)
    script.write_text(SERVER.format(root=str(ROOT), tests=str(ROOT / "tests"), url=url))
    root = str(ROOT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    server = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=env)
    run = server.stdout.readline().decode().strip()
    store = Store.open(url)
    deadline = time.monotonic() + PATIENCE
    while store.checkpoint(run) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert store.run(run).state is State.RUNNING
    store.close()
    again = Driver(url, scheduler=cluster)
    assert again.end(run) is State.HIT_LIMIT
    assert again.curve(run) == in_process(max_steps=200, seed=6)
    assert any("server was restarted" in note for note in again.store.notes(run))
    again.close()


def test_a_scheduler_that_does_not_answer_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_cluster, "CONNECT_SECONDS", 0.3)
    with pytest.raises(BadInput, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:7199"):
        Driver(database(tmp_path), scheduler="tcp://127.0.0.1:7199")


def test_the_same_runs_go_to_an_existing_cluster(cluster: str, tmp_path: Path) -> None:
    driver = Driver(database(tmp_path), scheduler=cluster)
    run = driver.submit(**SLOW)
    driver.until_step(run, 5)
    driver.close()
    driver = Driver(database(tmp_path), scheduler=cluster)
    driver.until_step(run, 5)
    driver.stop(run)
    assert driver.end(run) is State.STOPPED
    client = driver.service.lifecycle.client._cluster.client
    assert not client.scheduler_comm.recent_message_log  # each with the table of its run
    driver.close()
