"""Tiers of tests: what every change must pass, and what is slow. CONTRIBUTING.md lists them.

`pytest` runs the must tier: all tests that are not marked `slow`, and all tests of files that are
named on the command line. `pytest -m slow` runs the others, with `--shard 2/3` a third of them, and
with `--since COMMIT --seconds 180` those that the files changed since then concern: the most
directly concerned first, as many as took that long in total.

A test is concerned by a file that it imports, directly or not. Tests that reach the code in another
way, through a server or a notebook, name the folders: `pytest.mark.slow("engine/scant/store")`.

`--record-durations` writes what each test took to `durations.csv`, and of the whole slow tier, or a
shard of it, a line to `slow_results.csv`.
"""

from __future__ import annotations

import csv
import datetime
import os
import platform
import subprocess
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.import_graph import distances
from tests.paths import ROOT

DURATIONS = ROOT / "tests" / "durations.csv"
SLOW_RESULTS = ROOT / "tests" / "slow_results.csv"
MUST_SECONDS = 600  # five minutes on two cores
MUST_SECONDS_PER_TEST = 5
MUST_SECONDS_PER_WALK = 20  # a page opens with its figures, trains in a worker and shows the result
# How much longer than recorded a test may take, on a loaded machine or a slow one.
SLOWDOWN = 10
# With `--since auto`, commits of so many hours before HEAD are one change.
CHANGE_HOURS = 3


@dataclass
class Duration:
    """Seconds of a test function: all its cases with their set-up, and the slowest case without.

    Set-up is left out of the latter because the first test to ask for a fixture pays for all.
    """

    seconds: float = 0.0
    slowest: float = 0.0
    cases: int = 0
    slow: bool = False


def function_of(nodeid: str) -> str:
    """The id of a test without its parameters: a row of `durations.csv`."""
    return nodeid.partition("[")[0]


def longest(test: str) -> float:
    """Seconds that a test of the must tier may take."""
    return MUST_SECONDS_PER_WALK if test.startswith("tests/browser/") else MUST_SECONDS_PER_TEST


def durations() -> dict[str, Duration]:
    """What each test function took when it was last recorded."""
    if not DURATIONS.is_file():
        return {}
    with DURATIONS.open(newline="") as file:
        return {
            row["test"]: Duration(
                float(row["seconds"]),
                float(row["slowest"]),
                int(row["cases"]),
                row["tier"] == "slow",
            )
            for row in csv.DictReader(file)
        }


def write_durations(known: dict[str, Duration]) -> None:
    """Replace `durations.csv`; tests whose file is gone are left out."""
    with DURATIONS.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("test", "tier", "cases", "seconds", "slowest"))
        for test, d in sorted(known.items()):
            if (ROOT / test.partition("::")[0]).is_file():
                tier = "slow" if d.slow else "must"
                rows.writerow((test, tier, d.cases, f"{d.seconds:.2f}", f"{d.slowest:.2f}"))


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def changed_since(commit: str) -> list[Path] | None:
    """Files changed since a commit, `auto` for the last one that is hours older than HEAD.

    None where there is no history to ask: then everything counts as changed.
    """
    try:
        if commit == "auto":
            head = _git("log", "-1", "--format=%ct").strip()
            earlier = int(head) - 3600 * CHANGE_HOURS
            commit = _git("log", "-1", "--format=%H", f"--before={earlier}").strip()
            if not commit:
                return None
        names = _git("diff", "--name-only", commit, "HEAD").split("\n")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    return [ROOT / name for name in names if name]


def add_options(parser: pytest.Parser) -> None:
    """Options of the slow tier, and of the record of durations."""
    group = parser.getgroup("tiers")
    group.addoption("--since", metavar="COMMIT", help="slow tests that changes since then concern")
    group.addoption("--seconds", type=float, help="with --since: at most so many, as recorded")
    group.addoption("--shard", metavar="K/N", help="the K-th of N parts of what is left")
    group.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name}")


def seconds_by_file() -> dict[Path, float]:
    """What the tests of each file took together."""
    took: dict[Path, float] = defaultdict(float)
    for test, duration in durations().items():
        took[ROOT / test.partition("::")[0]] += duration.seconds
    return took


def _names_files(config: pytest.Config) -> bool:
    """Whether the command line names files: then all of their tests run, in one process."""
    return any(".py" in argument for argument in config.args)


def workers(config: pytest.Config) -> int:
    """Processes of `-n auto`: one a core, and none where files are named."""
    return 0 if _names_files(config) else os.cpu_count() or 1


