"""The redshift page with redshifts, with another target, and in German."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant.events import Metric, Report
from scant.tables.schema import READING
from scant_dashboard.pages.redshift.missing import MissingPlot
from scant_dashboard.pages.redshift.page import BINS, hides, other_costs
from scant_dashboard.pages.redshift.rejection import RejectionSlider
from scant_dashboard.pages.redshift.target import applicable, is_redshift
from scant_dashboard.pages.redshift.tried import SearchHistoryPlot
from scant_dashboard.translate import speaking
from tests.dashboard.fakes import Asker

KEPT = np.array([
    [0.5, 1.0], [0.04, 0.05], [1.5, 1.25], [99.0, 98.0], [81.0, 80.0], [0.001, 0.002],
])  # fmt: skip


def named(target: str) -> dict[str, Any]:
    return {READING: {"mapping": {target: "z"}}}


def run(metadata: dict[str, Any], weights: str = "normal") -> Any:
    report = Report((), {"kept": KEPT})
    record = SimpleNamespace(settings={"weights": weights})
    return SimpleNamespace(metadata=metadata, record=record, report=report)


@pytest.mark.parametrize("name", ["z_spec", "zspec", "Redshift", "spec-z"])
def test_a_target_is_a_redshift_by_its_name(name: str) -> None:
    assert is_redshift({})
    assert is_redshift(named(name))


def test_another_target_has_no_scores_relative_to_one_plus_z() -> None:
    other = named("yield_pct")
    assert not is_redshift(other)
    assert hides(run(other)) == {BINS}
    assert not hides(run({}))
    message, variants = other_costs(run(other))
    assert [v.settings["weights"] for v in variants] == ["balanced"]
    assert "yield_pct" in variants[0].expect
    shown = " ".join([message, *(v.train + v.expect for v in variants)])
    assert "1 +" not in shown
    assert "bin by bin" not in shown
    assert len(other_costs(run({}))[1]) == 2

    metrics = tuple(Metric("this run", n, 1.0) for n in ("RMSE", "F_0.15", "bias", "sigma_MAD"))
    report = Report(metrics, {})
    assert [m.name for m in applicable(report, other).metrics] == ["RMSE"]
    assert applicable(report, {}) is report

    view = RejectionSlider(Asker())
    view.open(run(other))
    assert view.alt == "All rows: RMSE 0.05, mean log-likelihood 1.25."
    assert len(view.figures) == len(view.plot.panel.objects) == 2
    view.open(run({}))
    assert len(view.figures) == len(view.plot.panel.objects) == 5
    assert "F_0.15" in view.alt


def test_captions_are_german_in_a_german_session() -> None:
    counts = np.array([0.0, 1.0])
    missing = np.array([counts, *np.full((8, 2), 0.25)])
    tried = np.array([[10, 0, 0, 1.234, 0.5], [20, 1, 1, 1.5, 1.5]])
    with speaking("de"):
        plot = MissingPlot()
        plot.show(missing, 1234)
        assert plot.alt.startswith(
            "Alle Kennzahlen gelten für dieselben 1.234 zurückgehaltenen Zeilen"
        )
        assert "dieses Modells gegen das beste andere Verfahren: " in plot.alt
        assert plot.figures[0].xaxis.axis_label == "fehlende Eingangsgrößen"
        history = SearchHistoryPlot()
        history.show(tried)
        assert history.alt.startswith("2 Stufen in geschätzt 1,5 s Training. Die Suche begann mit")
        assert "aus Stufe 2 wurde behalten (Validierung 1,500)" in history.alt
