"""Rows selected in one figure: their metrics are recomputed, and no page opens later by it."""

from __future__ import annotations

import math
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import holoviews as hv
import pytest

from scant.events import Metric
from scant.store import Store
from scant_dashboard.page_parts.select_rows import SelectRows
from scant_dashboard.pages.genes import selection as genes
from scant_dashboard.pages.multiview import selection as multiview
from scant_dashboard.pages.redshift import selection as redshift
from scant_dashboard.plots.table import figure
from tests.paths import ROOT

PAGES = {"redshift": redshift, "multiview": multiview, "genes": genes}


@pytest.fixture(scope="module")
def runs() -> dict[str, Any]:
    """The recorded demonstrations, as a page has them."""
    store = Store.open("sqlite://")
    store.import_shipped()
    return {
        name: SimpleNamespace(
            metadata=store.run(f"demo-{name}").metadata, report=store.report(f"demo-{name}")
        )
        for name in PAGES
    }


def opened(name: str, run: Any) -> SelectRows:
    page: Any = SimpleNamespace(read=lambda at_once: None, turn=lambda act: act())
    made = PAGES[name]
    view = SelectRows(page, made.rows, made.axes, made.measures)
    view.open(run)
    return view


@pytest.mark.parametrize("name", PAGES)
def test_all_rows_count_until_some_are_selected(name: str, runs: dict[str, Any]) -> None:
    view, frame = opened(name, runs[name]), PAGES[name].rows(runs[name])
    assert f"{len(frame):,} of {len(frame):,} rows selected" in view.alt
    assert len(view.container.objects) == 3
    view.links.selection_expr = hv.dim("row").isin(list(range(5)))
    assert f"5 of {len(frame):,} rows selected" in view.alt
    for measure, value in PAGES[name].measures(frame.iloc[:5]).items():
        assert measure in view.alt
        assert not math.isfinite(value) or figure(Metric("", measure, value)) in view.table.object


def test_metrics_of_all_rows_are_those_of_the_report(runs: dict[str, Any]) -> None:
    run = runs["multiview"]
    told = {m.name: m.value for m in run.report.metrics if m.method == "this run"}
    result = multiview.measures(multiview.rows(run))
    assert result["average precision"] == pytest.approx(told["average precision"], rel=1e-3)
    assert result["accuracy"] == pytest.approx(told["accuracy"], rel=1e-3)


@pytest.mark.slow
def test_pages_are_built_without_holoviews() -> None:
    script = (
        "import sys\n"
        "from importlib import import_module\n"
        "from types import SimpleNamespace\n"
        "import scant_dashboard.app\n"
        "from scant_dashboard.page_parts.guess_first import GuessFirst\n"
        "from scant.studies import entry\n"
        "for name in ('redshift', 'multiview', 'genes'):\n"
        "    page = SimpleNamespace(entry=entry(name), guess_first=GuessFirst, present=False,\n"
        "                           link=lambda **_: '', run=None)\n"
        "    views = import_module(f'scant_dashboard.pages.{name}.page').views(page)\n"
        "    assert 'Select rows' in [v.title for v in views.explore]\n"
        "assert 'holoviews' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]
