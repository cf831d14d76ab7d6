"""The table of metrics."""

from __future__ import annotations

from scant.events import Metric, Report
from scant_dashboard.live.run_state import OWN
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.table import (
    MetricsTable,
    comparison,
    figure,
    figures,
    reading_of,
    table,
)

METRICS = (
    Metric("this run", "RMSE", 0.07388, 0.0025),
    Metric("this run", "bias", 0.002),
    Metric("forest", "RMSE", 0.1054, source="baseline"),
    Metric("GPVC", "RMSE", 0.054, source="published"),
)


def test_methods_are_grouped_and_what_one_alone_has_stands_beneath() -> None:
    made = table(METRICS)
    order = [made.index(w) for w in ("This run", "Baselines", "forest", "Published", "GPVC")]
    assert order == sorted(order)
    assert made.count("<th scope='col'") == 1
    assert "Also of this run: bias 0.002000." in made
    assert "0.07388 <span class='spread'>± 0.00250</span>" in made


def test_words_from_outside_are_escaped() -> None:
    evil = "<script>alert(1)</script>"
    made = table((Metric(evil, evil, 1.0), Metric("b", evil, 1.0)))
    assert "<script" not in made + comparison({evil: ["1"]}, [evil])


def test_figures_that_are_not_finite_or_zero_are_said_plainly() -> None:
    assert figure(Metric("a", "b", float("nan"))) == "nan"
    assert figure(Metric("a", "b", 0.0)) == "0"
    assert figure(Metric("a", "b", 12345.6)) == "12346"


def test_shown_and_cleared() -> None:
    view = MetricsTable()
    view.show(METRICS, ("A note < here.",))
    assert view.alt == "This run: RMSE 0.07388 ± 0.00250 against 0.1054 of forest."
    assert "A note &lt; here." in view.panel.object
    view.clear()
    assert view.alt == NOTHING
    assert view.panel.object == ""


def test_the_best_other_method_is_quoted_and_not_the_first() -> None:
    rows = (*METRICS, Metric("boosting", "RMSE", 0.0801, source="rival"))
    assert reading_of(rows).endswith("against 0.08010 of boosting.")
    assert "General tools, same rows" in table(rows)


def test_a_publication_s_figures_do_not_stand_below_an_own_run() -> None:
    view = figures("Published: 0.5.")
    view.update(Report(METRICS), {})
    assert "Published: 0.5." in view.plot.panel.object
    view.update(Report(METRICS), {OWN: True})  # without baselines
    assert "Published: 0.5." not in view.plot.panel.object
