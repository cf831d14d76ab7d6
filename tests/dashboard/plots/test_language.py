"""Figures in the session's language: captions, labels, tick labels, tables of metrics."""

from __future__ import annotations

import numpy as np
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.events import Metric
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.calibration import CoveragePlot
from scant_dashboard.plots.cohort import CohortPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.table import figure, reading_of, table
from scant_dashboard.plots.theme import models
from scant_dashboard.study_page.figure import Figure


def shown() -> ScatterPlot:
    plot = ScatterPlot("value", outlier=None)
    truth = np.linspace(0, 1, 2000)
    plot.show(truth, truth, np.full(2000, 0.1))
    return plot


def test_captions_labels_and_tools_are_translated(german: None) -> None:
    plot = shown()
    assert plot.alt.startswith("2.000 von 2.000 zurückgehaltenen Zeilen liegen in ihrem")
    assert [axis.axis_label for axis in plot.figures[0].axis] == [
        "Wert (wahr)",
        "Wert (vorhergesagt)",
    ]
    reset = plot.figures[0].select_one(models.ResetTool)
    assert reset.description == "Zurücksetzen"
    plot.say()
    assert plot.figures[0].html_attributes["aria-label"].startswith("Vorhersage gegen wahren Wert.")


def test_an_empty_figure_says_so_in_its_caption(german: None) -> None:
    plot = CoveragePlot()
    assert plot.alt == NOTHING  # views compare it
    assert Figure(plot)._reading.text == "Noch nichts zu zeigen."


def test_own_column_names_replace_the_translated_ones(german: None) -> None:
    plot = CohortPlot()
    plot.call_target("months")
    assert [axis.axis_label for axis in plot.figures[0].axis] == [
        "months (beobachtet)",
        "months (vorhergesagt)",
    ]


def test_tick_labels_have_the_languages_separators(german: None) -> None:
    formatters = [
        CoveragePlot().figures[0].xaxis[0].formatter,
        shown().figures[0].xaxis[0].formatter,
    ]
    assert [f.args for f in formatters] == [
        {"language": "de", "form": "0%"},
        {"language": "de", "form": ""},
    ]


def test_tables_of_metrics_are_translated(german: None) -> None:
    metrics = (
        Metric("this run", "outlier rate", 0.0125),
        Metric("forest", "outlier rate", 0.0375, source="baseline"),
    )
    made = table(metrics)
    for part in (
        "Dieser Lauf",
        "Vergleichsmodelle, dieselben Zeilen",
        "Ausreißeranteil",
        "0,01250",
    ):
        assert part in made
    assert reading_of(metrics).startswith("Dieser Lauf: Ausreißeranteil 0,01250")
    assert figure(Metric("", "RMSE", 1.5, 0.25)) == "1,500 ± 0,250"


def test_other_sessions_are_english(german: None) -> None:
    with set_curdoc(Document()):
        plot = shown()
    assert plot.alt.startswith("2,000 of 2,000 held-out rows lie within their 95% interval")
    assert isinstance(plot.figures[0].xaxis[0].formatter, models.BasicTickFormatter)
