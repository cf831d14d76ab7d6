"""Tests that are marked by their folder: those of a browser and of a deployment."""

from __future__ import annotations

import os
import shutil

import pytest

from scant.studies import STUDIES
from tests.paths import ROOT

TESTS = ROOT / "tests"
MUST = {"test_walks.py", "test_first_gp.py"}  # browser tests in the must tier
# Folders of the code that tests of a deployment reach through other processes.
DEPLOYED = (
    "engine/scant/runs",
    "engine/scant/store",
    "dashboard/scant_dashboard/server",
    "dashboard/scant_dashboard/auth",
    "dashboard/scant_dashboard/cli",
    "dashboard/scant_dashboard/app.py",
    "dashboard/scant_dashboard/routes.py",
    "Procfile",
    "tests/deploy",
)


def chromium() -> str | None:
    """Path of Chromium or Chrome, if installed; its shell without windows takes less work."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def covered(name: str) -> tuple[str, ...]:
    """Folders that the browser tests of a file reach through the server: a page's, or all."""
    if name in STUDIES:
        return (
            f"dashboard/scant_dashboard/pages/{name}",
            f"engine/scant/studies/{name}",
            f"data/recordings/{name}",
        )
    return "dashboard/scant_dashboard/", "assets/"


def mark(item: pytest.Item) -> None:
    """Mark a browser or deployment test; skip one that needs a browser where there is none."""
    if TESTS / "browser" in item.path.parents:
        item.add_marker(pytest.mark.browser)
        if item.path.name not in MUST:
            item.add_marker(pytest.mark.slow(*covered(item.path.stem.removeprefix("test_"))))
    elif TESTS / "deploy" in item.path.parents:
        item.add_marker(pytest.mark.deploy)
        item.add_marker(pytest.mark.slow(*DEPLOYED))
    required = os.environ.get("SCANT_REQUIRE_BROWSER") == "1"
    if "browser_type" in getattr(item, "fixturenames", ()) and not required and not chromium():
        item.add_marker(pytest.mark.skip(reason="neither Chromium nor Chrome is installed"))
