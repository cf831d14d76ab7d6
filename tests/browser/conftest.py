"""The app as a visitor meets it: `scant serve` in a process of its own, and a real Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Where Chromium or Chrome is, if it is here."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a browser where there is none, and say so."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if chromium() is None and os.environ.get("SCANT_REQUIRE_BROWSER") != "1":
                item.add_marker(pytest.mark.skip(reason="neither Chromium nor Chrome is installed"))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = chromium()
    assert path is not None, "SCANT_REQUIRE_BROWSER is set, and there is no Chromium or Chrome"
    return {**browser_type_launch_args, "executable_path": path, "args": ARGS}


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server started for these tests, with a data directory of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("served")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in ("DATABASE_URL", "SCANT_SCHEDULER", "SCANT_DATA_DIR"):
        environment.pop(name, None)
    command = [sys.executable, "-c", "from engine.cli import app; app()", "serve"]
    options = ["--port", str(port), "--workers", "1", "--data-dir", str(folder / "data")]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen([*command, *options], stdout=log, stderr=log, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"scant serve did not come up:\n{log.read_text()[-4000:]}")
