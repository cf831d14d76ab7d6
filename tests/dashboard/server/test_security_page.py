"""SECURITY.md and README.md against the code: routes, headers, options, variables and numbers."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer.main

from scant.runs import backlog, leases, limited, limits, store_writer
from scant.runs.dispatch import lifecycle
from scant.store import UPLOAD_DAYS, logins, quota
from scant.studies import STUDIES
from scant.tables.csv_parser import MAX_LINES
from scant.tables.images.archives import IMAGE_LIMIT_BYTES, ArchiveLimits
from scant_dashboard import app, routes
from scant_dashboard.auth import accounts, throttle, visitor_cookie
from scant_dashboard.auth import sessions as login_sessions
from scant_dashboard.cli.main import app as scant
from scant_dashboard.controls.upload import LIMIT_BYTES
from scant_dashboard.followers import followers
from scant_dashboard.limits import gate, sessions, uploads
from scant_dashboard.room import handlers, room
from scant_dashboard.room.handlers import CODE
from scant_dashboard.server import apart, headers
from scant_dashboard.upstream import bounded_messages as messages
from tests.dashboard.test_routes import ROUTES
from tests.paths import ROOT

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("SECURITY.md", "README.md")}
SECURITY = PAGES["SECURITY.md"]
# Options of `scant serve` that decide nothing about who may do what, or how much.
CONVENIENCE = {"--port", "--address", "--open", "--data-dir"}


def section(title: str) -> str:
    """The text under a heading of SECURITY.md."""
    return SECURITY.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without their heads."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [row for i, row in enumerate(cells) if i and set(row[0]) != {"-"}]


def code(cell: str) -> list[str]:
    """What a cell has in code type."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_routes_are_those_of_the_server() -> None:
    names = "|".join(STUDIES)
    listed = set()
    for route in [*ROUTES, *routes.LOGIN]:
        route = re.sub(rf"^/\(?({names})\)?(?=/|$)", "/<study>", route)
        route = route.replace(CODE, "<code>").replace("[^/]+", "<version>")
        route = route.replace(r"(\d{1,6})", "<number>")
        listed.add(route.replace(r"([a-z]+)\.csv", "<study>.csv").replace("(.*)", "<file>"))
    table = rows(section("Routes"))
    assert {route for row in table for route in code(row[0])} == listed
    assert ", ".join(sorted(STUDIES)) in section("Routes").replace("\n", " ")
    assert {row[2] for row in table if "page" in row[1] and "<study>" in row[0]} == {"yes"}
    suffixes = set(re.findall(r"\.\w+", section("Routes").split("suffixes")[1].split(". A")[0]))
    assert suffixes == routes.KINDS


def test_the_headers_are_those_of_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(headers.VARIABLE, raising=False)
    policy, request = headers.Policy(), SimpleNamespace(protocol="http", host="h")
    page = policy.page("…", cast(Any, request)).replace("ws://h", "ws(s)://<host>")
    table = {row[0]: code(row[1]) for row in rows(section("Headers"))}
    assert table == {
        **{f"`{name}`": [value] for name, value in headers.ALWAYS.items()},
        **{f"`{name}` (https only)": [value] for name, value in headers.ENCRYPTED.items()},
        "`Content-Security-Policy` of pages": [page],
        "`Content-Security-Policy` of static pages": [policy.static()],
        "`Content-Security-Policy` of all else": [policy.plain()],
    }


UVX = {"--from", "--torch-backend"}  # of another program


def options(command: Any) -> dict[str, Any]:
    """The options of a command and of those below it, with their defaults."""
    result = {opt: parameter.default for parameter in command.params for opt in parameter.opts}
    for below in getattr(command, "commands", {}).values():
        result |= options(below)
    return {name: default for name, default in result.items() if name.startswith("--")}


def serve_options() -> dict[str, Any]:
    whole: Any = typer.main.get_command(scant)
    return options(whole.commands["serve"])


