"""Which slow tests a change must pass: those that cover a file it changed; once a day, all.

A test, or a folder's conftest, names what it covers: `pytest.mark.slow("engine/store")`.
`pytest` passes over slow tests; `pytest -m slow` runs them; `.ci/run` calls `pytest --slow-since
COMMIT`, which runs them all where HEAD is the first commit of its day.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.paths import ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--slow-since auto`: also slow tests that today's commits call for."""
    parser.addoption(
        "--slow-since",
        metavar="COMMIT",
        help="run slow tests, too, that cover a file changed since this commit; auto: since the "
        "last commit of an earlier day",
    )


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _changed(since: str) -> list[str]:
    """Files changed since a commit; the whole tree ("") where today begins with HEAD, or where
    there is no history to ask.
    """
    try:
        if since == "auto":
            today = _git("log", "-1", "--format=%cd", "--date=format:%Y-%m-%d 00:00").strip()
            since = _git("log", "-1", "--format=%H", f"--before={today}").strip()
            if not since or since == _git("rev-parse", "HEAD~1").strip():
                return [""]
        return _git("diff", "--name-only", since, "HEAD").split()
    except subprocess.CalledProcessError:
        return [""]


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the slow tests that nobody asked for."""
    if config.option.markexpr:  # `-m slow`, or whatever else was asked for
        return
    since = config.getoption("--slow-since")
    changed = _changed(since) if since else []
    kept, dropped = [], []
    for item in items:
        marks = list(item.iter_markers("slow"))
        covers = tuple(path for mark in marks for path in mark.args)
        called = any(not path or path.startswith(covers) for path in changed)
        (kept if not marks or called else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept
