"""The page of a followed run and its stream, by clients that are no browser."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scant.events import Finished, Started, State
from scant_dashboard.auth.accounts import hash_password, write_users
from scant_dashboard.auth.visitor_cookie import verify
from scant_dashboard.followers import followers as module
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.server.page_session import PageHandler
from tests.dashboard.fakes import point
from tests.dashboard.followers.test_channel import PAGE, drawing
from tests.dashboard.standing import Standing, ask, standing

LIVE = b"<body>a page of one's own</body>"
FORM = "application/x-www-form-urlencoded"


async def _live(page: Any) -> None:
    """Stands for a page with a session, which takes its time."""
    page.write(LIVE.decode())


class Artist:
    """Stands for the drawing process: draws at once, and then what a test tells it to."""

    def __init__(self, database: str, hours: float, heard: Any, lost: Any) -> None:
        self.up, self.heard, self.lost = False, heard, lost
        self.requests: list[dict[str, Any]] = []
        self.silent = False

    def ask(self, **request: Any) -> None:
        self.up = True
        self.requests.append(request)
        if "follow" in request and not self.silent:
            self.heard(drawing("first", page=PAGE, of=request["follow"]))

    def close(self) -> None:
        self.up = False


class Followed:
    """A server, one run on it, and who draws that."""

    def __init__(self, server: Standing) -> None:
        assert server.followers is not None
        self.server, self.site, self.followers = server, server.site, server.followers
        self.artist: Any = server.followers.renderer  # an `Artist`
        store = server.site.service.store
        self.run = store.add_run("redshift", {}, "demo", "me")
        store.write(self.run, [Started("cpu", 10), point(1)])
        self.page = f"{server.url}/redshift?run={self.run}"
        self.stream = f"{server.url}/follow?study=redshift&run={self.run}"

    def draw(self, **message: Any) -> None:
        """Have the newest page drawn again."""
        number = [r["follow"] for r in self.artist.requests if "follow" in r][-1]
        self.on_loop(lambda: self.artist.heard({"of": number, **message}))

    def on_loop(self, call: Callable[[], Any]) -> Any:
        done, result = threading.Event(), []

        def act() -> None:
            result.append(call())
            done.set()

        self.server.server.io_loop.add_callback(act)
        assert done.wait(30)
        return result[0]


@contextmanager
def following(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[Followed]:
    monkeypatch.setattr(module, "Renderer", Artist)
    monkeypatch.setattr(PageHandler, "get", _live)
    with standing(folder, follow=True, **options) as server:
        yield Followed(server)


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    with following(tmp_path, monkeypatch) as made:
        yield made


class Reader:
    """One who follows: reads event by event."""

    def __init__(self, url: str, **headers: str) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", f"{parts.path}?{parts.query}", headers=given)
        self.answer = self.connection.getresponse()
        self.id = ""

    def event(self) -> tuple[str, Any]:
        """The next event's kind and data; ("", "") at the end."""
        kind = data = ""
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif name == "id":
                self.id = value
            elif not name and kind:
                return kind, json.loads(data)["parts"] if kind == "parts" else data
        return "", ""

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_a_follower_gets_the_page_and_its_changes_without_a_session(followed: Followed) -> None:
    page = ask(followed.page)
    assert "first" in page.body.decode()
    stream = re.search(r"data-from='([^']+)' data-at='([^']+)'", page.body.decode())
    assert stream is not None
    reader = Reader(
        f"{followed.server.url}/follow?{stream[1].replace('&amp;', '&')}&at={stream[2]}"
    )
    assert reader.answer.headers["Content-Type"].startswith("text/event-stream")
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>second</p>"}))
    assert reader.event() == ("parts", {"main [data-part='2']": "<p data-part='2'>second</p>"})
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>end</p>"}, final=True))
    assert reader.event()[1] == {"main [data-part='2']": "<p data-part='2'>end</p>"}
    assert [reader.event()[0], reader.event()[0]] == ["end", ""]
    assert sum("follow" in request for request in followed.artist.requests) == 1


