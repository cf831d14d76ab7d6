"""Models of redshift that grow: what stages there are, what one keeps, how a run goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import scant
from scant.events import Fitted, Note, Progress, State
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.training import GPzTrainer
from scant.studies import entry
from scant.studies.auto import CHOSEN
from scant.studies.redshift.capacity import (
    capacity,
    learned,
)
from scant.studies.redshift.capacity import test_rows as rows_to_hold_out
from scant.studies.redshift.colors import alike
from scant.studies.redshift.fold import Fold, Rows
from scant.studies.redshift.growth_budget import FREE, NOISY, TIED, GrowthBudget, Stage
from scant.studies.redshift.rescaling import noise_factor
from scant.studies.redshift.scales import scale_of, taming_of
from scant.studies.redshift.settings import SHAPES, RedshiftSettings
from scant.studies.redshift.shapes import shape_of, tie
from scant.studies.redshift.target import Target
from scant.training.api import Fit, restore
from tests.engine.studies.studying import resumed

QUICK = {"restarts": 2, "patience": 4}


def own_table(n: int = 90, seed: int = 0) -> pd.DataFrame:
    """A wave and a slope, in columns of different kinds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * [1, 20, 300]
    y = np.sin(2 * x[:, 0]) + 0.03 * x[:, 1] + rng.normal(0, 0.1, n)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y)


def begun(table: pd.DataFrame, **values: object) -> Fit:
    return scant.fit("redshift", table, device="cpu", target="y", own=False, **values)


