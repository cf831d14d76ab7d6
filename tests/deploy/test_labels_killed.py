"""Server and browser killed in the midst of labeling: every label shown as given stands."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import BrowserType, expect

from scant.store import Store
from scant.store.label_agreement import standing
from tests.browser.conftest import serving
from tests.browser.test_clamp import begin, bench, press, shown
from tests.browser.visiting import PATIENCE


def test_server_and_browser_killed_at_once_lose_no_label(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any], tmp_path: Path
) -> None:
    profile = tmp_path / "profile"  # a browser's own folder, in which its cookies lie
    address = f"sqlite:///{tmp_path / 'data' / 'scant.db'}"
    with serving(tmp_path) as server:
        window = browser_type.launch_persistent_context(profile, **browser_type_launch_args)
        window.set_default_timeout(PATIENCE)
        page = window.pages[0]
        run = begin(page, server.url)
        given = {}
        for k in range(6):
            given[shown(page)] = "12"[k % 2]
            press(page, "12"[k % 2])
        cookies = [c for c in window.cookies() if c["name"] == "scant_visitor"]
        last = shown(page)
        page.keyboard.press("2")  # and at once:
        expect(bench(page)).not_to_have_attribute("data-row", str(last), timeout=PATIENCE)
        ours = [p for p in psutil.process_iter() if str(profile) in " ".join(_arguments(p))]
        server.process.send_signal(signal.SIGKILL)
        for process in ours:
            process.kill()
        server.process.wait(timeout=20)
        psutil.wait_procs(ours, timeout=20)
    store = Store.open(address)
    kept = standing(store.labels(run))
    names = {"1": "not of interest", "2": "of interest"}
    assert {row: kept[row].label for row in kept} == {
        row: names[key] for row, key in {**given, last: "2"}.items()
    }
    with serving(tmp_path) as server:
        window = browser_type.launch_persistent_context(profile, **browser_type_launch_args)
        window.add_cookies(cookies)  # a browser writes its cookies down every half minute only
        window.set_default_timeout(PATIENCE)
        page = window.pages[0]
        page.goto(f"{server.url}/clamp?run={run}")
        assert shown(page) not in kept
        expect(page.get_by_role("button", name=re.compile("^Change patch"))).to_have_count(7)
        press(page, "1")
        assert len(standing(store.labels(run))) == 8
        expect(page.get_by_role("button", name="Train", exact=True)).to_be_visible()
        window.close()
    store.close()


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
