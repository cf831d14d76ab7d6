"""The Procfile's line, on a machine that has nothing of ours but the installed package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserType

from scant.store import Store
from tests.browser.conftest import ENDING, come_up, free_port
from tests.browser.visiting import SMALL, train, until
from tests.paths import ROOT

NAME = "scant.example"  # under which the platform's visitors come


def command(folder: Path) -> tuple[str, str]:
    """The Procfile's line, and the path on which its `scant` is found."""
    lines = (ROOT / "Procfile").read_text().splitlines()
    (web,) = [line.removeprefix("web:").strip() for line in lines if line.startswith("web:")]
    programs = folder / "bin"
    programs.mkdir()
    installed = Path(sys.executable).parent / "scant"
    if installed.exists():
        (programs / "scant").symlink_to(installed)
    else:  # run from a checkout that is not installed
        start = "import sys; from scant_dashboard.cli.main import app; sys.argv[0] = 'scant'; app()"
        script = f'#!/bin/sh\nexec "{sys.executable}" -c "{start}" "$@"\n'
        (programs / "scant").write_text(script)
        (programs / "scant").chmod(0o755)
    return web, f"{programs}:/usr/bin:/bin"


def source(folder: Path) -> Path:
    """The package alone, as a container has it: away from the checkout and not to be changed."""
    place = folder / "app"
    for name in ("engine", "dashboard", "assets", "data"):
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, place / name, ignore=leave_out)
    for path in [place, *place.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return place


def everything(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_the_procfile_serves_a_page_by_any_name_and_trains(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any], tmp_path: Path
) -> None:
    found = [*browser_type_launch_args["args"], f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
    browser = browser_type.launch(**{**browser_type_launch_args, "args": found})
    page = browser.new_page()
    home, elsewhere, port = tmp_path / "home", tmp_path / "elsewhere", free_port()
    home.mkdir()
    elsewhere.mkdir()
    web, path = command(tmp_path)
    code = source(tmp_path)
    before = everything(code)
    clean = {"PATH": path, "HOME": str(home), "PORT": str(port)}
    clean["PYTHONPATH"] = f"{code / 'engine'}:{code / 'dashboard'}"
    clean["PYTHONDONTWRITEBYTECODE"] = "1"  # for a root user's sake, who may write anywhere
    log = tmp_path / "log"
    with open(log, "w") as file:
        server = subprocess.Popen(["sh", "-c", f"exec {web}"], cwd=elsewhere, env=clean,
                                  stdout=file, stderr=file)  # fmt: skip
    try:
        come_up(f"http://127.0.0.1:{port}", server, log)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as gallery:
            assert b"<title>Scant</title>" in gallery.read()
        run = train(page, f"http://{NAME}:{port}/redshift?{SMALL}")
        until(page, "converged|^finished|^limit reached")
    finally:
        browser.close()
        server.terminate()
        assert server.wait(timeout=ENDING) == 0
    (database,) = home.rglob("scant.db")
    store = Store.open(f"sqlite:///{database}")
    assert store.model(run)
    store.close()
    assert list(elsewhere.iterdir()) == []
    assert everything(code) == before
