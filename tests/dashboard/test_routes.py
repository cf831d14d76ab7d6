"""The server's addresses: these and no others, each with its headers, its HEAD and its sentence."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

import pytest
from tornado.web import RequestHandler

from scant.errors import BadInput
from scant.studies import STUDIES, entry
from scant.tables.read import inspect_table
from scant_dashboard import routes
from scant_dashboard.auth.accounts import hash_password, write_users
from scant_dashboard.room.handlers import CODE
from scant_dashboard.server.headers import Policy
from scant_dashboard.template import katex_folder
from tests.dashboard.standing import Reply, Standing, ask, standing

KATEX_FONTS = "/static/extensions/panel/bundled/katex/[^/]+/dist/fonts"
FILES = [
    KATEX_FONTS,
    "/static/js",
    "/static/extensions/panel",
    "/static/extensions/panel-material-ui",
]
ROUTES = sorted(
    ["/", "/ws"]
    + [
        at
        for study in STUDIES
        for at in (f"/{study}", f"/{study}/ws", f"/({study})/", f"/({study})/start")
    ]
    + [f"{at}/(.*)" for at in [*FILES, "/assets"]]
    + [f"/room/{CODE}{end}" for end in ("", "/news", "/votes", "/runs", r"/pictures/(\d{1,6})")]
    + ["/events", "/events/", "/follow", "/gallery", "/healthz", "/readyz", "/favicon.ico"]
    + ["/gp", "/publications"]
    + [r"/templates/([a-z]+)\.csv"]
)
PANEL = "/static/extensions/panel"
# What Bokeh and Panel would answer, and what must lead nowhere.
NOWHERE = [
    "/components/unittest.__main__/a/_css/x",
    "/components/panel.pane/HTML/_css/x",
    *(f"{page}{path}" for page in ("", "/redshift") for path in ("/metadata", "/autoload.js")),
    "/autoload.js?bokeh-autoload-element=1",
    "/rest/session_info",
    "/liveness",
    "/admin",
    "/index",
    "/redshift/static/js/bokeh.min.js",
    "/static/js",
    "/static/js/",
    "/static/js/lib/",
    "/static/lib/index.d.ts",
    "/static/js/..%2f..%2f..%2fserver.py",
    "/static/js/../../../util/token.py",
    "/assets/",
    "/assets/..%2fpyproject.toml",
    "/assets/../README.md",
    "/assets/html/plain.html",
    "/static/extensions/",
    "/static/extensions/bokeh/x.js",
    f"{PANEL}/",
    f"{PANEL}/bundled/",
    f"{PANEL}/..%2f__init__.py",
    f"{PANEL}/../io/server.py",
    f"{PANEL}/bundled/@microsoft/fast-components@2.30.6/__test__/fixtures/iife.html",
    "/templates/none.csv",
    "/templates/..%2f..%2fREADME.md",
    "/none",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("routes")) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """A server that asks for a login."""
    folder = tmp_path_factory.mktemp("guarded")
    write_users(folder / "users.json", {"ada": hash_password("lovelace")})
    with standing(folder, auth=folder / "users.json") as server:
        yield server


def test_these_are_all_the_addresses_there_are(served: Standing, guarded: Standing) -> None:
    """Who adds one adds it to SECURITY.md."""
    assert sorted(routes.listed(served.server)) == ROUTES
    assert sorted(routes.listed(guarded.server)) == sorted([*ROUTES, *routes.LOGIN])
    for server in (served, guarded):
        other_names, inner = server.server._tornado.default_router.rules
        assert other_names.target is routes.OtherSite
        assert inner.target is server.server._tornado.wildcard_router


@pytest.mark.parametrize("path", NOWHERE)
def test_what_no_page_needs_is_not_there(path: str, served: Standing, guarded: Standing) -> None:
    for server in (served, guarded):
        reply = ask(server.url + path)
        assert reply.status == 404
        assert b"There is no page here" in reply.body


def test_pages_find_their_files(served: Standing) -> None:
    page = ask(f"{served.url}/redshift").body.decode()
    files = re.findall(r"""(?:src|href)=["'](?:\./)?((?:static|assets)/[^"']+)""", page)
    assert len(files) > 10
    for file in files:
        assert ask(f"{served.url}/{file}").status == 200, file
    assert ask(f"{served.url}/assets/fonts/{_a_font()}").status == 200


def test_formulas_find_their_fonts(served: Standing) -> None:
    folder = f"{served.url}/{katex_folder().removeprefix('./')}"
    styles = ask(f"{folder}/katex.min.css").body.decode()
    fonts = set(re.findall(r"fonts/KaTeX_(?:AMS|Main|Math|Size\d)-\w+\.woff2", styles))
    assert len(fonts) == 11
    for font in fonts:
        assert ask(f"{folder}/{font}").status == 200, font


def _a_font() -> str:
    from scant_dashboard.template import assets

    return sorted(path.name for path in (assets() / "fonts").glob("*.woff2"))[0]


def test_a_slash_too_many_leads_to_the_page(served: Standing) -> None:
    reply = ask(f"{served.url}/redshift/?run=a&seed=1")
    assert (reply.status, reply.headers["Location"]) == (301, "/redshift?run=a&seed=1")


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_former_address_leads_to_the_page(served: Standing, slash: str) -> None:
    reply = ask(f"{served.url}/events{slash}?run=demo-events&compare=a%2Cb&present=")
    assert reply.status == 301
    assert reply.headers["Location"] == "/multiview?run=demo-multiview&compare=a%2Cb&present="


def test_every_study_has_a_template_that_its_own_upload_takes(served: Standing) -> None:
    for study in STUDIES:
        reply = ask(f"{served.url}/templates/{study}.csv")
        assert reply.status == 200
        preview = inspect_table(reply.body, entry(study).table, name="template.csv")
        assert [p for p in preview.problems if "rows" not in p] == []
        assert preview.n_rows > 0


def test_publications_of_every_study_are_listed(served: Standing) -> None:
    reply = ask(f"{served.url}/publications")
    assert reply.status == 200
    page = html.unescape(reply.body.decode())
    for study in map(entry, STUDIES):
        assert f"<a href='./{study.name}'>{study.title}</a>" in page
        for citation in study.citations:
            assert citation.text in page
            assert f"https://doi.org/{citation.doi}'" in page or not citation.doi


def test_figures_of_publications_are_sent_by_name(served: Standing) -> None:
    reply = ask(f"{served.url}/publications?figures=KH15%20Figure%203")
    assert reply.status == 200
    assert reply.body.decode().count("<div>") == 2
    for name in ("", "KH15%20Figure%204", "Y21%20Figure%205.1"):
        assert ask(f"{served.url}/publications?figures={name}").status == 404


def test_health_is_said_without_a_session(served: Standing) -> None:
    url, site = f"{served.url}/healthz", served.site
    assert ask(url).status == 200
    site.service.up = False
    assert ask(url).status == 503
    site.service.up = True
    site.fault = "Runs cannot start."
    assert ask(url).status == 503
    site.fault = ""


READABLE = [
    "/",
    *(f"/{study}" for study in STUDIES),
    "/redshift/",
    "/static/js/bokeh.min.js",
    f"{PANEL}/panel.min.js",
    "/assets/icon.svg",
    "/gp",
    "/healthz",
    "/readyz",
    "/favicon.ico",
    "/templates/redshift.csv",
    "/none",
]


def test_head_is_answered_as_get_and_makes_no_session(served: Standing, guarded: Standing) -> None:
    for path in READABLE:
        before = served.sessions()
        head = ask(served.url + path, "HEAD")
        assert served.sessions() <= before, path
        assert head.body == b""
        pages = path == "/" or path[1:] in STUDIES
        if pages and path != "/":
            assert head.status == 200
            assert head.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "Content-Length" not in head.headers
            continue  # all pages have one handler: one of them is built below
        got = ask(served.url + path)
        assert head.status == got.status, path
        for name in ("Content-Type", "Location", "Cache-Control", "Content-Disposition"):
            assert head.headers[name] == got.headers[name], (path, name)
        if not pages:
            assert head.headers["Content-Length"] == got.headers["Content-Length"], path
        assert len(_policy(head)) == len(_policy(got))
    for path in ("/", "/redshift", "/login"):
        head, got = ask(guarded.url + path, "HEAD"), ask(guarded.url + path)
        assert (head.status, head.headers["Location"]) == (got.status, got.headers["Location"])


def _policy(reply: Reply) -> dict[str, list[str]]:
    (written,) = reply.headers.get_all("Content-Security-Policy") or [""]
    return {name: sources for name, *sources in map(str.split, written.split(";"))}


ODD = [
    ("GET", "/none"),
    ("POST", "/redshift"),
    ("POST", "/healthz"),
    ("DELETE", "/"),
    ("TRACE", "/"),
    ("OPTIONS", "/redshift"),
    ("GET", "/ws"),
    ("GET", "/redshift/ws"),
    ("GET", "/redshift?x=%ff"),
]


def test_every_answer_carries_its_headers(served: Standing, guarded: Standing) -> None:
    pages = ("/", *(f"/{study}" for study in STUDIES))
    query = [("HEAD", path) for path in READABLE] + ODD
    query += [("GET", path) for path in READABLE if path not in pages[1:]]
    everywhere = [(served, *one) for one in query]
    everywhere += [(guarded, "GET", path) for path in ("/", "/redshift", "/login", "/ws", "/none")]
    for server, method, path in everywhere:
        reply = ask(server.url + path, method)
        policy = _policy(reply)
        assert policy["frame-ancestors"] == ["'self'"], (method, path)
        assert policy["base-uri"] == ["'none'"]
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "same-origin"
        assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Server" not in reply.headers
        assert "Access-Control-Allow-Origin" not in reply.headers
        sources = {source for sources in policy.values() for source in sources}
        assert "*" not in sources
        assert not [s for s in sources if s.startswith("http")]  # no third party
        if path == "/gp":  # static: our own scripts, none inline
            assert policy["default-src"] == ["'self'"]
            assert "script-src" not in policy
        elif reply.status >= 400 or path.split("?")[0] not in pages:
            assert "script-src" not in policy
            assert policy["default-src"] == ["'none'"]


def test_a_pages_scripts_bear_a_nonce_of_that_answer_alone(served: Standing) -> None:
    nonces = []
    for _ in range(2):
        reply = ask(served.url)
        scripts = _policy(reply)["script-src"]
        assert "'unsafe-inline'" not in scripts
        (nonce,) = [s[7:-1] for s in scripts if s.startswith("'nonce-")]
        page = reply.body.decode()
        tags = re.findall(r"<script[^>]*>", page)
        assert tags
        assert all(f'nonce="{nonce}"' in tag for tag in tags)
        nonces.append(nonce)
    assert nonces[0] != nonces[1]


def test_sites_that_may_frame_pages_are_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_FRAME_ANCESTORS", "https://b.example")
    policy = Policy(["https://a.example:8443/"]).plain()
    assert "frame-ancestors 'self' https://a.example:8443 https://b.example" in policy
    for wrong in ("a.example", "*", "https://a.example; script-src *", "https://a.example/page"):
        with pytest.raises(BadInput, match="is no site"):
            Policy([wrong])


def test_a_fault_of_the_server_is_a_sentence(
    served: Standing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: RequestHandler) -> None:
        raise RuntimeError("secret words in /some/path")

    monkeypatch.setattr(routes.Health, "get", broken)
    reply = ask(f"{served.url}/healthz")
    assert reply.status == 500
    page = reply.body.decode()
    match = re.search(r"The error is logged as (\w{8})\.", page)
    assert match is not None
    assert "secret" not in page
    assert "Traceback" not in page
    assert match[1] in caplog.text  # where the operator finds the traceback, too
    assert "secret words" in caplog.text


def test_readiness_names_what_is_wanting_and_no_path(served: Standing) -> None:
    url, site = f"{served.url}/readyz", served.site
    reply = ask(url)
    assert (reply.status, reply.body) == (200, b'{"ready": true, "reasons": []}')
    try:
        site.service.trouble = "The server cannot store anything at the moment."
        reply = ask(url)
        assert reply.status == 503
        assert json.loads(reply.body)["reasons"] == [site.service.trouble]
        assert ask(f"{served.url}/healthz").status == 200  # it lives
        site.service.trouble, site.service.up = "", False
        assert json.loads(ask(url).body)["reasons"] == ["No worker is up."]
        site.fault = "Runs cannot start on this server: /secret/path"
        reply = ask(url)
        assert reply.status == 503
        assert b"secret" not in reply.body
    finally:
        site.service.trouble, site.service.up, site.fault = "", True, ""