def limit(item: pytest.Item, known: dict[str, Duration]) -> None:
    """Let a test take ten times what it took, and never less than the general limit."""
    took = known.get(function_of(item.nodeid))
    general = float(item.config.getini("timeout"))
    if took and SLOWDOWN * took.slowest > general and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(SLOWDOWN * took.slowest))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier that was asked for."""
    known = durations()
    for item in items:
        limit(item, known)
    if not config.option.markexpr and not _names_files(config):
        kept = [item for item in items if not item.get_closest_marker("slow")]
    else:
        kept = [*items]
    if since := config.getoption("--since"):
        kept = concerned(kept, changed_since(since), known, config.getoption("--seconds"))
    if shard := config.getoption("--shard"):
        part, parts = (int(number) for number in shard.split("/"))
        kept = shards(kept, parts, known)[part - 1]
    if len(kept) < len(items):
        staying = {id(item) for item in kept}
        config.hook.pytest_deselected(items=[i for i in items if id(i) not in staying])
        items[:] = [item for item in items if id(item) in staying]


def _by_file(
    items: list[pytest.Item], known: dict[str, Duration]
) -> list[tuple[float, Path, list[pytest.Item]]]:
    """Tests of each file, which share its fixtures, after their recorded seconds."""
    files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    result = []
    for path, tests in files.items():
        functions = dict.fromkeys(function_of(test.nodeid) for test in tests)
        took = sum(known[name].seconds if name in known else 1.0 for name in functions)
        result.append((took, path, tests))
    return result


def concerned(
    items: list[pytest.Item],
    changed: list[Path] | None,
    known: dict[str, Duration],
    seconds: float | None,
) -> list[pytest.Item]:
    """The tests that changed files concern: most directly concerned first, then quick files first.

    Args:
        items: Tests to choose from.
        changed: Changed files; None for all.
        known: Recorded durations.
        seconds: Upper limit of their recorded sum; None for no limit. The first file that does not
            fit is passed over, quicker ones are still taken.
    """
    reached = distances(changed) if changed is not None else None
    files = []
    for took, path, tests in _by_file(items, known):
        if reached is None:
            distance: int | None = 1
        else:
            marks = [mark for item in tests for mark in item.iter_markers("slow")]
            covers = tuple({str(ROOT / folder) for mark in marks for folder in mark.args})
            covered = covers and any(str(file).startswith(covers) for file in changed or ())
            distance = min(reached.get(path, 99), 1 if covered else 99)
        if distance < 99:
            files.append((distance, took, str(path), tests))
    chosen, spent = [], 0.0
    for _, took, _, tests in sorted(files, key=lambda file: file[:3]):
        if seconds is None or spent + took <= seconds:
            spent += took
            chosen += tests
    return chosen


def shards(
    items: list[pytest.Item], parts: int, known: dict[str, Duration]
) -> list[list[pytest.Item]]:
    """Parts of about the same recorded duration; the tests of a file stay together."""
    loads, result = [0.0] * parts, [[] for _ in range(parts)]  # type: ignore[var-annotated]
    files = sorted(_by_file(items, known), key=lambda file: (-file[0], file[1]))
    for took, _, tests in files:
        lightest = loads.index(min(loads))
        loads[lightest] += took
        result[lightest] += tests
    return result


class Recorder:
    """Notes what each test took, and writes it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.begun = config, time.monotonic()
        self.fresh: dict[str, Duration] = defaultdict(Duration)
        self.outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self.fresh[function_of(report.nodeid)]
        test.seconds += report.duration
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
        test.slow = "slow" in report.keywords
        if report.when == "call":
            test.slowest = max(test.slowest, report.duration)
            test.cases += 1

    def pytest_sessionfinish(self) -> None:
        write_durations(durations() | self.fresh)
        option = self.config.option
        if option.markexpr == "slow" and not option.since and not _names_files(self.config):
            write_slow_result(option.shard or "1/1", self.outcomes, time.monotonic() - self.begun)


def write_slow_result(shard: str, outcomes: Counter[str], seconds: float) -> None:
    """Add how a run of the slow tier went; the first line names the columns."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    row = {
        "date": datetime.date.today().isoformat(),
        "commit": _git("rev-parse", "--short=8", "HEAD").strip(),
        "machine": machine,
        "shard": shard,
        **{name: outcomes[name] for name in ("passed", "failed", "skipped")},
        "seconds": round(seconds),
    }
    fresh = not SLOW_RESULTS.is_file()
    with SLOW_RESULTS.open("a", newline="") as file:
        rows = csv.DictWriter(file, list(row), lineterminator="\n")
        if fresh:
            rows.writeheader()
        rows.writerow(row)