def named(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_options_that_the_pages_name_exist_and_those_of_the_server_are_named() -> None:
    every = options(typer.main.get_command(scant))
    for name, text in PAGES.items():
        assert named(text) <= every.keys() | UVX, name
    assert serve_options().keys() <= named(PAGES["README.md"])
    assert serve_options().keys() - CONVENIENCE <= named(SECURITY)


def test_defaults_in_the_tables_are_those_of_the_options() -> None:
    defaults = {
        **{name: f"{value:g}" for name, value in serve_options().items()
           if isinstance(value, int | float) and not isinstance(value, bool)},
        "--disk-reserve": f"{quota.DISK_RESERVE:g}",
    }  # fmt: skip
    settings = {code(row[1])[0]: row[3] for row in rows(PAGES["README.md"]) if
                len(row) == 4 and code(row[1])}  # fmt: skip
    assert {name: settings[name] for name in defaults} == defaults
    for what, default, option, _ in rows(section("Limits")):
        for name in code(option)[:1]:
            if name in defaults and what != "estimated time of a new run":
                assert re.search(rf"\b{re.escape(defaults[name])}\b", default), what


def test_variables_that_the_pages_name_are_read_and_the_other_way_round() -> None:
    sources = [*ROOT.glob("engine/scant/**/*.py"), *ROOT.glob("dashboard/scant_dashboard/**/*.py")]
    variable = r"\bSCANT_[A-Z_]+"
    read = set(re.findall(variable, " ".join(p.read_text(encoding="utf-8") for p in sources)))
    for name, text in PAGES.items():
        assert set(re.findall(variable, text)) <= read, name
    table = {word for row in rows(PAGES["README.md"]) for word in code(row[0])}
    assert {v for v in read if v != "SCANT_REAL_DATA"} <= table


MIB, MB, GB = 2**20, 10**6, 10**9
ARCHIVE = ArchiveLimits()
NUMBERS = [
    f"{apart.WAITING} that wait",
    f"{gate.PER_VISITOR} per cookie, {gate.PER_ADDRESS} per address, {gate.OVERALL} in all",
    f"{sessions.PER_VISITOR} per cookie, {sessions.PER_ADDRESS} per address, "
    f"{sessions.OVERALL} in all",
    f"{followers.PER_VISITOR} per cookie, {followers.PER_ADDRESS} per address, "
    f"{followers.OVERALL:,} in all",
    f"drawn at a time | {followers.MAX_PAGES}; each at most a fifth",
    f"followed page to be drawn | {followers.PATIENCE:.0f} s",
    f"{messages.MESSAGE_LIMIT // MIB} MiB, of it {messages.TEXT_LIMIT // MIB} MiB of JSON",
    f"decompressed | {messages.INFLATED_LIMIT // MIB} MiB in all",
    f"{messages.DEPTH}; {messages.BUFFERS}; {messages.EVENTS}",
    f"{messages.BURST} at once, then {messages.PACE:.0f} per second",
    f"body of an HTTP request | {app.FORM_LIMIT // 1024} KiB",
    f"{room.LENGTH} letters and digits of {len(room.LETTERS)}",
    f"{len(room.LETTERS) ** room.LENGTH / 1e6:.1f} million",
    f"wait after {room.MISS_PACE[0]} of them, then {1 / room.MISS_PACE[1]:.0f} s for each",
    f"{room.GRACE:.0f} s after the presenter's page has gone",
    f"after {room.IDLE / 3600:.0f} h in which nobody did anything",
    f"JSON of {handlers.BODY_LIMIT} bytes",
    f"rooms | {room.PER_PRESENTER} per presenter, {room.ROOMS} in all",
    f"phones of a room | {room.PHONES_PER_ADDRESS} per address, {room.PHONES} in all",
    f"{room.STREAMS * room.PHONES_PER_ADDRESS} per address, {room.STREAMS * room.PHONES} in all",
    f"{room.PHONE_PACE[0]} at once, then {room.PHONE_PACE[1]:.0f} per second; "
    f"{room.ADDRESS_PACE[0]} at once, then {room.ADDRESS_PACE[1]:.0f} per second",
    f"questions that a room remembers | {room.BALLOTS}",
    f"vote up to {room.PHONES_PER_ADDRESS} times",
    f"{LIMIT_BYTES // MB} MB; ZIP archive {IMAGE_LIMIT_BYTES // MB} MB",
    f"{uploads.PER_VISITOR // MB} MB per visitor, {uploads.PER_ADDRESS // MB} MB per address, "
    f"{uploads.OVERALL // MB} MB in all",
    f"pause within an upload | {uploads.STALLED:.0f} s",
    f"lines of a table | {MAX_LINES:,}",
    f"{ARCHIVE.files:,} files, {ARCHIVE.unpacked_bytes // MB} MB unpacked, "
    f"{ARCHIVE.ratio:.0f} times compression, {ARCHIVE.pixels // 10**6} million pixels",
    f"{quota.TABLES} tables, {quota.TABLE_BYTES // GB} GB, {UPLOAD_DAYS:.0f} days",
    f"{backlog.MAX_BYTES // MIB} MiB",
    f"{limits.ESTIMATE_FACTOR:.0f} times the hours",
    f"ignores this for {limited.HEED_SECONDS:.0f} s",
    f"waits {store_writer.ANSWER_SECONDS:.0f} s at most",
    f"the server writes every {leases.BEAT_SECONDS:.0f} s",
    f"tried again, {lifecycle.LOSSES} times at most",
    f"N = 2^{accounts.LOG2_N}, r = {accounts.BLOCK}, p = {accounts.PARALLEL}, "
    f"{accounts.SALT_BYTES}-byte salt, {accounts.DIGEST_BYTES}-byte digest",
    f"{accounts.SHORTEST} to {accounts.LONGEST:,} characters",
    f"after {logins.IDLE_DAYS:.0f} days without use, after {logins.MAX_DAYS:.0f} days",
    f"same database within {login_sessions.CHECK_SECONDS:.0f} s",
    f"{throttle.PAIR.free} failures by name and address, {throttle.ADDRESS.free} by address or "
    f"{throttle.NAME.free} by name",
    f"up to {throttle.PAIR.longest:.0f} s ({throttle.NAME.longest:.0f} s by name)",
    f"{login_sessions.HASHERS} passwords are hashed at a time, "
    f"{login_sessions.HASHES_WAITING} more wait",
    f"`{visitor_cookie.COOKIE}` | signed random id (128 bits)",
    f"| {visitor_cookie.DAYS} days",
    f"`{login_sessions.COOKIE}` | signed random id (256 bits)",
]


@pytest.mark.parametrize("figure", NUMBERS)
def test_the_numbers_are_those_of_the_code(figure: str) -> None:
    assert figure in " ".join(SECURITY.split())
