"""`scant serve` from its start: workers come up while the pages are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import ROOT

# What has been imported when the workers begin, and whether garbage is collected afterwards.
SCRIPT = """
import gc, sys
import scant_dashboard.launch as launch
from scant_dashboard.server.options import ServerOptions

class Service:
    def __init__(self, *args, **kwargs): pass
    def begin(self): print("begins", "panel" in sys.modules, gc.isenabled())

launch.RunService = Service
import importlib
def serve(*args):
    print("serves", "panel" in sys.modules, gc.isenabled(), gc.get_freeze_count() > 0)
find = launch.import_module
def found(name):
    app = find(name)
    app.serve = serve
    return app
launch.import_module = found
launch.serve(ServerOptions(port=0))
"""


@pytest.mark.slow
def test_workers_begin_before_the_pages_are_imported(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True,
        env={"SCANT_DATA_DIR": str(tmp_path), "PATH": "/usr/bin"}, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["begins False False", "serves True True True"], (
        done.stderr
    )
