"""`DATABASE_URL`: everything that the store promises on SQLite, and two servers on one database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from scant.store import Store
from tests.browser.conftest import serving
from tests.browser.visiting import (
    DRAWN,
    LONG,
    PATIENCE,
    assert_whole,
    press,
    step_of,
    train,
    until,
    until_step,
)
from tests.paths import ROOT


def test_the_store_keeps_its_promises_on_postgres(postgres: str) -> None:
    tests = ["tests/engine/store/test_store.py", "tests/engine/store/test_logins.py"]
    tests += ["tests/engine/runs/test_sharing.py"]
    command = [sys.executable, "-m", "pytest", "-rs", "-k", "postgres", *tests]
    environment = {**os.environ, "SCANT_TEST_POSTGRES": postgres}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout


def test_two_servers_on_one_database_show_and_steer_each_others_runs_and_take_them_over(
    page: Page, postgres: str, tmp_path: Path
) -> None:
    shared = {"DATABASE_URL": postgres, "SCANT_SECRET": "known to both servers"}
    store = Store.open(postgres)
    with serving(tmp_path / "a", **shared) as first, serving(tmp_path / "b", **shared) as second:
        run = train(page, f"{first.url}/redshift?{LONG}")
        until(page, "running")
        page.goto(f"{second.url}/redshift?run={run}")
        until(page, "running")
        until_step(page, step_of(page) + 10)
        press(page, "Pause")
        until(page, "paused")
        assert store.run(run).attempt == 1

        page.goto(f"{first.url}/redshift?run={run}")
        press(page, "Resume")
        until(page, "running")
        page.goto(f"{second.url}/redshift?run={run}")
        until(page, "running")
        until_step(page, step_of(page) + 10)
        first.process.kill()
        first.process.wait(20)
        notes = page.locator("details", has_text="Notes of this run")
        expect(notes).to_contain_text("The server was restarted; going on", timeout=PATIENCE)
        until(page, "running")
        until_step(page, step_of(page) + 10)
        press(page, "Stop")
        until(page, "stopped")
        until_step(page, len(store.trace(run).step))
        assert_whole(page.evaluate(DRAWN))
    assert store.run(run).attempt == 3
    store.close()
