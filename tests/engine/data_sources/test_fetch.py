"""Downloads against a server of our own that breaks off, lies, or is not there."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from scant.data_sources.fetch import Download, fetch
from scant.errors import BadInput
from scant.studies.redshift import sdss
from scant.studies.redshift.simulate import simulate

SURVEY = simulate(400, seed=1)
GOOD = b"#Table1\n" + SURVEY.to_csv(index=False).encode()


class Server(ThreadingHTTPServer):
    """Answers with `body`; the first `breaks` answers break off halfway."""

    body = GOOD
    breaks = 0
    ranges = True
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    @property
    def download(self) -> dict[str, Download]:
        return {"sdss": Download(f"http://127.0.0.1:{self.server_port}/sql", sdss.read)}

    @property
    def checked(self) -> dict[str, Download]:
        digest = hashlib.sha256(self.body).hexdigest()
        return {"sdss": replace(self.download["sdss"], sha256=digest)}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        start = 0
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            size = len(server.body)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        else:
            self.send_response(server.status)
        rest = server.body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if server.breaks:
            server.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_table_is_fetched_once(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = fetch("sdss", tmp_path, lambda *p: seen.append(p), downloads=server.download)
    pd.testing.assert_frame_equal(pd.read_parquet(path), SURVEY)
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert fetch("sdss", tmp_path, downloads=server.download) == path
    assert len(server.asked) == 1
    assert [p.name for p in path.parent.iterdir()] == ["sdss.parquet"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_resumed(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.breaks, server.ranges = 2, ranges
    path = fetch("sdss", tmp_path, downloads=server.checked, pause=0.0)
    pd.testing.assert_frame_equal(pd.read_parquet(path), SURVEY)
    first, *later = server.asked
    starts = [int(str(asked).removeprefix("bytes=").rstrip("-")) for asked in later]
    half = len(GOOD) // 2
    assert first is None
    assert half - 1024 < starts[0] <= half  # a chunk is lost at most
    assert ranges == (starts[1] > half)


def test_without_a_checksum_a_broken_download_begins_again(server: Server, tmp_path: Path) -> None:
    server.breaks = 2
    path = fetch("sdss", tmp_path, downloads=server.download, pause=0.0)
    pd.testing.assert_frame_equal(pd.read_parquet(path), SURVEY)
    assert server.asked == [None, None, None]


@pytest.mark.parametrize("changed", [False, True])
def test_a_later_call_goes_on_and_sees_whether_the_file_has_changed(
    server: Server, tmp_path: Path, changed: bool
) -> None:
    server.breaks = 99
    with pytest.raises(BadInput, match="could not be downloaded"):
        fetch("sdss", tmp_path, downloads=server.checked, pause=0.0)
    assert (tmp_path / "datasets" / "sdss.part").stat().st_size > len(GOOD) // 2
    server.breaks, count = 0, len(server.asked)
    survey = simulate(500, seed=2) if changed else SURVEY
    server.body = b"#Table1\n" + survey.to_csv(index=False).encode()
    if changed:  # half of each: not kept
        with pytest.raises(BadInput, match="damaged"):
            fetch("sdss", tmp_path, downloads=server.checked, pause=0.0)
    path = fetch("sdss", tmp_path, downloads=server.checked, pause=0.0)
    pd.testing.assert_frame_equal(pd.read_parquet(path), survey)
    assert server.asked[count] is not None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"<html><body>Maximum 60 queries</body></html>", "answered a web page"),
        (b"ERROR: timeout\nafter 600 s", "answered 'ERROR: timeout after 600 s'"),
        (GOOD[:-9], "cut short"),
        (GOOD[: GOOD.rindex(b",") - 30] + b"\n", "cut short"),
        (b"#Table1\na,b\n1,2\n", "other columns"),
        (GOOD.split(b"\n", 2)[0] + b"\n" + GOOD.split(b"\n", 2)[1] + b"\n", "without rows"),
        (GOOD.rstrip(b"\n") + b"x\n", "no number"),
    ],
)
def test_answers_that_are_no_table(
    server: Server, tmp_path: Path, body: bytes, sentence: str
) -> None:
    server.body = body
    with pytest.raises(BadInput, match=sentence):
        fetch("sdss", tmp_path, downloads=server.download)
    assert list((tmp_path / "datasets").iterdir()) == []


def test_errors_of_the_server_and_checksums(server: Server, tmp_path: Path) -> None:
    wrong = {"sdss": Download(server.download["sdss"].url, sdss.read, sha256="0" * 64)}
    with pytest.raises(BadInput, match="checksum"):
        fetch("sdss", tmp_path, downloads=wrong)
    server.status = 404
    with pytest.raises(BadInput, match="it answered 404"):
        fetch("sdss", tmp_path, downloads=server.download, pause=0.0)
    assert len(server.asked) == 2


def test_offline(server: Server, tmp_path: Path) -> None:
    nowhere = {"sdss": Download("http://127.0.0.1:1/sql", sdss.read)}
    with pytest.raises(BadInput, match=r"from 127\.0\.0\.1 \(.*\); check the connection"):
        fetch("sdss", tmp_path, downloads=nowhere, pause=0.0)
    with pytest.raises(BadInput, match="There is no data set 'moon'"):
        fetch("moon", tmp_path)
