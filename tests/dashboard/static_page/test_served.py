"""Static pages as a server sends them: to whom, with which headers, and when not."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scant.studies import STUDIES
from scant_dashboard.auth.accounts import hash_password, write_users
from scant_dashboard.auth.visitor_cookie import verify
from scant_dashboard.static_page.make import made
from scant_dashboard.static_page.page import ACCOUNT, CLASSES, END
from scant_dashboard.static_page.published import (
    FOLDER,
    GALLERY,
    PAGES,
    Published,
    code_key,
    file_of,
)
from tests.dashboard.auth.login_server import Visitor
from tests.dashboard.standing import KEY, Standing, ask, standing

MODELS = "<script data-part='1' type='application/json'>{}</script>"
PAGE = (
    f"<!DOCTYPE html><html lang='en' class='{CLASSES}'><head></head><body><!--still--><h1>The run"
    f"</h1>{MODELS}{ACCOUNT}{END}<script src='./assets/takeover.js' defer></script></body></html>"
)


def published(folder: Path, study: str = "redshift", text: str = PAGE) -> Published:
    """Pages of a server whose folder holds one of this study."""
    (folder / FOLDER).mkdir(exist_ok=True)
    file_of(folder / FOLDER, "k", study).write_text(text, encoding="utf-8")
    pages = Published(folder, "sqlite://", 2.0)
    for name in PAGES:
        pages.read("k", name)
    return pages


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("static")
    with standing(folder, published=published(folder)) as server:
        yield server


def test_a_page_comes_without_a_session_compressed_and_is_asked_for_once(served: Standing) -> None:
    before = served.sessions()
    plain = ask(f"{served.url}/redshift")
    packed = ask(f"{served.url}/redshift", Accept_Encoding="gzip")
    assert served.sessions() == before
    assert "<h1>The run</h1>" in plain.body.decode()
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["Content-Encoding"] == "gzip"
    assert MODELS not in plain.body.decode()
    figures = ask(f"{served.url}/redshift?figures", Accept_Encoding="gzip")
    assert gzip.decompress(figures.body).decode() == f"<div>{MODELS}</div>"
    assert ask(f"{served.url}/redshift?figures").body == gzip.decompress(figures.body)
    assert served.sessions() == before
    for reply in (plain, packed):
        assert reply.headers["Vary"] == "Accept-Encoding, Cookie"
        assert reply.headers["Cache-Control"] == "private, no-cache"
        assert "unsafe-eval" not in reply.headers["Content-Security-Policy"]
        assert "scant_visitor" in reply.headers["Set-Cookie"]
        again = ask(
            f"{served.url}/redshift", Accept_Encoding=reply.headers["Content-Encoding"] or "",
            If_None_Match=reply.headers["ETag"],
        )  # fmt: skip
        assert (again.status, again.body) == (304, b"")
    head = ask(f"{served.url}/redshift", "HEAD")
    assert (head.status, head.body, head.headers["ETag"]) == (200, b"", plain.headers["ETag"])


def test_the_gallery_needs_no_session(tmp_path: Path) -> None:
    pages = published(tmp_path, GALLERY, asyncio.run(made(GALLERY, service=None)))
    with standing(tmp_path, published=pages) as server:
        page = ask(f"{server.url}/", Cookie="scant_theme=dark")
        assert server.sessions() == set()
        assert "dark" in classes(page.body)
        for study in STUDIES:
            assert f"href='./{study}'" in page.body.decode()
        assert ask(f"{server.url}/?present").token


def classes(page: bytes) -> set[str]:
    match = re.search(r"<html lang='en' class='([^']*)'", page.decode())
    assert match is not None
    return set(match[1].split())


@pytest.mark.slow
@pytest.mark.parametrize("over", ["", "live=over"])
def test_the_theme_is_that_of_the_visitor(served: Standing, over: str) -> None:
    def look(query: str = "", **cookies: str) -> set[str]:
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        page = ask(f"{served.url}/redshift?{query}&{over}".rstrip("?&"), Cookie=cookie).body
        return set(re.findall(r"id='still' class='([^']*)'", page.decode())[0].split()) if over \
            else classes(page)  # fmt: skip

    assert look() == set()
    assert look(scant_theme="dark") == {"dark"}
    assert look("theme=dark") == {"dark"}
    assert look("theme=light", scant_theme="dark") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["live=1", "run=demo-redshift", "present", "data=demo", "guess=1", "seed=3&live=over"]
)
def test_who_asks_for_more_gets_the_live_page_at_once(served: Standing, query: str) -> None:
    page = ask(f"{served.url}/redshift?{query}")
    assert page.token
    assert "takeover.js" not in page.body.decode()


def sources(page: str) -> list[str]:
    """The addresses of a page's scripts, in order."""
    return re.findall(r"<script[^>]* src=['\"]([^'\"]+)", page)