@given(
    st.builds(
        GrowthBudget,
        rows=st.integers(30, 10**6),
        inputs=st.integers(1, 300),
        models=st.integers(1, 20),
        seconds=st.floats(1, 1e4),
        n_basis=st.sampled_from([0, 0, 7]),
        shape=st.sampled_from(["", "", *SHAPES]),
        heteroscedastic=st.booleans(),
    )
)
def test_every_stage_is_larger_or_freer_and_the_next_one_fits(budget: GrowthBudget) -> None:
    stages = list(budget.all())
    assert stages == list(budget.all())
    assert stages[0] == budget.first
    for one, other in pairwise(stages):
        finer = SHAPES.index(other.shape) > SHAPES.index(one.shape)
        assert finer or other.n_basis > one.n_basis or other.free > one.free
        assert budget.step_seconds(other) > 0
    for stage in stages:
        assert stage.n_basis <= (budget.n_basis or max(300, budget.rows // 12))
        assert budget.n_basis in (0, stage.n_basis)
        assert budget.heteroscedastic or stage.free != NOISY
    more = list(replace(budget, seconds=1e9).all())
    assert more[-1].n_basis >= stages[-1].n_basis
    assert len(more) > 1 or len(stages) == 1
    assert not budget.shape or more[-1].shape == budget.shape


def test_many_rows_start_free_and_few_start_tied() -> None:
    budget = GrowthBudget(rows=60, inputs=4, models=5, seconds=40.0)
    assert budget.first == Stage(60, "GL", TIED)
    assert replace(budget, rows=50_000).first == Stage(25, "GD", FREE)
    assert list(budget.after(Stage(60, "GD", TIED))) == [Stage(60, "GD", NOISY)]


@pytest.mark.parametrize(
    ("rows", "values", "expected"),
    [
        (1000, {}, 200),
        (5000, {}, 1000),
        (20_000, {}, 1000),
        (1_000_000, {}, 20_000),
        (20_000, {"test_share": 0.5}, 2500),
        (20_000, {"test_size": 0}, 4000),
        (20_000, {"test_size": 300}, 300),
    ],
)
def test_of_many_rows_a_smaller_share_is_held_out(
    rows: int, values: dict[str, float], expected: int
) -> None:
    settings = RedshiftSettings(**values)
    assert rows_to_hold_out(settings, rows) == expected
    assert sum(learned(settings, rows - expected)) == rows - expected


def test_restarts_and_steps_are_chosen_by_the_rows() -> None:
    settings = RedshiftSettings()
    few, many = (capacity(settings, n, 6, {}) for n in (100, 10**6))
    assert few["restarts"].value == 5
    assert many["restarts"].value == 1
    fixed = RedshiftSettings(n_basis=50, covariance="VD")
    steps = [capacity(fixed, n, 6, {})["max_steps"].value for n in (100, 10_000, 10**6)]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == 50
    cost = entry("redshift").estimate
    assert cost(settings, 100, 6, {})[0] < cost(settings, 10_000, 6, {})[0]


@pytest.fixture(scope="module")
def grown() -> tuple[Fit, list[object]]:
    run = begun(own_table(), **QUICK)
    return run, list(run)


@pytest.mark.slow
def test_an_own_table_is_learned_by_models_that_grow(grown: tuple[Fit, list[object]]) -> None:
    run, events = grown
    end = events[-1]
    assert end.state is State.CONVERGED
    assert "Growth has ended" in end.reason
    assert end.report.arrays["tried"].shape[1] == 5
    assert len(end.report.arrays["tried"]) >= 3
    found = run.study.metadata[CHOSEN]
    assert {"max_steps", "n_basis", "covariance", "features", "log_target", "robust"} == set(found)
    assert found["features"][0] == "as given"
    assert found["covariance"][0] != run.study.search.budget.first.shape
    assert found["covariance"][1].startswith("unseen rows were predicted better up to this, from ")
    assert any("n_basis" in note and "covariance" in note for note in end.report.notes)
    assert any("max_steps 3,000" in e.text for e in events if isinstance(e, Note))
    error = {m.name: m.value for m in end.report.metrics if m.method == "this run"}["RMSE"]
    assert error < 0.6 * run.study.data.held["y"].std()


def test_scores_never_fall_from_stage_to_stage_that_was_kept(
    grown: tuple[Fit, list[object]],
) -> None:
    steps = [e for e in grown[1] if isinstance(e, Progress)]
    tried = grown[1][-1].report.arrays["tried"]  # type: ignore[attr-defined]
    assert tried[:, 3].max() == pytest.approx(steps[-1].best)
    assert (np.diff(tried[:, 4]) > 0).all()


def test_what_was_found_comes_back_with_the_model(grown: tuple[Fit, list[object]]) -> None:
    run, events = grown
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    again = restore("redshift", run.study.settings.values(), blob, "cpu")
    assert again.settings.values()["n_basis"] == run.study.metadata[CHOSEN]["n_basis"][0]
    table = own_table(seed=1)
    pd.testing.assert_frame_equal(run.study.predict(table), again.predict(table))


@pytest.mark.slow
@pytest.mark.parametrize("step", [3, 17])
def test_a_run_that_grows_goes_on_where_it_was_paused(step: int) -> None:
    resumed(lambda: begun(own_table(), **QUICK).study, step)


@pytest.mark.slow
@pytest.mark.parametrize("values", [
    {"n_basis": 4}, {"covariance": "VL"}, {"combine": "best"}, {"heteroscedastic": False},
    {"joint_mean": False}, {"errors": "as noise", "n_basis": 3},
])  # fmt: skip
def test_part_of_the_sizes_may_be_the_users(values: dict[str, object]) -> None:
    run = begun(own_table(60), restarts=2, max_steps=12, patience=3, **values)
    *_, end = run
    assert end.state.usable
    found = run.study.metadata[CHOSEN]
    assert not set(values) & set(found)
    tried = end.report.arrays["tried"]
    assert "n_basis" not in values or set(tried[:, 0]) == {values["n_basis"]}


@pytest.mark.slow
def test_what_has_not_grown_is_told_as_the_first_one_tried() -> None:
    run = begun(own_table(60), restarts=2, max_steps=2)
    list(run)
    first, found = run.study.search.budget.first, run.study.metadata[CHOSEN]
    assert found["n_basis"] == [first.n_basis, "the first size tried"]
    assert found["covariance"] == [first.shape, "the first shape tried"]


@pytest.mark.slow
def test_groups_stay_together_while_models_grow() -> None:
    table = own_table(90).assign(group=np.repeat([f"g{i}" for i in range(18)], 5))
    run = begun(table, max_steps=2)
    list(run)
    learned = run.study.data.learn
    for k in range(5):
        train, validation = run.study.data.division(k)
        parts = (set(learned["group"].iloc[rows.numpy()]) for rows in (train, validation))
        assert not set.intersection(*parts)


@pytest.mark.parametrize("free", [TIED, NOISY, FREE])
def test_what_is_tied_stays_equal(free: int) -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(80, 3, generator=generator, dtype=torch.float64)
    y = torch.sin(2 * X[:, 0]) + 0.1 * torch.randn(80, generator=generator, dtype=torch.float64)
    model = GPz(3, 6, "GD")
    model.init_from_data(X, y, generator)
    tie(model, free)
    trainer = GPzTrainer(model, X, y)
    before = trainer.step()
    assert trainer.step() > before
    basis, slopes = model.log_alpha[:6], model.log_alpha[6:9]
    assert (free == FREE) != (bool((basis == basis[0]).all()) and bool((slopes == slopes[0]).all()))
    assert bool((model.v == 0).all()) == (free == TIED)
    assert shape_of(model) == "GD"


def test_noise_is_scaled_to_what_unseen_rows_show() -> None:
    generator = torch.Generator().manual_seed(0)
    y = 2 * torch.randn(4000, generator=generator, dtype=torch.float64)
    ones, zeros = torch.ones_like(y), torch.zeros_like(y)

    rows = Rows(ones[:, None], y, y, ones, None)
    every = torch.arange(4000)
    fold = Fold(rows, every, every, Target(0.0, 1.0, False))
    told = GPzPrediction(zeros, zeros, ones, zeros)
    assert noise_factor([fold], [told]) == pytest.approx(4, rel=0.1)


def test_the_logarithm_is_modeled_where_a_line_predicts_it_better() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    straight = x @ [1.0, 0.5] + 0.3 * rng.normal(size=120)
    assert scale_of(x, np.exp(straight)).value == "yes"
    assert scale_of(x, straight + 10).value == "no"
    assert scale_of(x, straight).value == "no"
    x[::4, 1] = np.nan
    assert scale_of(x, np.exp(straight)).value == "yes"
    for old, new in ((True, "yes"), ("false", "no"), ("auto", "auto")):
        assert RedshiftSettings.parse({"log_target": old}).values()["log_target"] == new


def test_wild_values_are_limited_unless_a_line_follows_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_t(1.5, size=(200, 1))
    tamed = np.sign(x) * np.log1p(np.abs(x))
    follows, ignores = 3 * x[:, 0] + rng.normal(size=200), tamed[:, 0] + 0.1 * rng.normal(size=200)
    assert taming_of(tamed, x, follows, log=False).value == "no"
    assert taming_of(tamed, x, ignores, log=False).value == "yes"
    assert taming_of(x, x, follows, log=False).value == "yes"


def test_of_products_a_gp_decides_on_logarithm_and_limits() -> None:
    x = np.exp(0.4 * np.random.default_rng(0).normal(size=(80, 2)))
    y = x[:, 0] * x[:, 1]
    inputs = (x - x.mean(0)) / x.std(0)
    assert scale_of(inputs, y).value == "no"
    assert taming_of(np.minimum(inputs, 1.0), inputs, y, log=False).value == "no"


def test_colors_are_of_columns_that_rise_and_fall_together() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(20, 1, 300)
    bands = pd.DataFrame({b: base + rng.normal(0, 0.4, 300) for b in "ugriz"})
    assert alike(bands)
    assert not alike(bands[["u", "g"]])
    assert not alike(bands.assign(r=rng.normal(20, 100, 300)))
    assert not alike(own_table()[["a", "b", "c"]])
    bands.loc[::3, "g"] = np.nan
    assert alike(bands)
