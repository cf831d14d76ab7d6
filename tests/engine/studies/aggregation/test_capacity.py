"""What an MTGPA fit chooses by itself."""

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
from scant.studies.aggregation import inference
from scant.studies.aggregation.capacity import inside_each, parts, sizes, summed
from scant.studies.aggregation.settings import AVERAGED, FIXED, TRIED, AggregationSettings
from scant.studies.auto import AUTO, CHOSEN
from scant.training.api import restore

SPEC = entry("aggregation")


@pytest.mark.slow
@given(
    st.lists(st.integers(4, 30_000), min_size=1, max_size=20),
    st.integers(1, 3),
    st.floats(1, 3600),
)
def test_sizes_fit_the_table_and_the_time(
    tasks: list[int], dimensions: int, seconds: float
) -> None:
    counts = {"task": {f"task {i}": n for i, n in enumerate(tasks)}}
    settings = AggregationSettings(time_budget=seconds)
    table = sum(tasks), 2 + 2 * dimensions, counts
    made, chosen = SPEC.settled(settings, *table)
    other = {"kernel", "n_latent", "stack", "hyperparameters", "counts", "known_noise"}
    assert set(chosen) == set(FIXED) - other
    assert 16 <= made.n_inducing <= 400
    assert made.batch_size * len(tasks) <= 4000
    assert chosen == SPEC.settled(settings, *table)[1]
    longer, _ = SPEC.settled(AggregationSettings(time_budget=10 * seconds), *table)
    assert longer.n_inducing >= made.n_inducing


def test_maps_of_counts_take_fewer_rows_a_step_and_covariates_are_no_dimensions() -> None:
    counts = {"task": {"early": 3000, "late": 3000}, "exposure": {}, "geometry": {}}
    made, _ = SPEC.settled(AggregationSettings(), 6000, 5, counts)
    assert made.batch_size == 9000 // inside_each(made, 6000) // 2
    assert summed(made, counts)
    assert not summed(AggregationSettings(likelihood="gaussian"), counts)
    assert not summed(AggregationSettings(counts=AVERAGED), counts)
    many = AggregationSettings(polygon_points=2000)
    assert (inside_each(many, 100), inside_each(many, 10**6)) == (447, 36)
    assert inside_each(AggregationSettings(polygon_points=2000, counts=AVERAGED), 100) == 2000
    linear = {**counts, "covariate_income": {}, "poor": {}}
    for settings, more in ((AggregationSettings(covariates="poor"), linear), (made, counts)):
        assert sizes(settings, 6000, 5 + len(more) - len(counts), more)[2] == 2
    people = AggregationSettings(population_task="late")
    assert parts(people, 6000, counts).train == 2400


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [True, False])
def test_the_kernel_of_points_is_chosen_by_its_evidence_and_comes_back(smooth: bool) -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, 40)
    y = np.sin(x) if smooth else rng.normal(size=40).cumsum()
    table = pd.DataFrame({"task": "level", "x": x, "y": y})
    values: dict[str, Any] = {"time_budget": 30.0}
    run = scant.fit("aggregation", table, device="cpu", **values)
    events = list(run)
    end, model = events[-1], next(e for e in events if isinstance(e, Fitted))
    assert isinstance(end, Finished)
    kernel, why = run.study.metadata[CHOSEN]["kernel"]
    assert kernel in (TRIED[:2] if smooth else TRIED[2:])
    assert all(name in why for name in TRIED)
    back = restore("aggregation", values, model.blob, "cpu")
    assert back.settings.kernel == kernel
    assert np.array_equal(back.predict(table)["mean"], run.study.predict(table)["mean"])


@pytest.mark.slow
def test_boxes_keep_the_kernel_whose_averages_are_exact() -> None:
    x = np.arange(30.0)
    table = pd.DataFrame({"task": "a", "x_lo": x, "x_hi": x + 1, "y": np.sin(x / 3)})
    run = scant.fit("aggregation", table, device="cpu", time_budget=5.0)
    *_, end = run
    assert run.study.settings.kernel == "eq"
    assert AUTO not in {run.study.settings.n_inducing, run.study.settings.max_steps}
    assert end.state.value != "diverged"


@pytest.mark.slow
def test_of_many_rows_some_tell_the_hyperparameters_and_all_the_posterior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("MOST_EXACT", 60), ("MOST_LEARNED", 40)):
        monkeypatch.setattr(inference, name, value)
    x = np.linspace(0, 20, 120)
    task = np.where(np.arange(120) % 12, "many", "few")
    table = pd.DataFrame({"task": task, "x": x, "y": np.sin(x)})
    run = scant.fit("aggregation", table, device="cpu", time_budget=4.0, scarce="many")
    *_, end = run
    assert any("learned from 41 of these rows" in note for note in run.study.notes)
    model = run.study.model
    assert len(model.y) == len(run.study.data.train.data.y) == end.report.arrays["check"].shape[1]
    back, (tensors, meta) = type(run.study), run.study.fitted()
    restored = back.restore(run.study.settings, tensors, meta, torch.device("cpu"))
    assert np.array_equal(restored.predict(table)["std"], run.study.predict(table)["std"])
