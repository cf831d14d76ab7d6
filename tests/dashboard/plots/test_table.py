"""The table of metrics."""

from __future__ import annotations

from scant.dashboard.plots.base import NOTHING
from scant.dashboard.plots.table import MetricsTable, comparison, figure, table
from scant.events import Metric

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
    assert "0.07388 ± 0.00250" in made


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
