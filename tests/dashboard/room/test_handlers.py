"""The addresses of a room as phones, and others, ask them."""

from __future__ import annotations

import http.client
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scant_dashboard.auth.accounts import hash_password, write_users
from scant_dashboard.room import handlers
from scant_dashboard.room import room as limits
from scant_dashboard.room.question import Question
from scant_dashboard.room.room import Room
from scant_dashboard.room.wall import Wall
from scant_dashboard.room.wall_presets import Variation
from tests.dashboard.standing import Reply, Standing, ask, standing

JSON = {"Content_Type": "application/json"}
QUESTION = Question("How many of a hundred?", span=(0, 100, 1))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("rooms")) as server:
        yield server


@pytest.fixture
def room(served: Standing) -> Iterator[Room]:
    opened = served.site.rooms.open("anna")
    opened.ask(QUESTION, False, [QUESTION])
    yield opened
    opened.close()


def phone(served: Standing, room: Room) -> str:
    """The cookie of a phone that opened the room's page."""
    return ask(f"{served.url}/room/{room.code}").cookie


def vote(served: Standing, room: Room, cookie: str, value: Any = 42, **headers: str) -> Reply:
    body = json.dumps({"number": room.ballots[-1].number, "value": value})
    given = JSON | {"Cookie": cookie} | headers
    return ask(f"{served.url}/room/{room.code}/votes", "POST", body, **given)


def test_a_phone_gets_a_small_page_and_one_cookie_of_this_room(
    served: Standing, room: Room
) -> None:
    reply = ask(f"{served.url}/room/{room.code.lower()}")
    assert reply.status == 200
    (cookie,) = reply.headers.get_all("Set-Cookie") or []
    assert re.match(rf"scant_room_{room.code}=[\w-]{{22}}; ", cookie)
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "path" not in cookie.lower()  # the browser takes the folder, whatever the prefix
    size = len(reply.body)
    for file in re.findall(r'(?:src|href)="\.\./([^"]+)"', reply.body.decode()):
        size += len(ask(f"{served.url}/{file}").body)
    assert size < 30_000
    assert not re.search(rb"https?://", reply.body)
    again = ask(f"{served.url}/room/{room.code}", Cookie=cookie.split(";")[0])
    assert again.headers["Set-Cookie"] is None
    assert "script-src" not in reply.headers["Content-Security-Policy"]
    assert "default-src 'self'" in reply.headers["Content-Security-Policy"]


def test_a_vote_is_taken_once_a_phone(served: Standing, room: Room) -> None:
    cookie = phone(served, room)
    assert json.loads(vote(served, room, cookie).body) == {"mine": 42}
    assert vote(served, room, cookie, 43).status == 200
    assert vote(served, room, phone(served, room), 7).status == 200
    assert sorted(room.ballots[0].votes.values()) == [7, 43]


@pytest.mark.parametrize("value", [101, -1, "42", None, True, [1, 2], float("nan"), 1e400])
def test_what_is_no_answer_is_refused(served: Standing, room: Room, value: Any) -> None:
    reply = vote(served, room, phone(served, room), value)
    assert (reply.status, reply.body) == (400, b"Give a number from 0 to 100.")
    assert room.ballots[0].votes == {}


def test_votes_of_other_sites_and_of_no_phone_are_refused(served: Standing, room: Room) -> None:
    cookie = phone(served, room)
    assert vote(served, room, cookie, Origin="https://evil.example").status == 403
    assert vote(served, room, cookie, Sec_Fetch_Site="cross-site").status == 403
    assert vote(served, room, cookie, Content_Type="text/plain").status == 400
    assert vote(served, room, "").status == 400
    assert vote(served, room, "scant_room_XXXXX=" + "a" * 22).status == 400
    assert room.ballots[0].votes == {}
    assert vote(served, room, cookie, Origin=served.url).status == 200


def test_a_vote_is_small_and_whole(served: Standing, room: Room) -> None:
    url, cookie = f"{served.url}/room/{room.code}/votes", phone(served, room)
    long = json.dumps({"number": 1, "value": 42, "more": "x" * handlers.BODY_LIMIT})
    assert ask(url, "POST", long, Cookie=cookie, **JSON).status == 413
    strange = ('{"number": 1}', '{"number": [], "value": {}}', '{"number": true, "value": 42}')
    for body in ("", "{", "[]", "1", "[" * 400, *strange):
        assert ask(url, "POST", body, Cookie=cookie, **JSON).status in (400, 404), body
    assert room.ballots[0].votes == {}


def test_a_phone_that_hammers_is_told_to_wait(served: Standing, room: Room) -> None:
    cookie = phone(served, room)
    replies = [vote(served, room, cookie) for _ in range(limits.PHONE_PACE[0] + 1)]
    assert [r.status for r in replies] == [200] * limits.PHONE_PACE[0] + [429]
    assert int(replies[-1].headers["Retry-After"]) >= 1