def test_the_static_page_lies_over_the_live_one_until_that_is_drawn(served: Standing) -> None:
    for query in ("live=over", "live=over&run=demo-redshift"):
        page = ask(f"{served.url}/redshift?{query}")
        assert page.token
        text = page.body.decode()
        assert text.index("<body") < text.index("id='still'") < text.index("takeover.js")
        # Nothing that takes time to load stands before what covers the page.
        assert "<script" not in text[: text.index("id='still'")]
        uncovered = ask(f"{served.url}/redshift?live=1").body.decode()
        assert sources(text) == ["./assets/takeover.js", *sources(uncovered)]
        assert "<h1>The run</h1>" in text


@pytest.mark.slow
def test_a_study_without_a_page_is_live(served: Standing) -> None:
    assert ask(f"{served.url}/clamp").token
    assert ask(f"{served.url}/clamp?live=over").token


def test_a_login_is_asked_for_and_named(tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    write_users(users, {"ada": hash_password("lovelace")})
    with standing(tmp_path, auth=users, published=published(tmp_path)) as server:
        url = f"{server.url}/redshift"
        assert ask(url).status == 302
        assert ask(f"{url}/start", "POST").status == 403
        ada = Visitor(int(server.url.rpartition(":")[2]))
        ada.log_in("ada", "lovelace")
        page = ada.get("/redshift", Accept_Encoding="gzip")
        assert "<span>ada</span>" in page.body.decode()
        assert "Content-Encoding" not in page.headers


def test_a_page_that_is_not_whole_is_not_shown(tmp_path: Path) -> None:
    pages = published(tmp_path, "clamp", PAGE[:80])
    file_of(tmp_path / FOLDER, "k", "genes").write_bytes(b"\xff\xfe" + PAGE.encode())
    assert not any(pages.read("k", study) for study in STUDIES)


def test_a_page_is_made_again_when_what_it_says_of_the_server_changes() -> None:
    assert code_key(2.0) == code_key(2.0) != code_key(3.0)


def start(served: Standing, cookie: str, **headers: str) -> tuple[int, dict[str, str]]:
    reply = ask(f"{served.url}/redshift/start", "POST", "", Cookie=cookie, **headers)
    return reply.status, json.loads(reply.body) if reply.status == 200 else {}


def test_train_starts_the_run_on_show_for_the_visitor_of_the_cookie(served: Standing) -> None:
    cookie = ask(f"{served.url}/redshift").cookie
    store = served.site.service.store
    store.import_shipped()
    status, answer = start(served, cookie, Sec_Fetch_Site="same-origin")
    assert (status, [*answer]) == (200, ["run"]), answer
    run, shown = store.run(answer["run"]), store.run("demo-redshift")
    assert (run.study, run.data) == ("redshift", "demo")
    assert shown.settings.items() <= run.settings.items()
    assert run.owner == verify(cookie.partition("=")[2].strip('"'), KEY)
    served.site.fault = "No workers."
    assert start(served, cookie)[1] == {"refused": "No workers."}
    served.site.fault = ""


def test_train_is_refused_to_other_sites_and_to_browsers_without_a_cookie(served: Standing) -> None:
    cookie = ask(f"{served.url}/redshift").cookie
    runs = len(served.site.service.store.runs(""))
    assert start(served, "")[0] == 403
    assert start(served, "scant_visitor=forged")[0] == 403
    assert start(served, cookie, Sec_Fetch_Site="cross-site")[0] == 403
    assert start(served, cookie, Origin="https://other.example")[0] == 403
    assert ask(f"{served.url}/redshift/start", Cookie=cookie).status == 405
    assert len(served.site.service.store.runs("")) == runs
