"""What is told of a followed page: to whom it is new, and only what has changed."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any
from urllib.parse import parse_qsl

import pytest

from scant_dashboard.followers.channel import GZIP_BEGINS, Channel, piece
from scant_dashboard.followers.wanted import PageKey
from scant_dashboard.static_page.page import BEGIN, CLASSES, END

WANTED = PageKey("redshift", "abc")
BODY = f"<body>{BEGIN}{{{{styles}}}}<main>{{{{main}}}}</main>{END}</body>"
PAGE = f"<html lang='en' class='{CLASSES}'>{BODY}</html>"


def drawing(said: str, curve: str = "<svg></svg>", **more: Any) -> dict[str, Any]:
    """A look at a page of two parts."""
    shells = {
        "styles": "<style data-part='styles'></style>",
        "1": "<div data-part='1'><!--part 2--><!--part 3--></div>",
        "2": f"<p data-part='2'>{said}</p>",
        "3": f"<div data-part='3'>{curve}</div>",
    }
    about = {"root": "1", "title": "running", "final": False, "stamp": ["running", 1.0]}
    return {**about, "shells": shells, **more}


def told(event: bytes) -> dict[str, str]:
    data = next(line for line in event.decode().splitlines() if line.startswith("data: "))
    parts: dict[str, str] = json.loads(data.removeprefix("data: "))["parts"]
    return parts


def on_loop(story: Any) -> None:
    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_has_seen_a_turn_is_told_what_changed_since() -> None:
    async def story() -> None:
        channel = Channel(WANTED)
        channel.take(drawing("queued", page=PAGE))
        first = channel.turn
        channel.take(drawing("queued", shells={"3": "<div data-part='3'>a line</div>"}))
        second = channel.turn
        channel.take(drawing("queued", shells={"2": "<p data-part='2'>running</p>"}))
        assert told(channel.since(second, packed=False)) == {
            "main [data-part='2']": "<p data-part='2'>running</p>"
        }
        assert sorted(told(channel.since(first, packed=False))) == [
            "main [data-part='2']", "main [data-part='3']",
        ]  # fmt: skip
        for turn in ("", "otherwise-1", f"{first}x"):
            whole = told(channel.since(turn, packed=False))
            assert whole["main > *"].count("data-part") == 3
            assert "style[data-part]" in whole

    on_loop(story)


def test_a_part_that_comes_is_told_with_what_holds_it() -> None:
    async def story() -> None:
        channel = Channel(WANTED)
        channel.take(drawing("queued", page=PAGE))
        first = channel.turn
        grown = "<div data-part='1'><!--part 2--><!--part 4--></div>"
        channel.take(drawing("", shells={"1": grown, "4": "<b data-part='4'>result</b>"}))
        channel.take(drawing("", shells={"4": "<b data-part='4'>results</b>"}))
        parts = told(channel.since(first, packed=False))
        assert list(parts) == ["main [data-part='1']"]
        assert "results" in parts["main [data-part='1']"]
        assert "data-part='3'" not in parts["main [data-part='1']"]

    on_loop(story)


def test_pieces_are_one_stream_in_whichever_order() -> None:
    async def story() -> None:
        channel = Channel(WANTED)
        channel.take(drawing("queued", page=PAGE))
        first = channel.turn
        channel.take(drawing("", shells={"2": "<p data-part='2'>running</p>"}))
        pieces = [channel.since(turn, packed=True) for turn in (first, "", first)]
        plain = [channel.since(turn, packed=False) for turn in (first, "", first)]
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        stream = GZIP_BEGINS + b"".join(pieces) + piece(b"end")
        assert unpack.decompress(stream) == b"".join(plain) + b"end"
        assert pieces[0] is pieces[2]  # packed once for all

    on_loop(story)


def test_a_page_is_sent_as_it_stands_with_its_stream_until_the_run_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scant_dashboard.followers.channel.PAGE_SECONDS", 0.0)

    async def story() -> None:
        channel = Channel(WANTED)
        assert not channel.ready.done()
        channel.take(drawing("queued", page=PAGE))
        assert channel.ready.result()
        page = channel.page(dark=True)
        assert "queued" in page
        assert "class='dark'" in page
        assert f"data-at='{channel.turn}'" in page
        channel.take(drawing("converged", final=True))
        page = channel.page(dark=False)
        assert "converged" in page
        assert "data-at" not in page
        assert (
            zlib.decompress(channel.packed_page(dark=False), zlib.MAX_WBITS | 16).decode() == page
        )

    on_loop(story)


def test_a_follower_waits_for_what_is_new() -> None:
    async def story() -> None:
        channel = Channel(WANTED)
        channel.take(drawing("queued", page=PAGE))
        assert not await channel.newer(channel.turn, 0.01)
        waiting = asyncio.create_task(channel.newer(channel.turn, 30))
        await asyncio.sleep(0)
        channel.take(drawing("running"))
        assert await waiting
        waiting = asyncio.create_task(channel.newer(channel.turn, 30))
        await asyncio.sleep(0)
        channel.take({"gone": True})
        assert await waiting
        assert channel.lost

    on_loop(story)


def test_an_address_names_what_is_shared() -> None:
    query = {"run": "abc", "hide": "data", "text": "Look & see", "n_basis": "40", "theme": "dark"}
    wanted = PageKey.of("redshift", query)
    assert wanted is not None
    assert wanted.query == {"run": "abc", "hide": "data", "text": "Look & see"}
    stream = dict(parse_qsl(wanted.address()))
    assert PageKey.of(stream["study"], stream) == wanted
    for alone in ({"present": ""}, {"guess": "1"}, {"compare": "x"}, {"text": "long" * 300}):
        assert PageKey.of("redshift", {**query, **alone}) is None
    assert PageKey.of("redshift", {"hide": "data"}) is None
    assert PageKey.of("nothing", query) is None