def test_a_revealed_question_and_a_room_that_is_over_take_no_vote(
    served: Standing, room: Room
) -> None:
    cookie = phone(served, room)
    number = room.ballots[0].number
    room.reveal(QUESTION, "All.")
    assert vote(served, room, cookie).status == 409
    room.close()
    body = json.dumps({"number": number, "value": 1})
    for end, method in (("", "GET"), ("/news", "GET"), ("/votes", "POST"), ("/pictures/1", "GET")):
        reply = ask(f"{served.url}/room/{room.code}{end}", method, body, Cookie=cookie, **JSON)
        assert reply.status == 404, end
        assert b"No lesson has this code" in reply.body
        assert reply.headers["Set-Cookie"] is None


def test_phones_need_no_login(tmp_path: Path) -> None:
    write_users(tmp_path / "users.json", {"ada": hash_password("lovelace")})
    with standing(tmp_path, auth=tmp_path / "users.json") as guarded:
        room = guarded.site.rooms.open("user:ada")
        room.ask(QUESTION, False, [QUESTION])
        assert vote(guarded, room, phone(guarded, room)).status == 200
        assert ask(f"{guarded.url}/redshift").status == 302


def streamed(served: Standing, path: str, cookie: str = "") -> tuple[Any, Any]:
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=30)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    return connection, connection.getresponse()


def news(answer: Any) -> Any:
    """The next news of a stream, passing over its beats."""
    while True:
        line = answer.readline().decode()
        if line.startswith("data: "):
            return json.loads(line[6:]) if line[6:].strip() else None


def test_news_are_streamed_to_phones_and_followers(served: Standing, room: Room) -> None:
    path, loop = f"/room/{room.code}/news", served.server.io_loop
    connection, answer = streamed(served, path, phone(served, room))
    assert answer.headers["Content-Type"] == "text/event-stream"
    first = news(answer)
    assert [q["text"] for q in first["questions"]] == [QUESTION.text]
    assert first["present"] == first["questions"][0]["number"]
    following, followed = streamed(served, f"{path}?follow")
    assert news(followed) == {"leads": True, "step": None, "title": ""}
    assert len(room.phones) == 1  # a page that follows is no phone
    loop.add_callback(room.go, 3, "Bin by bin")
    assert news(answer)["title"] == "Bin by bin"
    assert news(followed)["step"] == 3
    loop.add_callback(room.reveal, QUESTION, "All.")
    assert news(answer)["questions"][0]["answer"] == "All."
    loop.add_callback(room.close)
    assert news(answer) is None
    for opened in (connection, following):
        opened.close()
    assert ask(f"{served.url}{path}", Cookie="").status == 404
    assert ask(f"{served.url}{path}", "HEAD").headers["Content-Type"] == "text/event-stream"


def test_a_phone_starts_one_run_on_the_wall(served: Standing, room: Room) -> None:
    url, cookie = f"{served.url}/room/{room.code}/runs", phone(served, room)
    reply = ask(url, "POST", "", Cookie=cookie)
    assert (reply.status, reply.body[:16]) == (404, b"There is no wall")
    wall = Wall(Variation("redshift"))
    room.start_wall(wall)
    assert ask(url, "POST", "", Cookie=cookie, Origin="https://evil.example").status == 403
    assert ask(url, "POST", "").status == 400  # no phone
    assert [ask(url, "POST", "", Cookie=cookie).status for _ in range(2)] == [204, 204]
    assert [run.number for run in wall.runs] == [1]
    connection, answer = streamed(served, f"/room/{room.code}/news", cookie)
    assert news(answer)["wall"]["own"]["title"] == "seed 0"
    connection.close()


def test_a_picture_is_sent_to_phones(served: Standing, room: Room) -> None:
    where = Question("Where?", picture=b"jpeg")
    room.ask(where, False, [where])
    url = f"{served.url}/room/{room.code}/pictures/{room.ballots[-1].number}"
    reply = ask(url)
    assert (reply.status, reply.body) == (200, b"jpeg")
    assert reply.headers["Content-Type"] == "image/jpeg"
    assert ask(f"{url}9").status == 404


def test_nothing_of_a_room_is_logged(
    served: Standing, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    access = logging.getLogger("tornado.access")
    access.addHandler(caplog.handler)  # it does not propagate where Bokeh logs
    try:
        with caplog.at_level(logging.DEBUG, "tornado.access"):
            vote(served, room, phone(served, room), 101)
            vote(served, room, "")
            ask(f"{served.url}/room/none")
            ask(f"{served.url}/none")
            ask(f"{served.url}/healthz")  # by now the answers before are logged
    finally:
        access.removeHandler(caplog.handler)
    assert "404 GET /none" in caplog.text
    assert "/room/" not in caplog.text
    assert room.code not in caplog.text
