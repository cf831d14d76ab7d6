"""Models of gaps are made within the time budget: the search leaves them what the table needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.deadline import Deadline
from scant.events import Report
from scant.runs.limits import Size, cost_of
from scant.studies import entry
from scant.studies.auto import TRAINING_SHARE
from scant.studies.protocol import blob
from scant.studies.redshift import beside, gap_patterns, gaps
from scant.studies.redshift.beside import LEARNED
from scant.studies.redshift.capacity import (
    BESIDE,
    BESIDE_ROW,
    GAP_WEIGHT,
    GAPS_SHARE,
    LEAST_GROWTH,
    NEAREST_ROW,
    gap_time,
)
from scant.studies.redshift.gap_fit import MissingPatternModel, PatternFitter
from scant.studies.redshift.members import QUICKEST, EnsembleMember
from scant.studies.redshift.study import Study
from scant.training.api import fit, restore
from scant.training.loop import train

BANDS = ["u", "g", "r", "i"]
BUDGET, UNIT = 60.0, 15.0  # seconds of a fit, and of a model of a gap


class Clock:
    """A clock that only models of gaps move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def galaxies(n: int, *lacking: tuple[list[int], str]) -> pd.DataFrame:
    """Magnitudes, of which some rows in ten lack some bands."""
    generator = np.random.default_rng(3)
    z, size = generator.uniform(0.1, 1.0, n), 18 + 0.7 * generator.normal(size=n)
    table = pd.DataFrame({"z": z})
    for k, band in enumerate(BANDS):
        table[band] = size - (1.5 - 0.4 * k) * np.sin(4 * z + k) + 0.02 * generator.normal(size=n)
    for places, bands in lacking:
        table.loc[np.isin(np.arange(n) % 10, places), list(bands)] = np.nan
    return table


def study(table: pd.DataFrame, deadline: Deadline | None = None, **values: Any) -> Study:
    values = {"log_target": "no", "robust": "no", "time_budget": BUDGET, "restarts": 1} | values
    settings = entry("redshift").settings(**values, n_basis=5, covariance="GL", max_steps=3)
    made = Study(settings, table, torch.device("cpu"))
    made.deadline = deadline or Deadline(BUDGET, Clock())
    return made


@pytest.mark.parametrize(("gap_seconds", "count"), [(180.0, 2), (25.0, 1)])
def test_gaps_take_no_more_than_their_time(
    gap_seconds: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fitted = Clock(), PatternFitter.fit

    def slow(*args: Any) -> MissingPatternModel:
        clock.now += UNIT
        return fitted(*args)

    monkeypatch.setattr(PatternFitter, "fit", slow)
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape in QUICKEST)
    monkeypatch.setattr("scant.studies.redshift.study.write_report", lambda *args: Report())
    table = galaxies(240, ([0, 1], "u"), ([2], "ri"))
    made = study(table, gap_seconds=gap_seconds, validation_share=0.2)
    list(train(made, clock=clock, budget=BUDGET))
    assert clock.now == count * UNIT < min(gap_seconds, BUDGET)
    patterns = made.posterior.gaps.models
    lacking = [[band for band, there in zip(BANDS, kept) if not there] for kept in patterns]
    assert lacking == [["u"], ["r", "i"]][:count]  # those that the table has


def test_gaps_are_those_of_the_table_as_its_test_rows_have_them_too() -> None:
    table = galaxies(400, ([0, 1], "u"), ([2], "gr"))
    table["split"] = np.where(table["g"].isna(), "test", "train")
    patterns = study(table).data.gap_patterns
    lacking = [tuple(np.flatnonzero(~np.array(kept))) for kept in patterns.measured]
    assert lacking == [(0,), (1, 2)]  # the second of test rows alone


def test_the_search_leaves_time_to_gaps_with_rows_enough_and_only_to_these() -> None:
    table = galaxies(400, ([0, 1], "u"))
    one = study(table).search_share
    both = study(galaxies(400, ([0, 1], "u"), ([2], "ri"))).search_share
    assert TRAINING_SHARE - 0.3 < both < one < TRAINING_SHARE
    assert one - both == pytest.approx(TRAINING_SHARE - one, rel=0.05)
    few = study(galaxies(400, ([0], "u")), time_budget=4.0)  # a tenth of the rows
    assert few.search_share == pytest.approx(TRAINING_SHARE - GAP_WEIGHT * 0.1)
    most = study(galaxies(400, ([*range(5)], "u")), time_budget=4.0)
    assert most.search_share == pytest.approx(TRAINING_SHARE - GAPS_SHARE)
    for other in (
        study(galaxies(400)),  # other tables may have gaps, this one has none
        study(galaxies(90, ([0, 1], "u"))),  # too few rows
        study(table, missing="integrate"),
        study(table, gap_seconds=0.0),
        study(table, Deadline()),  # no end of the fit
    ):
        assert other.search_share == TRAINING_SHARE


def test_a_gap_that_too_few_rows_can_tell_gets_no_time() -> None:
    table = galaxies(400)
    for k, band in enumerate(BANDS[1:]):  # only u is there in most rows
        table.loc[np.arange(400) % 4 != k, band] = np.nan
    made = study(table, features="as given", incomplete="use")
    own = gap_patterns.incomplete_patterns(made.features, made.features.inputs(made.data.learn))
    assert len(own) == len(BANDS)
    assert made.data.gap_patterns.measured == [(True, False, False, False)]  # u alone