def test_all_share_one_drawing_and_who_comes_again_is_told_what_they_missed(
    followed: Followed,
) -> None:
    readers = [Reader(followed.stream) for _ in range(3)]
    for reader in readers:
        assert "first" in reader.event()[1]["main > *"]
    readers[0].close()
    followed.draw(**drawing("", shells={"3": "<div data-part='3'>a curve</div>"}))
    missed = {"main [data-part='3']": "<div data-part='3'>a curve</div>"}
    assert [reader.event()[1] for reader in readers[1:]] == [missed, missed]
    again = Reader(followed.stream, Last_Event_ID=readers[0].id)
    assert again.event() == ("parts", missed)
    assert sum("follow" in request for request in followed.artist.requests) == 1
    for reader in [*readers[1:], again]:
        reader.close()


def test_who_reads_slowly_skips_what_is_old_and_costs_no_memory(followed: Followed) -> None:
    reader = Reader(followed.stream)
    assert reader.event()[0] == "parts"
    frames, size = 200, 400_000
    for number in range(frames):
        shell = f"<p data-part='2'>{number:{size}}</p>"
        followed.draw(**drawing("", shells={"2": shell}))
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>last</p>"}, final=True))
    kinds, seen = [], ""
    while (event := reader.event()) != ("", ""):
        kinds.append(event[0])
        seen = next(iter(event[1].values())) if event[0] == "parts" else seen
    assert seen == "<p data-part='2'>last</p>"
    assert kinds.count("parts") < frames / 2  # the rest was never sent
    assert kinds[-1] == "end"


def test_a_run_that_goes_on_after_its_end_is_drawn_again(followed: Followed) -> None:
    ask(followed.page)
    store = followed.site.service.store
    store.write(followed.run, [Finished(State.STOPPED, "Stopped.")])
    record = store.run(followed.run)
    stamp = [record.state.value, record.heartbeat]
    followed.draw(**drawing("over", final=True, stamp=stamp))
    drawn = len(followed.artist.requests)
    ask(followed.page)
    assert len(followed.artist.requests) == drawn
    store.write(followed.run, [point(2)])
    ask(followed.page)
    assert len(followed.artist.requests) == drawn + 1


def test_a_stream_breaks_off_where_nobody_draws_any_more(followed: Followed) -> None:
    reader = Reader(followed.stream)
    assert reader.event()[0] == "parts"
    followed.on_loop(followed.artist.lost)
    assert reader.event() == ("", "")  # and no end: the browser asks again
    again = Reader(followed.stream, Last_Event_ID=reader.id)
    assert "main > *" in again.event()[1]  # another drawing, whose numbers are others
    again.close()


def test_who_may_steer_a_run_or_asks_for_more_gets_a_page_of_their_own(followed: Followed) -> None:
    stranger = ask(followed.page).cookie
    store = followed.site.service.store
    for more in ("present=1", "guess=1", "compare=x"):
        assert ask(f"{followed.page}&{more}", Cookie=stranger).body == LIVE
    visitor = verify(stranger.partition("=")[2].strip('"'), followed.site.key)
    own = store.add_run("redshift", {}, "demo", visitor)
    assert ask(f"{followed.server.url}/redshift?run={own}", Cookie=stranger).body == LIVE
    labeled = store.add_run("clamp", {"expert": "you"}, "demo", "me")
    settled = store.add_run("clamp", {"expert": "auto"}, "demo", "me")
    store.write(settled, [Started("cpu", 1, metadata={"expert": "you"})])
    for run in (labeled, settled):
        assert ask(f"{followed.server.url}/clamp?run={run}", Cookie=stranger).body == LIVE
    touched = ask(f"{followed.page}&live=over", Cookie=stranger).body
    assert touched.startswith(b"<body><div id='still'")  # lies over it until it is drawn
    assert touched.endswith(b"a page of one's own</body>")


