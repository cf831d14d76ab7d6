"""A server behind a path of somebody else's address: JupyterHub's proxy, nginx."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import free_port, serving
from tests.browser.visiting import PATIENCE, SMALL, train, until
from tests.deploy.prefixing import shown_under

WAYS = {
    "jupyter-server-proxy": ("/user/ada@uni/proxy/5006", True, "X-ProxyContextPath", ()),
    "nginx that passes the path on": ("/scant", False, "", ("--prefix", "/scant")),
}


@pytest.mark.parametrize("way", WAYS)
def test_everything_works_under_a_path(page: Page, tmp_path: Path, way: str) -> None:
    prefix, cut, header, options = WAYS[way]
    port, asked, complaints = free_port(), list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    with serving(tmp_path, "--allow-origin", f"127.0.0.1:{port}", *options) as server:
        target = int(server.url.rsplit(":", 1)[1])
        base = f"http://127.0.0.1:{port}{prefix}"
        with shown_under(prefix, port, target, cut, header):
            page.goto(base if way.startswith("nginx") else f"{base}/")
            assert page.url == f"{base}/"
            page.get_by_role("link", name="Redshift").first.click()
            page.wait_for_url(f"{base}/redshift", timeout=PATIENCE)
            run = train(page, f"{base}/redshift?{SMALL}")
            until(page, "converged|^finished|^limit reached")
            assert run in page.url
            assert page.url.startswith(f"{base}/redshift")
            page.goto(f"{base}/events?seed=1")  # a former address
            assert page.url == f"{base}/multiview?seed=1"
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"{base}/nowhere/at/all", timeout=30)
            assert f'href="{prefix}/"'.encode() in refused.value.read()
    assert all(url.startswith((base, "data:", "blob:")) for url in asked)
    assert complaints == []