def test_every_gap_gets_a_model_before_any_gets_a_thorough_one() -> None:
    few, some, many = (gap_time(60.0, n, 8000) for n in (5, 15, 60))
    assert few.n_models == few.with_nearest == 5
    assert some.n_models == 15 > some.with_nearest > 0
    assert many.n_models < 60
    assert many.with_nearest == 0
    assert few.growth > some.growth == pytest.approx(LEAST_GROWTH, abs=0.3)
    assert gap_time(1.0, 5, 8000).n_models == gap_time(60.0, 0, 0).n_models == 0
    for n, of in ((5, few), (15, some), (60, many)):
        each = BESIDE + BESIDE_ROW * 8000 + of.growth
        assert of.n_models * each + of.with_nearest * NEAREST_ROW * 8000 < 60.0 + 1e-9, n


def test_tables_to_predict_have_the_whole_time_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape in QUICKEST)
    run = fit("redshift", galaxies(120), target="z", refit="everything", time_budget=3.0, own=False)
    list(run)
    assert run.study.posterior.settings.time_budget == 3.0
    kept = restore("redshift", run.study.settings.values(), blob(*run.study.fitted()), "cpu")
    assert kept.posterior.settings.time_budget == 3.0


def test_the_cost_of_a_run_is_within_its_budget() -> None:
    spec = entry("redshift")
    names = {name: {} for name in ("z", *(f"mag_{band}" for band in "ugriz"))}
    for budget in (5.0, 60.0):
        cost = cost_of(spec, spec.settings(time_budget=budget), Size(2000, len(names), names), True)
        assert cost is not None
        assert 0 < cost.seconds <= budget


@pytest.mark.parametrize(("gap_seconds", "learned"), [(180.0, {"u", "ri"}), (1.0, set())])
def test_what_a_table_to_predict_lacks_is_learned_when_it_comes(
    gap_seconds: float, learned: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape in QUICKEST)
    monkeypatch.setattr("scant.studies.redshift.study.write_report", lambda *args: Report())
    made = study(galaxies(240), gap_seconds=gap_seconds, validation_share=0.2)
    list(train(made, clock=Clock(), budget=BUDGET))
    assert not made.posterior.gaps.models  # the table has no gaps
    kept = blob(*made.fitted())
    query = galaxies(60, ([0, 1], "u"), ([2], "ri")).drop(columns="z")
    told = made.predict(query)
    patterns = made.posterior.gaps.models
    lacking = [[band for band, there in zip(BANDS, kept) if not there] for kept in patterns]
    assert {"".join(bands) for bands in lacking} == learned
    again = restore("redshift", made.settings.values(), kept, "cpu")
    pd.testing.assert_frame_equal(again.predict(query[::-1])[::-1], told)
    if learned:
        gappy = query.isna().any(axis=1).to_numpy()
        integral = restore("redshift", {**made.settings.values(), "gap_seconds": 0.0}, kept, "cpu")
        same = np.isclose(integral.predict(query)["mean"], told["mean"], rtol=1e-12)
        assert (same == ~gappy).all()


def test_a_table_to_predict_gets_no_more_models_than_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape in QUICKEST)
    monkeypatch.setattr("scant.studies.redshift.study.write_report", lambda *args: Report())
    made = study(galaxies(240), validation_share=0.2)
    list(train(made, clock=Clock(), budget=BUDGET))
    two, one = galaxies(60, ([0, 1], "u"), ([2], "ri")), galaxies(60, ([0], "g"), ([1], "gr"))
    made.predict(two.drop(columns="z"))
    assert len(made.posterior.gaps.models) == 2
    monkeypatch.setattr(gaps, "gaps_when_asked", lambda *args: gap_time(2.0, 5, 240))
    assert gap_time(2.0, 5, 240).n_models == 1
    made.predict(one.drop(columns="z"))  # two models are more than there is time for
    assert len(made.posterior.gaps.models) == 2


def test_scores_and_answers_with_bands_missing_are_of_the_models_that_predict_learns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(EnsembleMember, "supports", lambda member, *_: member.shape in QUICKEST)
    monkeypatch.setattr(beside, "learners", lambda seed: [])  # rivals take long
    made = study(galaxies(300), validation_share=0.2)
    *_, end = train(made, clock=Clock(), budget=BUDGET)
    kept, held = blob(*made.fitted()), made.data.held
    assert not made.posterior.gaps.models  # those of the report are not stored
    counts, rmse, *_ = end.report.arrays["missing"]
    assert counts.tolist() == [0, 1, 2, 3]
    generator = np.random.default_rng(made.settings.seed)
    for count in range(len(counts)):
        off = beside.hide(generator, len(held), len(BANDS), count, 1)
        less = held.assign(**{band: held[band].mask(gone) for band, gone in zip(BANDS, off.T)})
        mean = restore("redshift", made.settings.values(), kept, "cpu").predict(less)["mean"]
        assert np.sqrt(np.mean((mean - held["z"]) ** 2)) == pytest.approx(rmse[count])
    told = made.explore("without", off=["g"])["z_mean"]
    assert not made.posterior.gaps.models  # nor do those of a page take the place of others
    np.testing.assert_allclose(told, made.predict(held.assign(g=np.nan))["mean"])
    assert LEARNED in end.report.notes
    assert any(
        "models of the remaining columns are trained" in limit for limit in end.report.limits
    )
