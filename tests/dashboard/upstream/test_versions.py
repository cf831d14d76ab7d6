"""Every patch says which version it leans on, and that is the one that is installed.

Where this fails, a dependency has a new version: look whether it needs the patch still (the tests
beside this one), then write the new version down.
"""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest

from tests.paths import ROOT

NAMED = re.compile(r"\b(Bokeh|Panel|panel-material-ui|Param|Tornado) (\d+\.\d+)")
HELPERS = {"__init__", "install_all", "replacing"}
PATCHES = [
    path
    for folder in ("dashboard/scant_dashboard/upstream", "assets/upstream")
    for path in sorted((ROOT / folder).glob("*.*"))
    if path.stem not in HELPERS
]


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name)
def test_a_patch_is_of_the_installed_version(path: Path) -> None:
    named = NAMED.findall(path.read_text())
    assert named, "a patch names the version that it is of"
    for package, version in named:
        assert f"{importlib.metadata.version(package)}.".startswith(f"{version}.")
