"""The tiers keep their budget, and a change finds the slow tests that it concerns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import tiers
from tests.import_graph import MODULES, TEST_MODULES, distances
from tests.paths import ROOT

GENES = ROOT / "tests/engine/studies/genes/test_study.py"
REDSHIFT = ROOT / "tests/engine/studies/redshift/test_study.py"


def item(path: Path, name: str, *covers: str) -> Any:
    """A slow test as pytest collects it, as far as the choice looks at it."""
    marks = [pytest.mark.slow(*covers).mark]
    nodeid = f"{path.relative_to(ROOT).as_posix()}::{name}"
    return SimpleNamespace(path=path, nodeid=nodeid, iter_markers=lambda _: marks)


def test_the_must_tier_is_within_its_budget() -> None:
    must = {test: d for test, d in tiers.durations().items() if not d.slow}
    assert len(must) > 1000
    assert sum(d.seconds for d in must.values()) <= tiers.MUST_SECONDS
    too_long = {t: d.slowest for t, d in must.items() if d.slowest > tiers.longest(t)}
    assert too_long == {}


def test_imports_are_followed_from_a_test_to_what_changed() -> None:
    scores = MODULES["scant.predictive.mixture_scores"]
    found = distances([scores])
    assert found[scores] == 0
    assert found[TEST_MODULES["tests.engine.predictive.test_mixture_scores"]] == 1
    assert found[TEST_MODULES["tests.engine.studies.redshift.test_study"]] > 1
    assert MODULES["scant.errors"] not in found


def test_the_most_directly_concerned_come_first_and_within_the_seconds() -> None:
    known = {
        "tests/engine/studies/genes/test_study.py::a": tiers.Duration(50, 50, 1, True),
        "tests/engine/studies/redshift/test_study.py::b": tiers.Duration(20, 20, 1, True),
    }
    items = [item(REDSHIFT, "b"), item(GENES, "a")]
    changed = [MODULES["scant.studies.genes.study"]]
    first, *_ = tiers.concerned(items, changed, known, None)
    assert first.path == GENES
    assert [i.path for i in tiers.concerned(items, changed, known, 40)] != [GENES]
    assert tiers.concerned(items, [ROOT / "README.md"], known, None) == []
    assert len(tiers.concerned(items, None, known, None)) == 2


def test_a_folder_that_a_test_names_concerns_it() -> None:
    tests = [
        item(ROOT / "tests/browser/test_genes.py", "walk", "dashboard/scant_dashboard/pages/genes")
    ]
    assert (
        tiers.concerned(tests, [ROOT / "dashboard/scant_dashboard/pages/genes/story.md"], {}, None)
        == tests
    )


def test_shards_hold_every_test_once_and_keep_files_together() -> None:
    items = [item(GENES, "a"), item(REDSHIFT, "b"), item(GENES, "c")]
    one, two = tiers.shards(items, 2, {})
    assert sorted(i.nodeid for i in one + two) == sorted(i.nodeid for i in items)
    assert {i.path for i in one}.isdisjoint(i.path for i in two)


def test_runs_of_the_slow_tier_are_written_down_one_below_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "SLOW_RESULTS", tmp_path / "slow.csv")
    monkeypatch.setattr(tiers, "_git", lambda *_: "abc\n")
    for shard in ("1/2", "2/2"):
        tiers.write_slow_result(shard, Counter(passed=7, failed=1), 61.6)
    head, *rows = (tmp_path / "slow.csv").read_text().splitlines()
    assert head == "date,commit,machine,shard,passed,failed,skipped,seconds"
    assert [row.rsplit(",", 5)[1:] for row in rows] == [
        [shard, "7", "1", "0", "62"] for shard in ("1/2", "2/2")
    ]
