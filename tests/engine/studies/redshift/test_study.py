"""The redshift study on simulated galaxies: it learns, repeats itself, answers, and refuses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kstest, norm

import scant
from scant.errors import BadInput
from scant.events import Note
from scant.models.gpz.change_of_basis import in_coordinates
from scant.models.gpz.model import GPz
from scant.studies.redshift.beside import ALSO
from scant.studies.redshift.prepared import Prepared, bands_of
from scant.studies.redshift.report import by_bins, by_patterns
from scant.studies.redshift.restart import stages_to
from scant.studies.redshift.settings import FIXED, RedshiftSettings
from scant.studies.redshift.shapes import narrow
from scant.studies.redshift.simulate import simulate

SMALL = FIXED | {
    "training_size": 300,
    "validation_size": 80,
    "test_size": 200,
    "n_basis": 8,
    "max_steps": 30,
    "restarts": 2,
}


@pytest.fixture(scope="module")
def finished():
    run = scant.fit("redshift", device="cpu", **SMALL)
    return run, list(run)


def test_it_beats_the_line_and_reports_baselines(finished):
    _, events = finished
    result = {(m.method, m.name): m.value for m in events[-1].report.metrics}
    assert result["this run", "RMSE"] < result["linear regression", "RMSE"]
    assert (
        result["this run", "mean log-likelihood"] > result["random forest", "mean log-likelihood"]
    )
    assert 85 < result["this run", "coverage of the 95% interval"] <= 100


def test_a_missing_band_widens_the_answer_and_is_told_apart(finished):
    run, _ = finished
    band = run.study.features.bands[1]
    whole, less = run.study.explore("without", off=[]), run.study.explore("without", off=[band])
    assert (whole["std_input"] == 0).all()
    assert less["std_input"].mean() > 0.005
    assert less["metrics"][0] > whole["metrics"][0]


def test_a_density_integrates_to_one_and_has_the_mean_of_the_prediction(finished):
    run, _ = finished
    result = run.study.explore("density", row=5, off=[run.study.features.bands[0]])
    width = result["grid"][1] - result["grid"][0]
    without = run.study.explore("without", off=[run.study.features.bands[0]])
    assert 0.9 < result["density"].sum() * width < 1.02
    mean = (result["grid"] * result["density"]).sum() / result["density"].sum()
    assert mean == pytest.approx(without["z_mean"][5], abs=0.03)
    assert (result["components"].sum(0) <= result["density"] + 1e-9).all()


def test_rows_with_gaps_are_scored_by_the_mixture_and_as_published_by_its_moments(finished):
    posterior = finished[0].study.posterior
    rows, off = posterior.held.iloc[:20], list(posterior.features.bands[:2])
    p, z = posterior.predict(rows, off), rows["z"].to_numpy()
    density = (p.weights * norm.pdf(z[:, None], p.means, np.sqrt(p.variances))).sum(1)
    np.testing.assert_allclose(np.exp(posterior.score(rows, off).log_density), density)
    settings = RedshiftSettings.parse({**posterior.settings.values(), "missing": "basis functions"})
    scored = replace(posterior, settings=settings).score(rows, off)
    np.testing.assert_allclose(np.exp(scored.log_density), norm.pdf(z, p.mean, p.std))
    assert not np.allclose(density, np.exp(scored.log_density))


@pytest.mark.slow
def test_scores_by_bin_and_by_pattern_are_those_of_their_rows(finished):
    run, _ = finished
    fitted, held = run.study.posterior, run.study.data.held.copy()
    u, i = (list(fitted.features.bands).index(f"mag_{b}") for b in "ui")
    held.loc[:29, ["mag_u", "mag_i"]] = np.nan
    held.loc[30:40, "mag_u"] = np.nan  # too few rows for scores
    lost = replace(fitted, held=held)
    scored = lost.score(held)
    whole, gaps = by_patterns(lost, run.study.data.problem, scored).T
    b = len(fitted.features.bands)
    assert not whole[:b].any()
    assert np.flatnonzero(gaps[:b]).tolist() == [u, i]
    assert (whole[b], gaps[b]) == (159, 30)
    p, z = lost.predict(held.iloc[:30]), held["z"].to_numpy()[:30]
    error = (p.mean - z) / (1 + z)
    low, high = np.percentile(error, [25, 75])
    grid = np.linspace(-2, 3, 2001)
    density = p.component_densities(grid).sum(1)
    cde = (density**2).sum(1).mean() * 0.0025 - 2 * np.exp(p.log_prob(z)).mean()
    crps = ((density.cumsum(1) * 0.0025 - (grid >= z[:, None])) ** 2).sum(1).mean() * 0.0025
    by_name = dict(zip(("RMSE", *ALSO), gaps[b + 1 :]))
    assert by_name == pytest.approx(
        {
            "RMSE": np.sqrt(((p.mean - z) ** 2).mean()),
            "sigma_MAD": 1.4826 * np.median(np.abs(error - np.median(error))),
            "outliers beyond 0.15": (np.abs(error) > 0.15).mean(),
            "mean log-likelihood": p.log_prob(z).mean(),
            "CRPS": crps,
            "CDE loss": cde,
            "PIT-KS": kstest(p.cdf(z), "uniform").statistic,
            "bias": error.mean(),
            "outliers beyond 3 sigma": (np.abs(error) > 3 * (high - low) / 1.349).mean(),
        },
        rel=0.01,
    )
    bins = by_bins(run.study.data.problem, scored)
    first = (scored.y >= bins[0, 0]) & (scored.y < bins[1, 0])
    far = np.abs((scored.value - scored.y) / (1 + scored.y))[first] > 0.15
    assert bins[6, 0] == pytest.approx(far.mean())


def test_a_table_without_any_feature_is_refused_by_name(finished):
    run, _ = finished
    with pytest.raises(BadInput, match="none of the features"):
        run.study.predict(pd.DataFrame({"height": [1.0]}))


@pytest.mark.slow
def test_rows_with_missing_values_can_be_learned_from(finished):
    table = finished[0].study.data.held.copy()
    table.loc[::2, finished[0].study.features.bands[0]] = np.nan
    values = {**SMALL, "training_size": 90, "validation_size": 30, "test_size": 60, "restarts": 1}
    run = scant.fit("redshift", table, device="cpu", **values)
    events = list(run)
    assert any("left out of training" in e.text for e in events if isinstance(e, Note))
    run = scant.fit("redshift", table, device="cpu", incomplete="use", **{**values, "max_steps": 6})
    *_, last = run
    assert last.state.usable
    assert len(run.study.data.learn) > 100


def test_a_table_without_a_complete_row_is_learned_from():
    table = simulate(60)
    for k, band in enumerate(bands_of(table, "z")):
        table.loc[k::5, [band, f"{band}_err"]] = np.nan
    data = Prepared(RedshiftSettings.parse(FIXED), table)
    assert len(data.learn) == 48
    assert any("60 of the 60 rows lack a value" in note for note in data.notes)
    with pytest.raises(BadInput, match="set incomplete=use"):
        Prepared(RedshiftSettings.parse({**FIXED, "incomplete": "leave out"}), table)


@pytest.mark.slow
def test_balanced_weights_lower_the_error_where_galaxies_are_rare():
    values = {**SMALL, "training_size": 800, "restarts": 1, "max_steps": 60, "n_basis": 4}
    held = {}
    for weights in ("normal", "balanced"):
        run = scant.fit("redshift", device="cpu", weights=weights, **values)
        *_, last = run
        y, mean = last.report.arrays["z_true"], last.report.arrays["z_mean"]
        rare = y > np.quantile(y, 0.93)
        held[weights] = np.abs((mean - y)[rare]).mean()
    assert held["balanced"] < held["normal"]


def test_bands_are_the_numeric_columns_that_are_no_errors():
    table = pd.DataFrame({"z": [1.0], "r": [1.0], "r_err": [0.1], "odd_err": [2.0], "name": ["a"]})
    assert bands_of(table, "z") == ["r", "odd_err"]
    with pytest.raises(BadInput, match="no column 'y'"):
        bands_of(table, "y")


def test_stages_end_in_the_structure_that_was_asked_for():
    for covariance in ("GL", "VL", "GD", "VD", "GC", "VC"):
        assert stages_to(covariance, "coarse to fine")[-1] == covariance
        assert stages_to(covariance, "direct") == (covariance,)


@pytest.mark.parametrize("covariance", ["GL", "VL", "GD", "VD", "GC", "VC"])
def test_other_coordinates_tell_the_same_function(covariance):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    T = torch.randn(3, 3, generator=generator, dtype=torch.float64) + 2 * torch.eye(3)
    y = torch.sin(X[:, 0])
    model = GPz(3, 5, covariance)
    model.init_from_data(X @ T.T, y, generator)
    model.fit_posterior(X @ T.T, y, mixture=None)
    ours, theirs = in_coordinates(model, T).predict(X), model.predict(X @ T.T)
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-9)
    assert torch.allclose(ours.model_variance, theirs.model_variance, atol=1e-9)
    assert torch.allclose(ours.noise_variance, theirs.noise_variance, atol=1e-9)
    assert (
        narrow(in_coordinates(model, torch.eye(3, dtype=torch.float64)).gamma, covariance).shape
        == model.gamma.shape
    )


def test_rivals_know_their_error_and_gaps(finished):
    _, events = finished
    report = events[-1].report
    result = {(m.method, m.name): m.value for m in report.metrics}
    missing = report.arrays["missing"]
    for k, name in enumerate(("random forest", "gradient boosting"), 2):
        assert np.isfinite(result[name, "CRPS"])
        assert missing[k, 0] == pytest.approx(result[name, "RMSE"])  # fewer than 500 rows
        assert missing[4 + k, 0] == pytest.approx(result[name, "mean log-likelihood"])
        assert missing[8 + k, 0] == pytest.approx(result[name, "CRPS"])
        assert (missing[8 + k] > 0).all()
    assert missing[9, 0] == pytest.approx(result["this run", "CRPS"])
    told = [(p.kind, p.start) for p in report.verdict.parts if p.contest.score == "CRPS"]
    assert {kind for kind, _ in told} == {"all", "truth", "missing"}
    assert [count for kind, count in told if kind == "missing"] == [1, 2, 3, 4]
