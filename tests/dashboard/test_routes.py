"""Plain addresses of the server: templates, health, what leads nowhere."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.app import Site, build
from engine.catalog import STUDIES, entry
from engine.datasets import inspect_table
from engine.store import Store
from tests.dashboard.fakes import FakeService


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Site]]:
    """A server with nothing behind it, on a loop of its own thread."""
    started = threading.Event()
    found: list = []

    def serve() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
        site = Site(FakeService(store), tmp_path, "k" * 40)
        server = build(site, 0)
        found.extend((server, site))
        server.start()
        server.io_loop.add_callback(started.set)
        server.io_loop.start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(30)
    server, site = found
    yield f"http://127.0.0.1:{server.port}", site
    server.io_loop.add_callback(server.stop)
    server.io_loop.add_callback(server.io_loop.stop)
    thread.join(10)


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_every_study_has_a_template_that_its_own_upload_takes(served: tuple[str, Site]) -> None:
    for study in STUDIES:
        status, content = get(f"{served[0]}/templates/{study}.csv")
        assert status == 200
        preview = inspect_table(content, entry(study).table, name="template.csv")
        assert [p for p in preview.problems if "rows" not in p] == []
        assert preview.n_rows > 0


@pytest.mark.parametrize("path", ["/templates/none.csv", "/templates/..%2f..%2fREADME.md", "/none"])
def test_what_is_not_there_is_not_found(served: tuple[str, Site], path: str) -> None:
    assert get(served[0] + path)[0] == 404


def test_health_is_said_without_a_session(served: tuple[str, Site]) -> None:
    url, site = served
    assert get(f"{url}/healthz")[0] == 200
    site.service.up = False
    assert get(f"{url}/healthz")[0] == 503
    site.service.up = True
    site.fault = "Runs cannot start."
    assert get(f"{url}/healthz")[0] == 503


def test_readiness_names_what_is_wanting_and_no_path(served: tuple[str, Site]) -> None:
    url, site = served
    assert get(f"{url}/readyz") == (200, b'{"ready": true, "reasons": []}')
    site.service.trouble = "The server cannot store anything at the moment."
    status, words = get(f"{url}/readyz")
    assert status == 503
    assert json.loads(words)["reasons"] == [site.service.trouble]
    assert get(f"{url}/healthz")[0] == 200  # it lives
    site.service.trouble, site.service.up = "", False
    assert json.loads(get(f"{url}/readyz")[1])["reasons"] == ["No worker is up."]
    site.fault = "Runs cannot start on this server: /secret/path"
    status, words = get(f"{url}/readyz")
    assert status == 503
    assert b"secret" not in words
