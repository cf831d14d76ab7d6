"""`--auth`: nothing to see and nothing to talk to without a login, and to each what is theirs."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from scant.store import Store
from scant.studies import STUDIES
from scant_dashboard.auth.accounts import hash_password, write_users
from tests.browser.conftest import serving
from tests.browser.visiting import PATIENCE, SMALL, log_in, press, train, until


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing."""

    def redirect_request(self, *_: object) -> None:
        return None


def answer(url: str, cookie: str = "") -> tuple[int, str]:
    """Status and place of redirection of a plain request."""
    request = urllib.request.Request(url, headers={"Cookie": cookie} if cookie else {})
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=30) as found:
            return found.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Location", "")


def refusal(url: str) -> int:
    """The status with which a websocket is refused."""

    async def knock() -> int:
        try:
            origin = "/".join(url.replace("ws", "http", 1).split("/")[:3])
            request = HTTPRequest(url, headers={"Origin": origin})
            (await websocket_connect(request, subprotocols=["bokeh", "a-token"])).close()
        except HTTPClientError as error:
            return error.code
        return 101

    with ThreadPoolExecutor(1) as aside:  # Playwright has the event loop of this thread
        return aside.submit(lambda: asyncio.run(knock())).result(60)


def test_each_sees_their_own_and_a_stranger_nothing(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    users = tmp_path / "users.json"
    write_users(users, {"ada": hash_password("lovelace"), "bob": hash_password("ross")})
    with serving(tmp_path, "--auth", str(users)) as server:
        for place in ("", *STUDIES):
            assert answer(f"{server.url}/{place}") == (302, f"./login?next=%2F{place}")
            assert answer(f"{server.url}/{place}", "user=2|1:0|forged")[0] == 302
            assert answer(f"{server.url}/{place}?bokeh-session-id=guessed")[0] == 302
            under = f"{server.url}/{place}".rstrip("/")
            assert answer(f"{under}/autoload.js?bokeh-autoload-element=1") == (404, "")
            assert refusal(f"{under}/ws".replace("http", "ws", 1)) == 403
        assert answer(f"{server.url}/healthz") == (200, "")  # for whoever watches over the server

        page.goto(f"{server.url}/redshift?{SMALL}")
        log_in(page, "ada", "ross")
        expect(page.get_by_role("alert")).to_be_visible(timeout=PATIENCE)
        log_in(page, "ada", "lovelace")
        page.wait_for_url(f"**/redshift?{SMALL}", timeout=PATIENCE)  # where the link led
        run = train(page, f"{server.url}/redshift?{SMALL}")
        until(page, "converged|^finished|^limit reached")
        listed = f"a[href*='?run={run}']"
        expect(page.locator(listed)).to_be_visible(timeout=PATIENCE)
        store = Store.open(f"sqlite:///{server.data / 'scant.db'}")
        assert store.run(run).owner == "user:ada"
        assert {r.owner for r in store.runs("user:bob")} == {""}
        store.close()

        other = browser.new_context()
        try:
            stranger = other.new_page()
            stranger.goto(f"{server.url}/redshift")
            log_in(stranger, "bob", "ross")
            until(stranger, "converged|^finished|^limit reached")
            expect(stranger.locator("a[href*='?run=demo-redshift']")).to_be_visible()
            expect(stranger.locator(listed)).to_have_count(0)

            copied = "; ".join(f"{c['name']}={c['value']}" for c in page.context.cookies())
            assert answer(f"{server.url}/redshift", copied)[0] == 200
            second = page.context.new_page()
            second.goto(f"{server.url}/")
            expect(second.locator(".account")).to_contain_text("ada", timeout=PATIENCE)
            press(second, "Log out")
            for left in (second, page):  # the page that was open notices by itself
                expect(left.get_by_label("Password")).to_be_visible(timeout=PATIENCE)
            assert answer(f"{server.url}/redshift", copied)[0] == 302
            expect(stranger.locator(".account")).to_contain_text("bob")
        finally:
            other.close()
    log = (tmp_path / "log").read_text()
    for line in (
        "WARNING login failed: name='ada'",
        "INFO login: name='bob'",
        "INFO logout: name=",
    ):
        assert re.search(rf"(?m)^\d{{4}}-\d\d-\d\d \S+ {line}", log), line
    assert "lovelace" not in log
    assert "Traceback" not in log.partition("login failed")[2]
