"""Tables of many columns: reduced inputs, diagonal shapes where full ones cost too much, gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load

import scant
from scant.events import Checkpoint, Finished, Fitted, Progress
from scant.studies.redshift import components
from scant.studies.redshift.growth_budget import FREE, FULL, FULL_BYTES, GrowthBudget, Stage
from scant.training.api import restore
from scant.training.checkpoint_format import header
from scant.training.control import Control

COLUMNS = 40


def _table(rows: int = 160, missing: float = 0.01, seed: int = 0) -> pd.DataFrame:
    """Columns of four factors, two of which the target depends on."""
    loadings = np.random.default_rng(7).normal(size=(4, COLUMNS))
    generator = np.random.default_rng(seed)
    factors = generator.normal(size=(rows, 4))
    x = factors @ loadings + 0.3 * generator.normal(size=(rows, COLUMNS))
    x[generator.random(x.shape) < missing] = np.nan
    z = np.sin(factors[:, 0]) + factors[:, 1] ** 2 + 0.05 * generator.normal(size=rows)
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(COLUMNS)]).assign(z=z)


Fit = tuple[Any, Finished, bytes, dict[str, Any]]


@pytest.fixture(scope="module")
def fitted() -> Fit:
    values = {"restarts": 2, "n_basis": 20, "gap_seconds": 0, "time_budget": 5}
    run = scant.fit("redshift", _table(), own=False, **values)
    events = list(run)
    (model,) = [e.blob for e in events if isinstance(e, Fitted)]
    end = events[-1]
    assert isinstance(end, Finished)
    return run, end, model, run.study.settings.values()


def test_components_are_chosen_where_left_out_rows_prefer_them(fitted: Fit) -> None:
    study = fitted[0].study
    assert study.features.reduced
    assert study.T.shape[0] in components.COUNTS
    value, why = study.metadata["chosen"]["features"]
    assert (value, "principal components" in why) == ("as given", True)


def test_all_columns_are_kept_where_left_out_rows_prefer_them() -> None:
    generator = np.random.default_rng(0)
    x = torch.as_tensor(generator.normal(size=(400, COLUMNS)))
    y = x.numpy() @ np.ones(COLUMNS) / COLUMNS**0.5  # each column has its own part in it
    assert components.chosen(x, x[:0], y, log=False) is None


def test_components_are_white_and_come_of_rows_with_gaps() -> None:
    x = torch.as_tensor(_table().drop(columns="z").to_numpy(copy=True))
    filled = components.whole(x)
    assert torch.equal(filled[~x.isnan()], x[~x.isnan()])
    T = torch.as_tensor(components.projection(filled, 3))
    z = (filled - filled.mean(0)) @ T.T
    torch.testing.assert_close(z.T @ z / len(z), torch.eye(3).double())


def test_rows_that_lack_something_are_predicted_better_than_by_nothing(fitted: Fit) -> None:
    fresh = _table(300, missing=0.05, seed=1)
    predicted = fitted[0].study.predict(fresh)
    assert predicted["mean"].notna().all()
    away = predicted["mean"] - fresh["z"]
    lacking = fresh.drop(columns="z").isna().any(axis=1).to_numpy()
    assert (away[lacking] ** 2).mean() < 0.3 * fresh["z"].var()
    assert (predicted["std_input"][lacking] > 0).all()
    assert (predicted["std_input"][~lacking] == 0).all()


def test_rows_of_independent_columns_teach_all_that_they_have() -> None:
    """Where no components are taken and nearly every row lacks something."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(200, COLUMNS))
    z = x[:, 0] + 0.5 * x[:, 1] + 0.3 * generator.normal(size=200)
    x[generator.random(x.shape) < 0.05] = np.nan
    table = pd.DataFrame(x, columns=[f"c{k}" for k in range(COLUMNS)]).assign(z=z)
    chosen = {"features": "as given", "log_target": "no", "robust": "no", "stack": False}
    values = {"restarts": 1, "n_basis": 10, "covariance": "VD", "max_steps": 20, **chosen}
    run = scant.fit("redshift", table[:120], own=False, **values)
    *_, end = run
    assert isinstance(end, Finished)
    error = run.study.predict(table[120:])["mean"] - z[120:]
    assert (error**2).mean() < 0.5 * z[120:].var()


def test_a_restored_model_says_the_same_and_is_small(fitted: Fit) -> None:
    run, _, model, values = fitted
    again = restore("redshift", values, model)
    rows = _table(30, missing=0.05, seed=0)
    pd.testing.assert_frame_equal(again.predict(rows), run.study.predict(rows))
    assert {tensor.shape[1:] for n, tensor in load(model).items() if n.endswith(".gamma")} == {
        (run.study.T.shape[0],)  # diagonals, and no matrix of all columns for each basis function
    } or run.study.T.shape[0] <= FULL
    density = again.explore("density", row=0)
    assert np.trapezoid(density["density"], density["grid"]) == pytest.approx(1, abs=0.2)


@pytest.mark.slow
def test_a_paused_fit_goes_on_bit_by_bit() -> None:
    values = {"restarts": 1, "n_basis": 20, "covariance": "VD", "max_steps": 8, "gap_seconds": 0}
    table = _table()
    whole = [e.elbo for e in scant.fit("redshift", table, **values) if isinstance(e, Progress)]
    control, first, blob = Control(), list[float](), b""
    for event in scant.fit("redshift", table, control=control, **values):
        if isinstance(event, Progress):
            first.append(event.elbo)
            if event.step == 4:
                control.pause()
        if isinstance(event, Checkpoint):
            blob = event.blob
    assert header(blob, "loop")["bitwise"]
    rest = scant.fit("redshift", table, checkpoint=blob, **values)
    assert first + [e.elbo for e in rest if isinstance(e, Progress)] == whole


@pytest.mark.parametrize(("inputs", "full"), [(8, True), (FULL, True), (16, True), (120, False)])
def test_full_covariances_are_tried_where_they_are_affordable(inputs: int, full: bool) -> None:
    budget = GrowthBudget(rows=350, inputs=inputs, models=3, seconds=42.0)
    shapes = {stage.shape for stage in budget.all()}
    assert ("VC" in shapes) is full
    largest = max(map(budget.bytes_of, budget.all()))
    assert largest <= FULL_BYTES or inputs <= FULL or not full
    assert budget.bytes_of(Stage(100, "VC", FREE)) > 3 * budget.bytes_of(Stage(100, "VD", FREE))


def test_an_estimate_says_the_memory_of_full_covariances() -> None:
    from scant.studies import entry

    spec = entry("redshift")

    def held(columns: int, **values: Any) -> float:
        settings, _ = spec.settled(spec.parse(_table(), values), 500, columns, {})
        assert spec.estimate is not None
        return spec.estimate(settings, 500, columns, {})[1]

    assert held(121) < 1e9
    assert held(121, covariance="VC", n_basis=300) > 8 * 40 * 300 * 120**2
