"""The publication's experiments on views: every model is scored on the same splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

from scant.studies.multiview import reproduce
from scant.studies.multiview.simulate import cell_events, so2
from scant.studies.published import printed
from scant.training.api import fit
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

SO2 = REAL_DATA / "so2_beijing_standin"


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPS", "SGP_STEPS", "EXACT_STEPS"):
        monkeypatch.setattr(reproduce, name, 2)
    monkeypatch.setattr(reproduce, "ROWS", 60)
    hours, candidates = so2.hourly(0, 400), cell_events.candidates(0, 3, 24)
    monkeypatch.setattr(so2, "hourly", lambda: hours)
    monkeypatch.setattr(cell_events, "candidates", lambda: candidates)


@pytest.mark.usefixtures("brief")
def test_every_model_is_scored_in_its_experiment() -> None:
    runs = reproduce.reproduce(quick=True, data=None, fit=fit)
    result = gathered("multiview", runs, reproduce.compared)
    names = {"SO2": set(reproduce.REGRESSIONS)}
    names["SO2, 30 inducing inputs"] = {"DFGP", "DFGP-WP", "SGP"}
    names["cell events"] = set(reproduce.CLASSIFIERS)
    for experiment, methods in names.items():
        part = result[(result["experiment"] == experiment) & result["ours"].notna()]
        assert set(part["method"]) == methods
        compared = part["metric"].str.startswith("p of ")
        assert len(part) == 2 * len(methods) + compared.sum()
        assert compared.any()
        assert "DFGP" not in set(part.loc[compared, "method"])
        assert part.loc[compared, "ours"].between(0, 1).all()
        assert np.isfinite(part.loc[~compared, ["ours", "spread"]].to_numpy(float)).all()
    published = result.set_index(["method", "metric"])["published"].dropna()
    assert published["DFGP", "NMSE"] == 0.59
    assert published["MKGP", "F1"] == 0.70
    printed_ones = [p for name in ("SO2", "cell events") for p in printed("multiview", name)]
    assert len(published) == len(printed_ones)
    scored = result["ours"].notna() & ~result["metric"].str.startswith("p of ")
    assert (result.loc[scored, "repeats"] > 1).all()


@pytest.mark.usefixtures("brief")
def test_splits_are_shared_and_repeatable() -> None:
    table = so2.ahead(so2.hourly())
    once, again, other = (reproduce.regression_scores(table, seed) for seed in (0, 0, 1))
    assert once == again
    assert once != other


@pytest.mark.skipif(not SO2.is_dir(), reason="SCANT_REAL_DATA names no folder so2_beijing_standin")
def test_real_levels_are_predicted_better_than_by_a_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("Student-t", "SGP"):
        monkeypatch.delitem(reproduce.REGRESSIONS, method)
    monkeypatch.setitem(reproduce.REGRESSIONS, "plane", _plane)
    table = pd.read_parquet(SO2 / "so2_24h_ahead.parquet").drop(columns="time")
    result = reproduce.regression_scores(table.rename(columns={"so2_plus24h": "y"}), 0)
    scores = {(method, metric): value for method, metric, value in result}
    for method in ("DFGP", "DFGP-WP"):
        for metric in ("NMSE", "NLPD of ln(1 + y)"):
            assert scores[method, metric] < scores["plane", metric], (method, metric)


def _plane(x: Any, y: Any, new: Any, inducing: int, seed: int) -> Any:
    fitted = LinearRegression().fit(x.numpy(), y.numpy())
    variance = float(np.var(y.numpy() - fitted.predict(x.numpy())))
    mean = torch.as_tensor(fitted.predict(new.numpy()))
    return mean, torch.full_like(mean, variance)