def test_a_run_that_is_not_there_has_the_live_pages_sentence(followed: Followed) -> None:
    for page in ("redshift?run=none", f"genes?run={followed.run}"):
        assert ask(f"{followed.server.url}/{page}").body == LIVE
    for asked in (
        "study=redshift&run=none",
        f"study=genes&run={followed.run}",
        "",
        "study=x&run=y",
    ):
        reader = Reader(f"{followed.server.url}/follow?{asked}")
        assert reader.event()[0] == "refused"
        assert reader.event() == ("", "")
    assert not followed.artist.requests


def test_streams_are_limited_and_the_page_is_then_built(followed: Followed) -> None:
    followed.followers.limits = LiveSessions(2, 3, 10)
    cookie = ask(followed.page).cookie
    first = [Reader(followed.stream, Cookie=cookie) for _ in range(2)]
    assert [reader.event()[0] for reader in first] == ["parts", "parts"]
    refused = Reader(followed.stream, Cookie=cookie).event()
    assert refused[0] == "refused"
    assert "You have 2 pages of this server open" in refused[1]
    assert ask(followed.page, Cookie=cookie).body == LIVE
    third = Reader(followed.stream)
    assert third.event()[0] == "parts"
    assert "Your network has 3 pages" in Reader(followed.stream).event()[1]
    third.close()
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>x</p>"}))
    for reader in first:
        assert reader.event()[0] == "parts"
        reader.close()


def test_a_page_that_is_not_drawn_in_time_is_built(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.artist.silent = True
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    assert ask(followed.page).body == LIVE
    followed.artist.silent = False
    monkeypatch.setattr(module, "MAX_PAGES", 1)
    assert ask(f"{followed.page}&text=another").body == LIVE


def test_what_nobody_follows_is_drawn_no_more(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("SWEEP", 0.02), ("GRACE", 0.0), ("IDLE", 0.0)):
        monkeypatch.setattr(module, name, seconds)
    reader = Reader(followed.stream)
    assert reader.event()[0] == "parts"
    followed.on_loop(followed.followers.start)
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>x</p>"}))
    assert reader.event()[0] == "parts"
    assert not any("drop" in request for request in followed.artist.requests)
    reader.close()
    followed.draw(**drawing("", shells={"2": "<p data-part='2'>y</p>"}))  # upon which it is noticed
    wait_until(lambda: not followed.artist.up)
    assert [r for r in followed.artist.requests if "drop" in r] == [{"drop": 0}]
    followed.on_loop(followed.followers.close)


def test_a_login_is_asked_for_and_its_end_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_users(tmp_path / "users.json", {"ada": hash_password("lovelace")})
    with following(tmp_path, monkeypatch, auth=tmp_path / "users.json") as guarded:
        assert ask(guarded.page).status == 302
        assert ask(guarded.stream).status == 403
        assert not guarded.artist.requests
        form = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin"}
        body = "username=ada&password=lovelace"
        reply = ask(f"{guarded.server.url}/login", "POST", body, **form)
        cookies = reply.headers.get_all("Set-Cookie") or []
        cookie = "; ".join(one.split(";")[0] for one in cookies)
        assert "data-from" in ask(guarded.page, Cookie=cookie).body.decode()
        reader = Reader(guarded.stream, Cookie=cookie)
        assert reader.event()[0] == "parts"
        ask(f"{guarded.server.url}/logout", "POST", "", Cookie=cookie, **form)
        with suppress(http.client.IncompleteRead, ConnectionError):
            assert reader.event() == ("", "")


def test_head_opens_no_stream(followed: Followed) -> None:
    answer = ask(followed.stream, "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert not followed.artist.requests


def wait_until(true: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(1000):
        if true():
            return
        waiting.wait(0.02)
    raise AssertionError("it did not come")
