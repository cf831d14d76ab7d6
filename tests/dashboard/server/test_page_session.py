"""A page's session belongs to the browser that opened the page, whatever an address says."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.document import Document
from bokeh.io.doc import curdoc
from bokeh.util.token import (
    check_token_signature,
    generate_jwt_token,
    generate_session_id,
    get_session_id,
)
from tornado.httpclient import HTTPRequest
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.websocket import WebSocketClosedError, websocket_connect

from scant_dashboard.auth.sessions import Login
from scant_dashboard.auth.visitor_cookie import COOKIE, sign
from scant_dashboard.server.page_session import FAULTS, SOCKETS, signing_key, visitor
from tests.dashboard.standing import KEY, Reply, Standing, ask, join, message, standing


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("sessions")) as server:
        yield server


@pytest.fixture
def opened(served: Standing) -> Reply:
    """A page that somebody has opened."""
    return ask(served.url)


def other() -> str:
    """The cookie of another visitor of this server."""
    return f"{COOKIE}={sign('mallory', KEY)}"


def test_the_server_alone_makes_session_ids(served: Standing, opened: Reply) -> None:
    fixed = "X" * 44
    signed = generate_session_id(signing_key(KEY), signed=True)
    for reply in (
        ask(f"{served.url}/?bokeh-session-id={fixed}"),
        ask(f"{served.url}/?bokeh-session-id={signed}"),
        ask(f"{served.url}/?bokeh-token={opened.token}"),
        ask(f"{served.url}/?bokeh-session-id={fixed}&bokeh-token={opened.token}"),
        ask(served.url, Bokeh_Session_Id=fixed),
        ask(served.url, Bokeh_Session_Id=get_session_id(opened.token)),
    ):
        assert reply.status == 200
        made = get_session_id(reply.token)
        assert made not in (fixed, signed, get_session_id(opened.token))
        assert check_token_signature(reply.token, signing_key(KEY), signed=True)
    assert fixed not in [session.id for session in served.server.get_sessions()]


def test_a_link_takes_no_session_over(served: Standing) -> None:
    """The attack on 0.1: who chose the id of the victim's session joined it."""
    chosen = "attackerattackerattacker"
    victim = ask(f"{served.url}/?bokeh-session-id={chosen}")
    token = generate_jwt_token(chosen, signed=False)
    assert join(served.url, token) == 403
    assert join(served.url, token, victim.cookie) == 403
    assert join(served.url, victim.token, victim.cookie) == 101


def test_what_a_link_says_of_sessions_and_scripts_reaches_no_page(served: Standing) -> None:
    query = "bokeh-absolute-url=https://evil.example/x&bokeh-app-path=/x&n_basis=3&word=%ff"
    reply = ask(f"{served.url}/?{query}")
    session = served.server.get_session("/", get_session_id(reply.token))
    arguments = session.document.session_context.request.arguments
    assert set(arguments) == {"n_basis", "word"}
    assert arguments["word"] == ["\ufffd".encode()]
    assert b"evil.example" not in reply.body
    assert ask(f"{served.url}/?theme=%ff").status == 200  # was a fault, with its traceback


def test_the_token_holds_nothing_but_the_session(served: Standing) -> None:
    reply = ask(
        f"{served.url}/?secret=inthequery",
        Cookie=f"{other()}; further=inthecookie",
        Authorization="intheheader",
    )
    held = reply.token.split(".")[0]
    payload = json.loads(base64.urlsafe_b64decode(held + "=" * (-len(held) % 4)))
    for packed in [value for value in payload.values() if isinstance(value, str)]:
        with pytest.raises((zlib.error, ValueError)):
            zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
    assert set(payload) == {"session_id", "session_expiry"}
    for secret in (b"inthecookie", b"intheheader", sign("mallory", KEY).encode()[-20:]):
        assert secret not in reply.body


def test_a_websocket_is_its_visitors_only(served: Standing, opened: Reply) -> None:
    fresh = ask(served.url)
    assert join(served.url, opened.token, other()) == 403
    assert join(served.url, opened.token, fresh.cookie) == 403
    assert join(served.url, opened.token, f"{COOKIE}=forged") == 403
    assert join(served.url, opened.token) == 403
    assert join(served.url, opened.token, opened.cookie) == 101


def test_a_websocket_makes_no_session(served: Standing) -> None:
    opened = ask(served.url)
    before = served.sessions()
    key = signing_key(KEY)
    unknown = generate_session_id(key, signed=True)
    known = get_session_id(opened.token)
    for token in (
        generate_jwt_token(unknown, key, signed=True),  # well made, of a session that is gone
        generate_jwt_token(known, key, signed=True, expiration=-1),
        generate_jwt_token(known, b"another key", signed=True),
        generate_jwt_token(known, signed=False),
        opened.token[:-1] + ("A" if opened.token[-1] != "A" else "B"),
        "nonsense",
        "bm9uc2Vuc2U.bm9uc2Vuc2U",
    ):
        assert join(served.url, token, opened.cookie) == 403, token
    assert served.sessions() <= before
    assert join(f"{served.url}/redshift", opened.token, opened.cookie) == 403  # another page's


