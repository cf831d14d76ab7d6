"""A server in a process of its own, as `scant serve` starts it, seen from outside.

Nothing in it knows that it is measured, so any version of Scant can be: with the Python of an
environment in which that is installed.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil

from scant.store import Store

START = "from scant_dashboard.cli.main import app; app()"
MADE = 240.0  # seconds at most that a server may take to make its static pages


class Server:
    """One that runs.

    Attributes:
        url: Its address.
        process: Its main process.
        seconds: From its start to the first answer of /healthz.
    """

    def __init__(self, url: str, folder: Path, process: psutil.Process, seconds: float) -> None:
        self.url, self.process, self.seconds = url, process, seconds
        self._folder = folder

    @property
    def store(self) -> Store:
        """What its runs are read from."""
        return Store.open(f"sqlite:///{self._folder / 'scant.db'}")

    def memory(self) -> float:
        """MB of the main process."""
        return float(self.process.memory_info().rss / 1e6)

    def disk(self) -> float:
        """MB of its database, with the write-ahead log."""
        return sum(file.stat().st_size for file in self._folder.glob("scant.db*")) / 1e6

    def cpu(self) -> dict[int, float]:
        """Seconds that each of its processes has used, by its number."""
        used = {}
        for one in [self.process, *self.process.children(recursive=True)]:
            try:
                times = one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            used[one.pid] = times.user + times.system
        return used

    def step(self, run: str) -> tuple[int, float]:
        """Steps that a run has taken, and the time that it has trained, in seconds."""
        trace = self.store.trace(run)
        return (int(trace.step[-1]), float(trace.seconds[-1])) if len(trace.step) else (0, 0.0)

    def settle(self) -> None:
        """Wait until it does nothing of itself any more: until its static pages are made."""
        until, quiet = time.monotonic() + MADE, 0
        while time.monotonic() < until and quiet < 3:
            time.sleep(1)
            quiet = 0 if self._making() else quiet + 1

    def _making(self) -> bool:
        lines = []
        for child in self.process.children():
            with suppress(psutil.NoSuchProcess):
                lines += child.cmdline()
        return any("static_page" in line for line in lines)


@contextmanager
def serving(python: str, port: int, folder: Path) -> Iterator[Server]:
    """A server of the version that `python` imports, with its data in `folder`."""
    variables = {**os.environ, "SCANT_DATA_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    command = [python, "-c", START, "serve", "--port", str(port), "--workers", "1"]
    url, began = f"http://127.0.0.1:{port}", time.monotonic()
    process = subprocess.Popen(command, env=variables, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        yield Server(url, folder, psutil.Process(process.pid), _up(url, process, began))
    finally:
        process.terminate()
        process.wait(timeout=60)


def starts(python: str, port: int, folder: Path, times: int) -> np.ndarray:
    """Seconds to the first answer of /healthz, of a server whose pages are made."""
    seconds = []
    for _ in range(times):
        with serving(python, port, folder) as server:
            seconds.append(server.seconds)
            server.settle()
    return np.array(seconds)


def _up(url: str, process: subprocess.Popen[bytes], began: float) -> float:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return time.monotonic() - began
        except OSError:
            time.sleep(0.02)
    raise SystemExit("the server did not come up")
