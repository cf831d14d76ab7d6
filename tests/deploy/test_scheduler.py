"""`--scheduler`: runs on a Dask cluster that is somebody else's, and outlive its workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from playwright.sync_api import Page, expect

from scant.store import Store
from tests.browser.conftest import free_port, serving
from tests.browser.visiting import (
    DRAWN,
    LONG,
    PATIENCE,
    assert_whole,
    come_to,
    press,
    step_of,
    train,
    until,
    until_step,
)
from tests.paths import ROOT


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `dask` command of its own, as somebody would give it who knows nothing of our server."""
    command = [sys.executable, "-m", "dask", *arguments]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    with open(folder / "dask.log", "a") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=variables)
    try:
        yield running
    finally:
        running.kill()
        running.wait(20)


def spent(process: subprocess.Popen[bytes]) -> float:
    """Seconds that a process has computed so far."""
    return sum(psutil.Process(process.pid).cpu_times()[:2])


def training(page: Page, both: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """The one that computes now, however busy the machine is; the other may be loading PyTorch."""
    before = [spent(worker) for worker in both]
    for _ in range(PATIENCE // 500):
        page.wait_for_timeout(500)
        since = [spent(worker) - was for worker, was in zip(both, before)]
        if abs(since[0] - since[1]) > 5.0:
            return both[since.index(max(since))]
    raise AssertionError("neither worker computes")


def test_a_run_on_an_existing_cluster_is_paused_loses_its_worker_and_is_asked(
    page: Page, tmp_path: Path
) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    host, port = address.removeprefix("tcp://").split(":")
    with ExitStack() as stack:
        start = ["--host", host, "--port", port, "--dashboard-address", f"{host}:0"]
        stack.enter_context(process(tmp_path, "scheduler", *start))
        place = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", host]
        both = [stack.enter_context(process(tmp_path, "worker", address, *place)) for _ in "ab"]
        server = stack.enter_context(serving(tmp_path / "s", "--scheduler", address))
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert [p for p in family if "spawn_main" in " ".join(p.cmdline())] == []

        run = train(page, f"{server.url}/redshift?{LONG}")
        until(page, "running")
        until_step(page, 5)
        press(page, "Pause")
        until(page, "paused")
        press(page, "Resume")
        until(page, "running")
        until_step(page, step_of(page) + 10)
        busy = training(page, both)
        busy.send_signal(signal.SIGKILL)
        notes = page.locator("details", has_text="Notes of this run")
        lost = re.compile(r"The worker was lost \(loss 1 of 3 allowed\); going on from step \d+\.")
        expect(notes).to_contain_text(lost, timeout=PATIENCE)
        until(page, "running")
        until_step(page, step_of(page) + 10)
        press(page, "Stop")
        until(page, "stopped")
        store = Store.open(f"sqlite:///{server.data / 'scant.db'}")
        until_step(page, len(store.trace(run).step))
        store.close()
        assert_whole(page.evaluate(DRAWN))
        expect(come_to(page, "What if an input")).to_contain_text("Most likely", timeout=PATIENCE)
        page.get_by_role("checkbox", name="mag_u").uncheck()
        grown = page.get_by_text(re.compile(r"RMSE grows by a factor of \d"))
        expect(grown).to_be_visible(timeout=PATIENCE)
