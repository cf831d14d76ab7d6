"""How few labels will do, when steps come to rest; survival against figures that are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from scant.metrics import concordance
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.entry import ENTRY
from scant.studies.multiview.metadata import blocks, stops
from scant.studies.multiview.models import rests
from scant.studies.multiview.scarcity import drawn
from scant.studies.multiview.settings import FIXED, MultiviewSettings
from scant.studies.multiview.simulate.cell_events import candidates
from scant.studies.multiview.study import Study
from scant.studies.multiview.survival import (
    Patients,
    calibrated,
    curves,
    kaplan_meier,
    log_rank,
    patients,
)
from tests.engine.studies.studying import run


def seen(
    group: list[int], task: str = "classification", patient: list[int] | None = None
) -> MultiviewData:
    n = len(group)
    return MultiviewData(
        task=task,
        names=["v"],
        features=["v.a"],
        classes=["other", "event"],
        patients=["p"] * n,
        groups=["g"] * n,
        view=np.zeros(1, dtype=np.int64),
        x=np.zeros((n, 1)),
        target=np.ones(n),
        event=np.ones(n, dtype=bool),
        patient=np.array(patient or [0] * n),
        group=np.array(group),
    )


@pytest.fixture(scope="module")
def fitted() -> Study:
    values = MultiviewSettings(
        **FIXED
        | {"training_share": 0.5, "max_steps": 25, "n_inducing": 8, "baselines": False}
        | {"repeats": 1, "views": "intensity,gradient"}
    )
    study = Study(values, candidates(sequences=6, each=40), torch.device("cpu"))
    run(study)
    return study


def test_labels_come_in_groups_or_patients_or_rows() -> None:
    rows = np.arange(60)
    films = [i // 20 for i in range(60)]
    assert stops(seen(films), rows) == ("groups", [1, 2, 3])
    people = seen(films, "survival", films)
    assert blocks(people, rows)[0] == "patients"
    name, counts = stops(seen([0] * 320), np.arange(320))
    assert stops(seen(list(range(320))), np.arange(320)) == (name, counts)
    assert (name, counts) == ("rows", [20, 40, 80, 160, 320])


@pytest.mark.slow
def test_the_curve_learns_from_fewer_films_and_ends_at_the_runs_own(fitted: Study) -> None:
    assert fitted.metadata["counts"] == [1, 2, 3]
    told = fitted.explore("scarcity", n=1)
    assert {s.name for s in ENTRY.explore["scarcity"]} == set(told)
    assert told["rows"].tolist() == [40]
    assert told["scores"].shape == (3,)
    assert np.array_equal(fitted.explore("scarcity", n=1)["scores"], told["scores"])
    once = [drawn(fitted.data, 1, draw) for draw in range(8)]
    assert len({tuple(rows) for rows in once}) == 3  # each film is drawn
    assert np.isin(once[0], drawn(fitted.data, 2, 0)).all()
    whole = fitted.explore("scarcity", n=3)
    assert whole["rows"].tolist() == [len(fitted.data.train)]


@pytest.mark.parametrize(
    ("name", "changed", "at_rest"),
    [
        ("dfgp", {}, True),
        ("dfgp", {"rate_falls": False}, False),
        ("dfgp", {"adam_steps": 50, "bound": "closed"}, False),  # L-BFGS goes on
        ("dfgp", {"adam_steps": 50, "bound": "stochastic"}, True),
        ("sgp", {"adam_steps": 50}, True),
        ("student-t", {}, False),
    ],
)
def test_steps_come_to_rest_where_adam_takes_the_last(
    name: str, changed: dict[str, object], at_rest: bool
) -> None:
    assert rests(MultiviewSettings(**FIXED | changed), name) is at_rest


def test_survival_is_calibrated_where_times_are_drawn_from_what_is_predicted() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(1, 1, 400), rng.uniform(0.3, 1, 400)
    time = np.exp(mean + std * rng.normal(size=400))
    end = np.exp(rng.normal(2, 1, 400))  # when each was last seen

    def told(mean: np.ndarray, std: np.ndarray) -> float:
        return calibrated(Patients(np.arange(400), np.minimum(time, end), time <= end, mean, std))

    assert told(mean, std) > 0.05
    assert told(mean, 3 * std) < 1e-3  # too unsure
    assert told(mean + 0.5, std) < 1e-3  # too long
    assert np.isnan(
        calibrated(Patients(np.arange(2), np.ones(2), np.zeros(2, bool), mean[:2], std[:2]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dfgp", "sgp"])
def test_a_kept_run_comes_back_whatever_is_now_meant_by_no_number(model: str) -> None:
    device = torch.device("cpu")
    table = candidates(sequences=4, each=20)
    values = {"model": model, "max_steps": 2, "baselines": False, "repeats": 1, "views": "change"}
    values |= {"neurons": 0, "n_components": 0, "restarts": 1}
    study = Study(MultiviewSettings(**values, n_inducing=9), table, device)
    run(study)
    back = Study.restore(MultiviewSettings(**values), *study.fitted(), device)
    x = study.data.observed.x[study.data.test]
    np.testing.assert_allclose(back.present.ask(x)[0], study.present.ask(x)[0])


def test_the_rate_falls_to_a_hundredth(fitted: Study) -> None:
    rates = []
    fitted.start_restart(0, 0, None)
    trainer = fitted.trainer
    for _ in range(25):
        fitted.step()
        rates.append(trainer._first.param_groups[0]["lr"])  # type: ignore[attr-defined]
    assert rates[0] == 0.05
    assert (np.diff(rates) < 0).all()
    assert rates[-1] < 0.005
    assert fitted.scheduled


# Weeks of remission of 42 leukaemia patients (Freireich et al. 1963), as textbooks carry them.
DRUG = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [0, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def cohort(time: list[int], event: list[int], predicted: list[int]) -> Patients:
    n = len(time)
    return Patients(
        np.arange(n),
        np.exp(np.log(np.array(time, float))),  # so that ties with predictions stay ties
        np.array(event, bool),
        np.log(np.array(predicted, float)),
        np.full(n, 0.5),
    )


def test_kaplan_meier_is_the_textbooks() -> None:
    at = np.array([0.0, 5.9, 6, 7, 10, 13, 16, 22, 23, 40])
    result = kaplan_meier(np.array(DRUG, float), np.array(RELAPSED, bool), at)
    assert result[0] == pytest.approx(
        [1, 1, 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448, 0.448], abs=6e-4
    )
    assert (result[1] <= result[0]).all()
    assert (result[0] <= result[2]).all()
    assert result[:, 2] == pytest.approx([0.857, 0.620, 0.952], abs=2e-3)  # log(-log) limits
    assert np.isfinite(result).all()


def test_curves_of_nobody_and_of_all() -> None:
    time, grid = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 3.5])
    assert (kaplan_meier(time, np.zeros(3, bool), grid) == 1).all()
    whole = kaplan_meier(time, np.ones(3, bool), grid)
    assert whole[0].tolist() == pytest.approx([1, 2 / 3, 0])
    assert np.isfinite(whole).all()
    empty = cohort([], [], [])
    assert curves(empty)["km_time"].shape == (0,)


def test_log_rank_is_the_textbooks() -> None:
    assert log_rank(cohort(DRUG, RELAPSED, PLACEBO)) == pytest.approx(4.17e-5, rel=0.01)
    assert log_rank(cohort(PLACEBO, [1] * 21, PLACEBO)) == pytest.approx(1.0)
    assert np.isnan(log_rank(cohort(DRUG, [0] * 21, PLACEBO)))


def test_concordance_counts_pairs_of_known_order() -> None:
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    assert concordance(time, event, time) == 1
    assert concordance(time, event, -time) == 0
    assert concordance(time, event, np.zeros(4)) == 0.5
    # Pairs: 1 before 2, 3 and 4; 3 before 4. The second was censored before the others ended.
    assert concordance(time, event, np.array([2.0, 1.0, 3.0, 4.0])) == pytest.approx(3 / 4)
    assert np.isnan(concordance(time, np.zeros(4, bool), time))


def test_expected_survival_knows_that_predictions_are_uncertain() -> None:
    """Patients who are all predicted the same: the curve of points falls at once, not this one."""
    result = curves(cohort([5, 10, 20, 40], [1, 1, 1, 1], [14, 14, 14, 14]))
    at = np.searchsorted(result["km_time"], [10, 20])
    assert result["km_predicted"][at].tolist() == [1, 0]
    assert 0.5 < result["km_expected"][at[0]] < 1
    assert 0 < result["km_expected"][at[1]] < 0.5


def test_rows_of_a_patient_are_averaged_and_not_taken_for_independent() -> None:
    observed = SimpleNamespace(
        patient=np.array([2, 0, 2, 2, 0]),
        target=np.array([9.0, 4.0, 9.0, 9.0, 4.0]),
        event=np.array([True, False, True, True, False]),
    )
    rows = np.array([0, 2, 4])
    result = patients.__wrapped__(  # the table is only asked for these columns
        observed, rows, np.array([1.0, 3.0, 5.0]), np.array([0.2, 0.4, 0.1])
    )
    assert result.number.tolist() == [2, 0]
    assert result.time.tolist() == [9, 4]
    assert result.event.tolist() == [True, False]
    assert result.mean.tolist() == [2, 5]
    assert result.std == pytest.approx(np.sqrt([0.3, 0.1]))
