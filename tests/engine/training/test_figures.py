"""`run.plot()` shows what the report holds, of every study, and HoloViews can draw it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import holoviews as hv
import numpy as np
import pytest

import scant
from scant.errors import NotFound
from scant.metrics import Z_95
from scant.store import Store
from scant.studies import STUDIES
from tests.tiny import TINY


def element(layout: Any, title: str, kind: type) -> Any:
    """The first element of a kind in the figure of this title."""
    figure = next(f for f in layout if f.label == title)
    return next(e for e in figure.traverse(lambda e: e, [kind]) if type(e) is kind)


@pytest.fixture(scope="module")
def fits() -> Any:
    """Small fits by study, each made when it is first asked for."""
    made: dict[str, Any] = {}

    def fitted(study: str) -> Any:
        if study not in made:
            made[study] = scant.fit(study, device="cpu", **TINY[study])
            list(made[study])
        return made[study]

    return fitted


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_is_drawn_and_the_curve_is_the_runs(fits: Any, study: str) -> None:
    run = fits(study)
    layout = run.plot()
    assert len(layout) >= 4
    assert len({f.label for f in layout}) == len(layout)
    curve = element(layout, "Objective", hv.Curve)
    assert curve.dimension_values(1).tolist() == [p.elbo for p in run.steps if p.restart == 0]
    assert hv.render(layout, backend="bokeh").children


@pytest.mark.slow
def test_predictions_have_the_whole_deviation_as_their_band(fits: Any) -> None:
    run = fits("redshift")
    a, title = run.report.arrays, "Prediction against truth"
    points = element(run.plot(), title, hv.Scatter)
    assert np.array_equal(points.dimension_values("z_true"), a["z_true"])
    assert np.array_equal(points.dimension_values("z_mean"), a["z_mean"])
    bands = element(run.plot(), title, hv.ErrorBars)
    whole = a["std_model"] ** 2 + a["std_noise"] ** 2 + a["std_input"] ** 2
    assert bands.dimension_values("spread") == pytest.approx(Z_95 * np.sqrt(whole))
    assert points.get_dimension("z_mean").unit == "target"


def test_a_surface_has_the_cells_where_they_lie(fits: Any) -> None:
    run = fits("aggregation")
    drawn = element(run.plot(), "Posterior mean", hv.QuadMesh)
    ages = len(run.study.metadata["edges"][0]) - 1
    mean = run.report.arrays["mean"]
    years, across = drawn.dimension_values("year", False), drawn.dimension_values("age", False)
    middle = [(e[0] + e[1]) / 2 for e in run.study.metadata["edges"]]
    assert (across[0], years[0]) == pytest.approx(middle)
    cells = drawn.dimension_values("mean", flat=False)
    assert np.array_equal(cells[0], mean[:ages])  # the first dimension runs fastest


@pytest.mark.slow
def test_replicas_have_the_bands_of_new_measurements(fits: Any) -> None:
    run = fits("genes")
    a, name = run.report.arrays, run.study.metadata["shown"][0]
    curve, area = (element(run.plot(), name, kind) for kind in (hv.Curve, hv.Area))
    assert np.array_equal(curve.dimension_values("mean"), a["mean"][0, 0])
    low = a["mean"][0, 0] - Z_95 * a["std_y"][0, 0]
    assert area.dimension_values("mean") == pytest.approx(low)


@pytest.mark.slow
def test_matrices_stand_in_the_order_of_the_report(fits: Any) -> None:
    run = fits("omniglot")
    a = run.report.arrays
    cells = element(run.plot(), "How the classes go together", hv.HeatMap)
    order = a["order"].astype(int)
    want = a["correlation"][np.ix_(order, order)].ravel()
    assert np.array_equal(cells.dimension_values("correlation"), want)
    bars = element(run.plot(), "Recall of held-out rows", hv.Bars)
    assert np.array_equal(bars.dimension_values("accuracy"), a["accuracy"], equal_nan=True)


@pytest.mark.slow
def test_latent_places_and_scores_are_those_of_the_report(fits: Any) -> None:
    run = fits("mitosis")
    a = run.report.arrays
    first = int(np.argmax(a["relevance"]))
    drawn = element(run.plot(), "Where the rows lie", hv.Points)
    mine = a["latent_class"] == 0
    assert np.array_equal(drawn.dimension_values(0), a["latent_mean"][mine, first])
    curve = element(run.plot(), "Precision and recall", hv.Curve)
    assert np.array_equal(curve.dimension_values("precision"), a["pr"][0, 1], equal_nan=True)


@pytest.mark.slow
def test_scores_of_methods_are_means_over_splits(fits: Any) -> None:
    run = fits("multiview")
    bars = element(run.plot(), "Scores of the methods", hv.Bars)
    assert bars.dimension_values(1) == pytest.approx(run.report.arrays["scores"].mean(1))


@pytest.mark.slow
def test_label_efficiency_is_that_of_the_session(fits: Any) -> None:
    run = fits("clamp")
    curve = element(run.plot(), "Label efficiency", hv.Curve)
    assert np.array_equal(curve.dimension_values("labels"), run.report.arrays["labels"])
    f1 = run.report.arrays["f1"][0]
    assert np.array_equal(curve.dimension_values(1), f1, equal_nan=True)


def test_a_run_of_the_store_is_plotted_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open("sqlite://")
    store.import_shipped()
    monkeypatch.setattr(Store, "open", lambda: store)
    layout = scant.plot("demo-redshift")
    report = store.report("demo-redshift")
    points = element(layout, "Prediction against truth", hv.Scatter)
    assert np.array_equal(points.dimension_values("z_mean"), report.arrays["z_mean"])
    restarts = next(f for f in layout if f.label == "Objective")
    assert len(restarts.keys()) == 3


def test_a_run_without_a_report_says_so() -> None:
    with pytest.raises(NotFound, match="no report"):
        scant.fit("redshift", device="cpu", **TINY["redshift"]).plot()


def test_a_study_without_figures_of_its_own_has_the_common_ones() -> None:
    from scant.events import Progress, Report
    from scant.training import figures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "find_spec", lambda _: None)
        report = Report(arrays={"coverage": np.array([[0.5, 0.9], [0.4, 0.8]])})
        drawn = figures.figures("redshift", report, {}, [Progress(1, -1.0, 0.1, -1.0, -1.0)])
    assert list(drawn) == ["Objective", "Coverage of intervals"]


def test_figures_are_drawn_where_panel_has_loaded_the_backend_alone() -> None:
    program = (
        "import holoviews as hv, holoviews.plotting.bokeh, scant.plotting.elements; "
        "hv.opts.Curve(width=1)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
