"""Survival curves, the log-rank test and concordance against figures that are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scant.metrics import concordance
from scant.studies.multiview.survival import (
    Patients,
    curves,
    kaplan_meier,
    log_rank,
    patients,
)

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
