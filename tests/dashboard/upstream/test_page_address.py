"""The parts of a page's address, whatever is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from panel.io import location

from scant_dashboard.upstream import page_address
from scant_dashboard.upstream.page_address import parts
from tests.dashboard.standing import ask, join, standing


@pytest.mark.parametrize(
    ("host", "uri", "expected"),
    [
        ("x.example", "/a", {"hostname": "x.example", "pathname": "/a"}),
        ("x.example:80", "/a?b=1", {"hostname": "x.example", "port": "80", "search": "?b=1"}),
        ("[::1]:5006", "/", {"hostname": "[::1]", "port": "5006", "href": "http://[::1]:5006/"}),
        ("x", "/a?b=c?d", {"pathname": "/a", "search": "?b=c?d"}),
        ("x", "/a?b#c?d#e", {"pathname": "/a", "search": "?b", "hash": "#c?d#e"}),
        ("[::1", "/", {"hostname": "[::1", "pathname": "/"}),
        (None, None, {"href": "http:"}),
    ],
)
def test_an_address_is_taken_apart(
    host: str | None, uri: str | None, expected: dict[str, str]
) -> None:
    result = parts("http", host, uri)
    assert {name: result.get(name) for name in expected} == expected
    assert "" not in result.values()


def test_a_page_is_built_under_any_address(tmp_path: Path) -> None:
    with standing(tmp_path) as served:
        assert ask(f"{served.url}/?word=what?").status == 200
        assert ask(served.url, Host="[::1]:5006").status == 200
        assert ask(served.url, Host="[::1").status == 403  # no name of this machine
        page = ask(served.url)
        assert join(served.url, page.token, page.cookie) == 101


@pytest.mark.parametrize(("host", "uri"), [("[::1]:5006", "/"), ("x", "/a?b=c?d#e")])
def test_panel_needs_it_still(host: str, uri: str) -> None:
    page_address.install()
    patched: Any = location._get_location_params
    with pytest.raises(ValueError, match="too many values"):
        patched.__wrapped__("http", host, uri)
