"""The publication's table: every structure is run, baselines count once, figures stand beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.events import Report
from scant.studies.redshift.report import NAMES
from scant.studies.redshift.reproduce import reproduce, survey
from scant.training.api import Fit, fit
from tests.engine.studies.studying import gathered

BRIEF = {"training_size": 80, "validation_size": 20, "test_size": 40, "n_basis": 3, "max_steps": 2}


def briefly(study: str, data: pd.DataFrame | None, **values: Any) -> Fit:
    return fit(study, data, device="cpu", **{**values, **BRIEF, "restarts": 1})


@pytest.mark.slow
def test_every_variant_is_run_and_baselines_count_once_a_seed() -> None:
    runs = survey.runs(quick=True, data=None, fit=briefly)
    result = gathered("redshift", runs, survey.advantages)
    of_fits = {survey.SELECTED, survey.WITHIN, survey.ADVANTAGE}  # too few rows for bins
    assert set(result["experiment"]) == {survey.TABLE, survey.MISSING} | of_fits
    ours = result[result["ours"].notna()]
    assert {
        f"GP{covariance} m={how}"
        for covariance in ("VL", "VD", "VC")
        for how in ("25, ours", "20, as published")
    } < set(ours["method"])
    assert (ours["repeats"] == 1).all()
    assert ours["data"].str.contains("stand-in for SDSS").all()
    of_table = result[result["experiment"] == survey.TABLE]
    published = of_table.set_index(["method", "metric"])["published"].dropna()
    assert published["GPVC m=100, as published", "RMSE"] == 0.0540
    assert (
        "GPVC m=25, ours" not in published
    )  # the publication has other numbers of basis functions
    for method in ("ANNz2", "TPZ", "SPGP"):
        assert set(published[method].index) == set(NAMES)


@pytest.mark.slow
def test_surveys_are_mixed_and_a_forest_stands_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {f"mag_{band}": rng.uniform(17, 22, 140) for band in "ugriz"}
        | {f"mag_{band}_err": rng.uniform(0.01, 0.1, 140) for band in "ugriz"}
    )
    table = table.assign(z=0.05 * (table["mag_u"] - 15))
    monkeypatch.setattr(survey, "galaxies", lambda *_, **__: table)
    scores = [one for m in (25, 100) for one in survey._mixed(Path(), 0, m, briefly)]
    result = pd.DataFrame(scores)
    assert {experiment.name for experiment in result["experiment"]} == {survey.MIXED}
    ours = {f"GPVC m={m}, five starts" for m in (25, 100)}
    others = {"random forest", "gradient boosting", "linear regression"}
    assert set(result["method"]) - {"CatBoost"} == ours | others  # it is not installed everywhere
    assert not result.duplicated(["method", "metric"]).any()


def test_a_folder_without_the_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file galaxies\.parquet"):
        next(reproduce(quick=True, data=tmp_path, fit=briefly))


def test_medians_of_uncertainty_are_of_bins_with_enough_rows_also_below_zero() -> None:
    z = np.repeat([-0.01, 0.25, 0.55], [20, 30, 19])
    arrays = {
        "kept": np.ones((6, 2)),
        "z_true": z,
        "z_mean": z,
        "std_model": np.where(z < 0, 1.0, np.arange(69)),
        "std_noise": np.full(69, 0.5),
    }
    found = list(survey._selection("GPVC", Report((), arrays)))
    medians = {metric: value for name, _, metric, value in found if name == survey.UNCERTAIN}
    assert medians == {
        "deviation of the model, z=-0.05": 1.0,
        "deviation of the noise, z=-0.05": 0.5,
        "deviation of the model, z=0.25": 34.5,
        "deviation of the noise, z=0.25": 0.5,
    }


def test_the_advantage_of_gpvc_is_a_share_of_the_other_score_averaged_over_selections() -> None:
    experiment = survey.Experiment(survey.SELECTED, "data", "seeds")
    values = {  # GPVL's, then GPVC's, of two seeds
        "RMSE, 10% selected": ((4.0, 2.0), (3.0, 2.0)),
        "RMSE, 100% selected": ((10.0, 4.0), (5.0, 5.0)),
        "mean log-likelihood, 10% selected": ((-2.0, 1.0), (-1.0, 1.5)),
    }
    scores = [
        survey.Score(experiment, method, metric, value)
        for metric, pair in values.items()
        for method, of_seeds in zip(("GPVL m=9, as published", "GPVC m=9, as published"), pair)
        for value in of_seeds
    ]
    found = [(s.method, s.metric, s.value) for s in survey.advantages(scores)]
    assert found == [
        ("GPVL m=9, as published", "advantage in RMSE", 37.5),  # of 25 and 50
        ("GPVL m=9, as published", "advantage in RMSE", -12.5),  # of 0 and -25
        ("GPVL m=9, as published", "advantage in mean log-likelihood", 50.0),
        ("GPVL m=9, as published", "advantage in mean log-likelihood", 50.0),
    ]