def test_a_login_is_part_of_who_comes() -> None:
    def comer(user: str, cookie: str) -> Any:
        headers = HTTPHeaders({"Cookie": cookie})
        request = HTTPServerRequest("GET", "/", headers=headers)
        request.scant_login = Login(f"login of {user}", user)  # as `LoginSessions.check` leaves it
        return SimpleNamespace(request=request)

    anna = f"{COOKIE}={sign('anna', KEY)}"
    assert visitor(comer("ada", anna), KEY) == visitor(comer("ada", anna), KEY)
    assert visitor(comer("ada", anna), KEY) != visitor(comer("bob", anna), KEY)
    assert visitor(comer("ada", other()), KEY) != visitor(comer("ada", anna), KEY)
    assert visitor(comer("ada", ""), KEY) is None


def current(served: Standing) -> Document:
    """What `curdoc()` is on the server's loop, while nothing else is at work there."""
    result: Future[Document] = Future()
    served.server.io_loop.add_callback(lambda: result.set_result(curdoc()))
    return result.result(30)


def header(kind: str) -> str:
    return json.dumps({"msgid": "1", "msgtype": kind})


@pytest.mark.parametrize(
    "frames",
    [
        (
            header("PATCH-DOC"),
            "{}",
            '{"events": [{"kind": "ModelChanged", "model": {"id": "no"}}]}',
        ),
        (header("PATCH-DOC"), "{}", '{"nothing": 1}'),
        (header("PUSH-DOC"), "{}", '{"doc": {}}'),
        (header("NO-SUCH-THING"), "{}", "{}"),
        (header("ACK"), "{}", "{}"),
        ("no json", "{}", "{}"),
        ('{"msgtype": 1}', "{}", "{}"),
        (header("PATCH-DOC"), "{}", "no json"),
        (b"\x00\x01",),
    ],
)
def test_what_the_server_cannot_take_is_answered_in_a_sentence(
    frames: tuple[Any, ...], served: Standing, opened: Reply
) -> None:
    async def talk(socket: Any) -> tuple[str, str]:
        for frame in frames:
            try:
                await socket.write_message(frame, binary=isinstance(frame, bytes))
            except WebSocketClosedError:  # the server hung up at an earlier frame, and said why
                break
        return await message(socket)

    before = current(served)
    kind, content = join(served.url, opened.token, opened.cookie, talk)
    assert current(served) is before
    assert kind in ("", "ERROR")
    if kind == "ERROR":
        told = json.loads(content)
        assert told["traceback"] is None
        content = told["text"]
    assert "(noted as " in content
    for word in ("Traceback", "File ", "/", "Error", "bokeh", "'"):
        assert word not in content, content


@pytest.mark.slow
def test_a_page_has_few_connections_and_its_session_goes_with_the_last(served: Standing) -> None:
    opened = ask(served.url)
    session = served.server.get_session("/", get_session_id(opened.token))

    def connections(left: int) -> int:
        async def another(_: Any) -> int:
            return await asyncio.to_thread(connections, left - 1)

        return join(served.url, opened.token, opened.cookie, another if left else None)

    assert connections(SOCKETS - 1) == 101
    assert connections(SOCKETS) == 429

    async def left() -> None:
        while not session.destroyed:
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(left(), 20))  # not when the time to open a page is over


@pytest.mark.slow
def test_who_sends_only_what_cannot_be_taken_is_cut_off(
    served: Standing, caplog: pytest.LogCaptureFixture
) -> None:
    opened = ask(served.url)
    forged = "\nINFO login: name='ada'"
    patch = {"events": [{"kind": "ModelChanged", "model": {"id": forged}, "attr": "x", "new": 1}]}

    async def talk(socket: Any) -> list[str]:
        kinds = [""]
        while kinds[-1] != "" or len(kinds) == 1:
            for frame in (header("PATCH-DOC"), "{}", json.dumps(patch)):
                await socket.write_message(frame)
            kinds.append((await message(socket))[0])
        return kinds[1:]

    kinds = join(served.url, opened.token, opened.cookie, talk)
    assert kinds == ["ERROR"] * (FAULTS - 1) + [""]
    assert forged not in caplog.text


def test_a_message_before_the_session_is_joined_is_no_fault_of_the_server(
    served: Standing, caplog: pytest.LogCaptureFixture
) -> None:
    """A browser waits for the server's word first; who does not met an AttributeError."""
    opened = ask(served.url)

    async def hasty() -> None:
        at = f"{served.url.replace('http', 'ws', 1)}/ws"
        request = HTTPRequest(at, headers={"Cookie": opened.cookie, "Origin": served.url})
        socket = await websocket_connect(request, subprotocols=["bokeh", opened.token])
        for _ in range(3):
            with contextlib.suppress(WebSocketClosedError):
                await socket.write_message("{}")
        while await socket.read_message() is not None:
            pass

    asyncio.run(asyncio.wait_for(hasty(), 30))
    assert "NoneType" not in caplog.text
