"""Runs as they are watched: lost workers and connections, several watchers, replay, comparison."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from scant.events import State
from scant.store import Store
from scant_dashboard.auth.accounts import hash_password, write_users
from tests.browser.accessible import assert_accessible
from tests.browser.conftest import ENDING, Served, serving
from tests.browser.line import Line
from tests.browser.visiting import (
    DRAWN,
    LONG,
    PATIENCE,
    SMALL,
    assert_whole,
    log_in,
    press,
    reading,
    status,
    step_of,
    train,
    until,
    until_step,
)


@pytest.fixture
def store(served: Served) -> Iterator[Store]:
    """The server's store, read beside it."""
    opened = Store.open(f"sqlite:///{served.data / 'scant.db'}")
    yield opened
    opened.close()


def test_a_killed_worker_costs_no_point_of_the_curve(
    page: Page, served: Served, store: Store
) -> None:
    run = train(page, f"{served.url}/redshift?{LONG}")
    until(page, "running")
    for _ in range(PATIENCE // 100):
        if store.checkpoint(run):
            break
        page.wait_for_timeout(100)
    until_step(page, 20)
    children = psutil.Process(served.process.pid).children(recursive=True)
    (worker,) = (c for c in children if "spawn_main" in " ".join(c.cmdline()))
    reached = step_of(page)
    worker.send_signal(signal.SIGKILL)
    expect(page.locator("details", has_text="Notes of this run")).to_contain_text(
        re.compile(r"The worker was lost \(loss 1 of 3 allowed\); going on from step \d+\."),
        timeout=PATIENCE,
    )
    until(page, "running")
    until_step(page, reached + 20)
    press(page, "Stop")
    until(page, "stopped")
    kept = store.trace(run).step.tolist()
    assert kept == list(range(1, len(kept) + 1))
    assert store.run(run).state is State.STOPPED
    until_step(page, kept[-1])
    assert_whole(page.evaluate(DRAWN))


def test_a_connection_that_was_cut_comes_back_without_a_gap(
    page: Page, served: Served, store: Store, line_port: int
) -> None:
    line = Line(line_port, urlsplit(served.url).port or 80)
    try:
        run = train(page, f"http://127.0.0.1:{line_port}/redshift?{LONG}")
        until(page, "running")
        until_step(page, 5)
        before = step_of(page)
        line.cut()
        expect(page.get_by_text("The connection was lost.")).to_be_visible(timeout=PATIENCE)
        for _ in range(PATIENCE // 100):  # while it is cut the run goes on
            if len(store.trace(run).step) > before + 100:
                break
            page.wait_for_timeout(100)
        line.mend()
        expect(page.get_by_text("The connection was lost.")).to_be_hidden(timeout=PATIENCE)
        until(page, "running")
        until_step(page, before + 5)
        press(page, "Stop")
        until(page, "stopped")
        assert_whole(page.evaluate(DRAWN))
    finally:
        line.close()


def test_a_second_visitor_follows_a_run_while_it_trains(
    page: Page, browser: Browser, app_url: str
) -> None:
    run = train(page, f"{app_url}/redshift?{LONG}")
    until(page, "running")
    other = browser.new_context()
    try:
        watcher = other.new_page()
        watcher.goto(f"{app_url}/redshift?run={run}")
        until(watcher, "running")
        expect(watcher.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
        until_step(watcher, 1)
        until_step(watcher, step_of(watcher) + 5)
        press(page, "Stop")
        until(watcher, "stopped")
        until(page, "stopped")
        assert_whole(watcher.evaluate(DRAWN))
        expect(status(watcher)).to_have_text(status(page).inner_text(), timeout=PATIENCE)
        expect(reading(watcher, "Objective")).to_have_text(reading(page, "Objective").inner_text())
    finally:
        other.close()


def test_the_recording_is_replayed_and_sought(visit: Callable[[str], Page]) -> None:
    page = visit("/redshift")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    press(page, "Replay")
    until(page, "replaying a recording, step")
    press(page, "Pause replay")
    expect(page.get_by_role("button", name="Resume replay", exact=True)).to_be_visible(
        timeout=PATIENCE
    )
    scrubber = page.get_by_role("slider", name=re.compile("Step of the recording"))
    scrubber.press("Home")
    until(page, "replaying a recording, step 1 of")
    expect(page.get_by_text(re.compile("^Step 1:"))).to_be_visible(timeout=PATIENCE)
    scrubber.press("End")
    until(page, r"replaying a recording, step (\d+) of \1")
    press(page, "End replay")
    until(page, "converged|^finished|^limit reached")


def test_two_runs_are_laid_side_by_side(page: Page, app_url: str) -> None:
    for seed in (1, 2):
        train(page, f"{app_url}/redshift?{SMALL}&seed={seed}")
        until(page, "converged|^finished|^limit reached")
    boxes = page.get_by_role("checkbox", name=re.compile("^compare"))
    for k in range(2):
        boxes.nth(k).check()
    expect(page.get_by_role("heading", name="Compared")).to_be_visible(timeout=PATIENCE)
    seeds = page.get_by_role("row", name=re.compile(r"^seed 2 1"))
    expect(seeds).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("row", name=re.compile("^this run: RMSE"))).to_be_visible()
    assert_accessible(page, "Compared")


def test_who_must_log_in_is_asked_offline_and_finds_the_run_after_a_restart(
    context: BrowserContext, tmp_path: Path
) -> None:
    users = tmp_path / "users.json"
    write_users(users, {"ada": hash_password("lovelace")})
    page = context.new_page()
    with serving(tmp_path, "--auth", str(users)) as server:
        foreign: list[str] = []
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith((server.url, "data:", "blob:")) else foreign.append(r.url)
            ),
        )
        page.goto(f"{server.url}/redshift")
        expect(page.get_by_role("heading", level=1)).to_have_text("Scant")
        log_in(page, "ada", "byron")
        expect(page.get_by_role("alert")).to_have_text(re.compile(r"^[^.]+\.?$"))
        log_in(page, "ada", "lovelace")
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Scant", timeout=PATIENCE)
        run = train(page, f"{server.url}/redshift?{LONG}")
        until(page, "running")
        until_step(page, 10)
        assert foreign == []
        server.process.terminate()
        assert server.process.wait(timeout=ENDING) == 0
    with serving(tmp_path, "--auth", str(users)) as server:
        page.goto(f"{server.url}/redshift?run={run}")
        if page.get_by_label("Password").count():
            log_in(page, "ada", "lovelace")
            page.goto(f"{server.url}/redshift?run={run}")
        until(page, "running")
        until_step(page, 20)
        press(page, "Stop")
        until(page, "stopped")
        assert_whole(page.evaluate(DRAWN))
