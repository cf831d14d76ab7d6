"""The app as a visitor meets it: `scant serve` in a process of its own, and a real Chromium."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.folders import chromium

expect.set_options(timeout=60_000)  # a busy machine takes its time to open a page
OPENING = 120_000  # ms
ENDING = 120  # s, for a server on a busy machine

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = chromium()
    assert path is not None, "SCANT_REQUIRE_BROWSER is set, and there is no Chromium or Chrome"
    return {**browser_type_launch_args, "executable_path": path, "args": ARGS}


@dataclass(frozen=True)
class Served:
    """A running `scant serve`: its address, its process, its data directory."""

    url: str
    process: subprocess.Popen[bytes]
    data: Path


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[Served]:
    """A server in a process of its own with one worker; ended, if it still runs, by SIGTERM."""
    port = free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in ("DATABASE_URL", "SCANT_SCHEDULER", "SCANT_DATA_DIR"):
        environment.pop(name, None)
    environment |= {"SCANT_STATIC_PAGES": os.environ.get("SCANT_STATIC_PAGES", "0"), **variables}
    folder.mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-c",
        "from scant_dashboard.cli.main import app; app()",
        "serve",
        *options,
    ]
    command += ["--port", str(port), "--workers", "1", "--data-dir", str(folder / "data")]
    with open(folder / "log", "a") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        come_up(url, server, folder / "log")
        yield Served(url, server, folder / "data")
    finally:
        server.terminate()
        server.wait(timeout=ENDING)


@pytest.fixture(scope="session")
def line_port() -> int:
    """Where a test may put something between browser and server."""
    return free_port()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, line_port: int) -> Iterator[Served]:
    """The one server that these tests share."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, "--allow-origin", f"127.0.0.1:{line_port}") as server:
        while os.environ.get("SCANT_STATIC_PAGES") and len([*folder.rglob("*-*.html")]) < 7:
            time.sleep(1)
        yield server


@pytest.fixture(scope="session")
def app_url(served: Served) -> str:
    """The address of the shared server."""
    return served.url


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    """A visitor as patient as the machine may be busy."""
    context.set_default_timeout(OPENING)
    return context


@pytest.fixture
def nothing_complains(page: Page, app_url: str) -> Iterator[None]:
    """Where a page is lived through: no error, no warning, no request to another host."""
    complaints = _complaints(page, app_url)
    yield
    assert complaints == []


def _complaints(page: Page, app_url: str) -> list[str]:
    """A list to which errors, warnings and requests to other hosts come."""
    complaints: list[str] = []
    loud = ("error", "warning")
    page.on("console", lambda m: complaints.append(m.text) if m.type in loud else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    ours = (app_url, "data:", "blob:")
    page.on("request", lambda r: None if r.url.startswith(ours) else complaints.append(r.url))
    return complaints


@pytest.fixture(scope="session")
def visits() -> Iterator[dict[str, tuple[Page, list[str]]]]:
    """Pages that stay open, and their complaints; each is a visitor of its own."""
    opened: dict[str, tuple[Page, list[str]]] = {}
    yield opened
    for page, _ in opened.values():
        page.context.close()


@pytest.fixture
def visit(
    request: pytest.FixtureRequest,
    browser: Browser,
    app_url: str,
    visits: dict[str, tuple[Page, list[str]]],
) -> Iterator[Callable[[str], Page]]:
    """Comes to an address where the last test left it; only the first one opens it.

    A page of ours takes more work to open than most tests do on it. It must not complain, and
    after a test that failed it is opened anew. Tests in any order find the recorded run on it:
    who trains, or fills a form with what is refused, does so at an address of their own.
    """
    came: set[str] = set()
    failed = request.session.testsfailed

    def come(path: str) -> Page:
        came.add(path)
        if path not in visits:
            page = browser.new_context().new_page()
            page.set_default_timeout(OPENING)
            visits[path] = page, _complaints(page, app_url)
            page.goto(app_url + path, timeout=OPENING)
            page.get_by_role("heading", level=1).wait_for(timeout=OPENING)
        return visits[path][0]

    yield come
    complaints = [visits[path][1] for path in came]
    if request.session.testsfailed > failed or any(complaints):
        for path in came:
            visits.pop(path)[0].context.close()
    assert not any(complaints), complaints


def come_up(url: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"scant serve did not come up:\n{log.read_text()[-4000:]}")
