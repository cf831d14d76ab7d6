"""`--auth`: logging in and out, and what a cookie, a form and an address can not do."""

from __future__ import annotations

import asyncio
import base64
import http.client
import logging
import os
import re
import sqlite3
import urllib.parse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from scant.store import StoreTrouble
from scant.studies import STUDIES
from scant_dashboard import app as server_app
from scant_dashboard import template
from scant_dashboard.auth.sessions import COOKIE
from scant_dashboard.auth.throttle import Throttle
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.pages.gallery import gallery
from scant_dashboard.template import PageContent
from tests.dashboard.auth.login_server import Server, Visitor, serving, write_users

ADA, BOB = "lovelace 1815", "ross 1942 x"
WRONG = "The name or the password is wrong."
visits: list[SessionContext] = []


def noted(visit: SessionContext) -> PageContent:
    visits.append(visit)
    return gallery(visit)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("logins")
    with pytest.MonkeyPatch.context() as patch:
        write_users(folder / "users.json", patch, ada=ADA, bob=BOB)
        patch.setattr(server_app, "gallery", noted)
        with serving(folder, folder / "users.json") as server:
            yield server


@pytest.fixture
def server(shared: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The one that the tests share, with its users as they were and no failures remembered."""
    write_users(shared.users, monkeypatch, ada=ADA, bob=BOB)
    shared.provider.throttle = Throttle()
    visits.clear()
    return shared


@pytest.fixture
def ada(server: Server) -> Visitor:
    """Somebody who is logged in."""
    visitor = Visitor(server.port)
    assert visitor.log_in("ada", ADA).status == 303
    return visitor


def logged_in(visitor: Visitor) -> bool:
    answer = visitor.get("/")
    assert answer.status in (200, 302)
    return answer.status == 200


def asks_for_login(visitor: Visitor, path: str) -> bool:
    answer = visitor.get(path)
    return answer.status == 302 and answer.place.startswith("./login?")


# what a login gives


def test_a_page_without_a_login_leads_to_the_login_and_waits_for_nobody(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    gate = server.site.limits.gate
    busy = gate.turn("somebody else")
    server.on_loop(busy.__aenter__)
    try:
        answer = Visitor(server.port).get("/redshift?run=x")
    finally:
        server.on_loop(lambda: busy.__aexit__(None, None, None))
    assert (answer.status, answer.place) == (302, "./login?next=%2Fredshift%3Frun%3Dx")
    assert [r for r in caplog.records if r.levelname == "ERROR"] == []  # was a traceback each


def test_a_login_leads_to_where_the_visitor_wanted_to_go(server: Server) -> None:
    visitor = Visitor(server.port)
    query = visitor.get("/redshift?seed=1&x=%2F")
    assert query.status == 302
    form = visitor.get(query.place.removeprefix("."))
    assert form.status == 200
    assert b"password" in form.body
    wrong = visitor.log_in("ada", BOB, query.place.removeprefix("."))
    assert wrong.status == 403
    assert WRONG in wrong.body.decode()
    right = visitor.log_in("ada", ADA, query.place.removeprefix("."))
    assert (right.status, right.place) == (303, "/redshift?seed=1&x=%2F")
    again = visitor.get("/login?next=/genes")
    assert (again.status, again.place) == (302, "/genes")


@pytest.mark.parametrize(
    "onward",
    ["///evil.example/", "//evil.example", "/\\evil.example", "/\r\nX: y", "\xff", "/\xff"],
)
def test_a_login_leads_nowhere_else(server: Server, onward: str) -> None:
    query = urllib.parse.quote(onward, safe="", encoding="latin-1")
    answer = Visitor(server.port).log_in("ada", ADA, f"/login?next={query}")
    assert (answer.status, answer.place) == (303, "/")
    assert answer.headers["X"] is None


def test_the_cookie_is_for_this_server_alone_and_holds_no_name(server: Server) -> None:
    visitor = Visitor(server.port)
    line = visitor.log_in("ada", ADA).headers["Set-Cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=Lax"} <= set(line.split("; "))
    assert "Secure" not in line  # this test speaks plain HTTP
    assert "ada" not in re.split(r"\W", line)  # as a word: three random digits may spell it
    assert base64.b64encode(b"ada").decode() not in line
    other = Visitor(server.port)
    other.log_in("ada", ADA)
    assert other.cookies[COOKIE] != visitor.cookies[COOKIE]


def test_the_cookie_is_secure_behind_tls(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.bokeh._http, "xheaders", True)
    line = Visitor(server.port).log_in("ada", ADA, X_Forwarded_Proto="https").headers["Set-Cookie"]
    assert "Secure" in line.split("; ")


def test_the_database_opens_no_session(server: Server, ada: Visitor) -> None:
    with server.site.service.store.engine.connect() as db:
        rows = [str(row) for row in db.exec_driver_sql("SELECT * FROM logins")]
    secret = urllib.parse.unquote(ada.cookies[COOKIE]).split("|")[-2].split(":")[1]
    assert rows
    assert not [row for row in rows if secret in row or ADA in row]


def test_the_page_has_name_and_log_out(ada: Visitor) -> None:
    ada.get("/")
    (visit,) = visits
    assert (visit.owner, visit.user) == ("user:ada", "ada")
    header = template.header("redshift", user="<b>ada")
    assert "<form class='account' method='post' action='./logout'>" in header.object
    assert "&lt;b&gt;ada" in header.object
    assert "logout" not in template.header().object


# what ends it


def test_logging_out_ends_the_session_for_whoever_has_the_cookie(
    server: Server, ada: Visitor
) -> None:
    thief = Visitor(server.port, dict(ada.cookies))
    elsewhere = Visitor(server.port)
    elsewhere.log_in("ada", ADA)
    assert logged_in(thief)
    out = ada.post("/logout")
    assert (out.status, out.place) == (303, "./login")
    assert COOKIE not in ada.cookies
    assert not logged_in(thief)
    assert logged_in(elsewhere)  # another browser of the same user


def test_another_login_ends_the_one_before(server: Server, ada: Visitor) -> None:
    before = Visitor(server.port, dict(ada.cookies))
    ada.log_in("bob", BOB)
    assert logged_in(ada)
    assert not logged_in(before)


def test_an_address_logs_nobody_out(ada: Visitor) -> None:
    page = ada.get("/logout")
    assert page.status == 200
    assert b'<form method="post">' in page.body
    assert ada.send("HEAD", "/logout").status == 200
    assert ada.send("HEAD", "/login").status == 302
    assert logged_in(ada)


def test_logging_out_holds_on_every_server_of_the_database(
    server: Server, ada: Visitor, tmp_path: Path
) -> None:
    folder = server.site.data_dir
    with serving(folder, server.users) as second:
        there = Visitor(second.port, ada.cookies)
        assert logged_in(there)
        ada.post("/logout")
        assert not logged_in(there)


def test_a_removed_user_and_a_new_password_end_sessions_without_a_restart(
    server: Server, ada: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = Visitor(server.port)
    bob.log_in("bob", BOB)
    write_users(server.users, monkeypatch, bob="another password", cleo="nile nile")
    assert not logged_in(ada)
    assert not logged_in(bob)
    assert ada.log_in("ada", ADA).status == 403
    assert bob.log_in("bob", BOB).status == 403
    assert bob.log_in("bob", "another password").status == 303
    assert Visitor(server.port).log_in("cleo", "nile nile").status == 303


def test_a_file_that_is_being_written_logs_nobody_out(
    server: Server, ada: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    whole = server.users.read_text()
    for broken in (whole[:20], '{"ada": "lovelace 1815"}'):
        server.users.write_text(broken)
        assert logged_in(ada)
        assert "the user file cannot be used, its last state holds" in caplog.text
        caplog.clear()
        assert Visitor(server.port).log_in("bob", BOB).status == 303
        assert caplog.text == ""  # said once
    os.chmod(server.users, 0o600)


@pytest.mark.parametrize(
    ("created", "used", "live"), [(29, 13, True), (31, 1, False), (20, 15, False)]
)
def test_a_session_ends_by_itself(
    server: Server, ada: Visitor, created: int, used: int, live: bool
) -> None:
    with server.site.service.store.engine.begin() as db:
        sql = f"UPDATE logins SET created = created - {created}*86400, used = used - {used}*86400"
        db.exec_driver_sql(sql)
    assert logged_in(ada) == live
    if live:
        with server.site.service.store.engine.connect() as db:
            used_now = db.exec_driver_sql("SELECT max(used - created) FROM logins").scalar_one()
        assert used_now > 28 * 86400  # looking at a page is a use


def test_who_cannot_be_checked_is_not_let_in(
    server: Server, ada: Visitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(*_: object) -> None:
        raise StoreTrouble

    monkeypatch.setattr(server.site.service.store, "use_login", gone)
    assert ada.get("/").status == 503
    monkeypatch.undo()
    assert logged_in(ada)
    assert "Traceback" not in caplog.text


def test_a_locked_database_logs_nobody_out_and_nobody_in(
    server: Server, ada: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    engine = server.site.service.store.engine
    with engine.begin() as db:  # so that the next use is written down, where it can be
        db.exec_driver_sql("UPDATE logins SET used = used - 86400")

    def impatient(connection: Any, *_: Any) -> None:
        connection.execute("PRAGMA busy_timeout=50")

    event.listen(engine, "checkout", impatient)
    with closing(sqlite3.connect(str(engine.url.database), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert logged_in(ada)
        assert Visitor(server.port).log_in("bob", BOB).status == 503
        other.execute("ROLLBACK")
    assert Visitor(server.port).log_in("bob", BOB).status == 303
    assert "Traceback" not in caplog.text
    event.remove(engine, "checkout", impatient)


# guessing


def test_guessing_is_slowed_down_and_noted(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    answers = [Visitor(server.port).log_in("bob", f"guess number {i}") for i in range(30)]
    assert [a.status for a in answers[:4]] == [403] * 4
    assert [a.status for a in answers].count(429) >= 24
    late = answers[-1]
    assert int(late.headers["Retry-After"]) >= 1
    assert "Too many attempts to log in; try again in " in late.body.decode()
    refused = Visitor(server.port).log_in("bob", BOB)
    assert refused.status == 429  # the right one too, or 429 would tell which one is wrong
    assert "login failed: name='bob' address=127.0.0.1" in caplog.text
    assert Visitor(server.port).log_in("ada", ADA).status == 303  # nobody else waits
    assert "login: name='ada' address=127.0.0.1" in caplog.text
    assert "guess" not in caplog.text
    assert ADA not in caplog.text


def test_a_name_cannot_write_lines_into_the_log(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    Visitor(server.port).log_in("eve\r\n2026 login: name='ada'\x1b[2J\u202e", "some password")
    noted = [r.getMessage() for r in caplog.records if r.name == "scant_dashboard.auth.login"]
    (line,) = noted
    assert line.isascii()
    assert line.isprintable()
    assert "eve" in line


def test_an_unknown_name_is_answered_as_a_wrong_password_is(server: Server) -> None:
    visitor = Visitor(server.port)
    unknown, wrong = visitor.log_in("nobody", BOB), visitor.log_in("bob", ADA)
    assert (unknown.status, unknown.body) == (wrong.status, wrong.body)
    for nonsense in ("", "x" * 5000, "nul\x00l"):
        assert Visitor(server.port).log_in("ada", nonsense).status == 403


def test_a_form_is_no_upload(server: Server) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.putrequest("POST", "/login")
        connection.putheader("Content-Length", str(2**20))
        connection.endheaders()
        assert connection.getresponse().status in (400, 413)  # before the rest is sent
    assert Visitor(server.port).log_in("ada", ADA).status == 303


def test_passwords_beyond_what_the_server_checks_at_once_are_sent_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.site.logins, "_hashing", 1000)
    assert Visitor(server.port).log_in("ada", ADA).status == 429
    monkeypatch.undo()
    server.site.logins._hashing = 0  # type: ignore[union-attr]
    assert Visitor(server.port).log_in("ada", ADA).status == 303


# cookies and forms of others


def test_panels_cookies_make_nobody_a_user(
    server: Server, ada: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tornado.web import create_signed_value

    signed = create_signed_value(server.site.key, "user", "bob").decode()
    forged = {"is_guest": "1", "user": signed, "id_token": signed}
    assert not logged_in(Visitor(server.port, dict(forged)))
    ada.cookies |= forged
    assert logged_in(ada)
    assert visits[-1].owner == "user:ada"

    monkeypatch.setattr(server_app, "gallery", noted)
    with serving(tmp_path, None) as unprotected:
        for cookies in (forged, {**forged, COOKIE: ada.cookies[COOKIE]}):
            assert logged_in(Visitor(unprotected.port, dict(cookies)))
            assert visits[-1].user == ""
            assert visits[-1].owner
            assert not visits[-1].owner.startswith("user:")


def test_without_auth_there_is_no_login(tmp_path: Path) -> None:
    with serving(tmp_path, None) as unprotected:
        visitor = Visitor(unprotected.port)
        for path in ("/login", "/logout"):
            assert visitor.get(path).status == 404
            assert visitor.post(path).status == 404
        assert b"logout" not in visitor.get("/").body


@pytest.mark.parametrize("value", ["x", "2|1:0|10:1|11:scant_login|4:YWRh|00", "é", '"'])
def test_a_forged_cookie_is_none(server: Server, value: str) -> None:
    assert not logged_in(Visitor(server.port, {COOKIE: value}))


def test_a_signed_id_that_was_never_given_is_none(server: Server) -> None:
    from tornado.web import create_signed_value

    value = create_signed_value(server.site.key, COOKIE, "never given").decode()
    assert not logged_in(Visitor(server.port, {COOKIE: value}))


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "http://evil.example"}]
)
def test_pages_of_others_log_nobody_in_or_out(
    server: Server, ada: Visitor, headers: dict[str, str]
) -> None:
    stranger = Visitor(server.port)
    assert stranger.log_in("bob", BOB, **headers).status == 403
    assert COOKIE not in stranger.cookies
    assert ada.post("/logout", **headers).status == 403
    assert logged_in(ada)


def test_what_the_address_says_is_not_on_the_page(server: Server) -> None:
    page = Visitor(server.port).get("/login?error=Call+this+number&next=%22%3E%3Cscript%3E").body
    assert b"Call this number" not in page
    assert b"<script" not in page


# what needs a login


def test_nothing_is_reachable_without_a_login_but_what_is_meant_to(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = Visitor(server.port)
    for page in ("/", *(f"/{study}" for study in STUDIES)):
        assert asks_for_login(visitor, page)
        assert "Traceback" not in caplog.text
        assert visitor.send("HEAD", page).status in (302, 405)
        assert visitor.post(page).status in (403, 405)
        under = page.rstrip("/")
        for path in (f"{under}/ws", f"{under}/metadata", f"{under}/autoload.js"):
            assert visitor.get(f"{path}?bokeh-autoload-element=1").status in (302, 400, 403, 404)
    assert server.site.hub.watchers == set()
    assert visits == []
    for free in ("/healthz", "/templates/genes.csv", "/assets/plain.css", "/login"):
        assert visitor.get(free).status in (200, 503)


def open_page(visitor: Visitor) -> HTTPRequest:
    """The request for the websocket of a page that the visitor has before them."""
    page = visitor.get("/").body.decode()
    token = re.search(r'"token":"([^"]+)"', page)
    assert token is not None
    headers = {
        "Cookie": "; ".join(f"{name}={value}" for name, value in visitor.cookies.items()),
        "Sec-WebSocket-Protocol": f"bokeh, {token[1]}",
        "Origin": f"http://127.0.0.1:{visitor.port}",
    }
    return HTTPRequest(f"ws://127.0.0.1:{visitor.port}/ws", headers=headers)


async def closed(socket: WebSocketClientConnection) -> bool:
    """Whether the server closes it."""
    while await asyncio.wait_for(socket.read_message(), 30) is not None:
        pass
    return True


async def status_of(request: HTTPRequest) -> int:
    try:
        (await websocket_connect(request)).close()
    except HTTPClientError as error:
        return error.code
    return 101


def test_an_open_page_acts_no_more_after_logging_out(server: Server, ada: Visitor) -> None:
    async def story() -> None:
        request = open_page(ada)
        other = Visitor(server.port)
        other.log_in("bob", BOB)
        theirs = await websocket_connect(open_page(other))
        mine = await websocket_connect(request)
        assert b"ACK" in (await mine.read_message() or "").encode()  # type: ignore[union-attr]
        ada.post("/logout")
        assert await closed(mine)
        assert await status_of(request) == 403
        assert await status_of(HTTPRequest(request.url)) == 403
        assert "ACK" in str(await theirs.read_message())  # others' pages stay
        theirs.close()

    asyncio.run(story())


def test_an_open_page_is_closed_when_its_session_ended_elsewhere(
    server: Server, ada: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        mine = await websocket_connect(open_page(ada))
        await mine.read_message()
        await asyncio.to_thread(server.on_loop, server.provider.sessions.close_ended)
        assert await status_of(open_page(ada)) == 101
        write_users(server.users, monkeypatch, bob=BOB)
        await asyncio.to_thread(server.on_loop, server.provider.sessions.close_ended)
        assert await closed(mine)

    asyncio.run(story())
