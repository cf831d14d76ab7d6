"""What a fit to replicas chooses by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import scant
from scant.events import Finished, Fitted
from scant.studies import entry
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.genes import simulate, stacking
from scant.studies.genes.settings import FIXED, GenesSettings
from scant.studies.genes.study import Study
from scant.training.api import restore
from tests.engine.studies.studying import resumed

SPEC = entry("genes")
TABLES = st.tuples(st.integers(1, 300), st.integers(2, 40), st.integers(1, 60), st.floats(1, 3600))


def counts_of(outputs: int, replicas: int, each: int) -> tuple[int, Any]:
    rows = outputs * replicas * each
    sizes = {"output": outputs, "replica": replicas}
    return rows, {n: {str(i): rows // k for i in range(k)} for n, k in sizes.items()}


@given(TABLES)
def test_sizes_fit_the_table_and_the_time(table: tuple[int, int, int, float]) -> None:
    outputs, replicas, each, seconds = table
    rows, counts = counts_of(outputs, replicas, each)
    settings = GenesSettings(time_budget=seconds)
    made, chosen = SPEC.settled(settings, rows, 4, counts)
    assert AUTO not in made.values().values()
    assert set(chosen) == set(FIXED)
    assert made.n_inducing_outputs <= outputs
    assert made.n_inducing_inputs <= max(rows, 4)
    assert made.n_inducing_outputs * made.n_inducing_inputs <= 1000
    assert chosen == SPEC.settled(settings, rows, 4, counts)[1]


def test_small_tables_get_all_inducing_points_and_large_ones_what_the_time_allows() -> None:
    made, _ = SPEC.settled(GenesSettings(), *_sized(10, 8, 7))
    assert (made.n_inducing_outputs, made.n_inducing_inputs) == (10, 49)
    assert made.model == "stack"
    made, _ = SPEC.settled(GenesSettings(), *_sized(200, 8, 7))
    assert made.model == "hmogp-lv"
    assert 10 < made.n_inducing_outputs < 200
    assert made.n_inducing_inputs >= 40  # five a replica
    less, _ = SPEC.settled(GenesSettings(time_budget=5.0), *_sized(200, 8, 7))
    assert less.n_inducing_outputs < made.n_inducing_outputs


def _sized(outputs: int, replicas: int, each: int) -> tuple[int, int, Any]:
    rows, counts = counts_of(outputs, replicas, each)
    return rows, 4, counts


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    whole = simulate.demo(GenesSettings())
    return whole[whole["output"].isin(["gene A", "gene B", "gene C"])].drop(columns="test")


@pytest.mark.slow
def test_an_own_table_is_fitted_by_several_models_and_comes_back(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "LEAST_STEPS", 1)
    monkeypatch.setattr(stacking, "STEPS", 1)
    values = {"time_budget": 2.0, "baselines": False}
    run = scant.fit("genes", table, device="cpu", own=True, **values)
    events = list(run)
    end, model = events[-1], next(e for e in events if isinstance(e, Fitted))
    assert run.study.metadata[CHOSEN]["model"][0] == "stack"
    weights = run.study.metadata["stack"]
    assert sum(weights) == pytest.approx(1)
    assert end.report.limits[0].startswith("Predictions are an average (")
    assert next(m.value for m in end.report.metrics if m.name == "NMSE") < 0.8
    back = restore("genes", values, model.blob, "cpu")
    assert np.array_equal(back.predict(table)["std_y"], run.study.predict(table)["std_y"])
    told = run.study.explore("hide", output="gene B", replica="embryo 3")
    assert np.isfinite(told["after_mean"]).all()


@pytest.mark.slow
def test_noise_is_predicted_about_as_well_as_by_the_mean() -> None:
    rng = np.random.default_rng(5)
    names = [f"gene {i}" for i in range(10)]
    index = pd.MultiIndex.from_product([names, ["a", "b", "c"], range(4)])
    noise = index.to_frame(index=False).set_axis(["output", "replica", "x"], axis=1)
    noise = noise.assign(x=noise["x"].astype(float), y=rng.normal(5, 1, len(noise)))
    run = scant.fit("genes", noise, device="cpu", own=True, time_budget=4.0, baselines=False)
    *_, end = run
    assert isinstance(end, Finished)
    test = run.study.test
    told = run.study.predict(noise)["mean"].to_numpy()[test]
    mean = run.study.observed.y[~test].mean()
    y = run.study.observed.y[test]
    assert ((y - told) ** 2).mean() < 1.06 * ((y - mean) ** 2).mean()


def test_runs_of_before_come_back_without_a_model_that_they_had_not() -> None:
    stack = GenesSettings(**FIXED | {"model": "stack"})
    before, now = (
        [s.model for s in stacking.members(stack, 3, 100, level)] for level in (False, True)
    )
    assert now == [before[0], "level", *before[1:]]


@pytest.mark.slow
def test_a_stack_resumes_bit_by_bit(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacking, "LEAST_STEPS", 0)
    monkeypatch.setattr(stacking, "STEPS", 0)
    made = FIXED | {"model": "stack", "baselines": False, "max_steps": 1, "n_inducing_inputs": 8}
    two = table[table["output"] != "gene C"]
    resumed(lambda: Study(GenesSettings(**made), two, torch.device("cpu")), 3)


@pytest.mark.parametrize("split", ["half of the points", "one replica of each output"])
def test_folds_are_held_out_as_the_test_rows_are(table: pd.DataFrame, split: str) -> None:
    settings = GenesSettings(**FIXED | {"split": split})
    study = Study(settings, table, torch.device("cpu"))
    seen = np.zeros(len(table), dtype=bool)
    for fold in stacking.folds(study.observed, study.train, study.test, 0):
        assert fold.any()
        assert not (fold & ~study.train).any()
        assert not (fold & seen).any()  # four folds of five replicas or more
        seen |= fold
        for d in range(3):
            mine = study.train & (study.observed.output == d)
            left = set(study.observed.replica[mine & ~fold])
            gone = set(study.observed.replica[mine & fold]) - left
            assert len(gone) == (1 if split.startswith("one") else 0)
