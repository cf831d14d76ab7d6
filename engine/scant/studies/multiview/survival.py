"""Survival of patients: predictions averaged over their rows, curves, concordance.

Kaplan-Meier curves, their intervals and the log-rank test are SciPy's.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import CensoredData, chi2, ecdf, logrank, norm

from scant import metrics
from scant.studies.multiview.data import MultiviewData

TIMES = 120  # points of a curve


@dataclass(frozen=True)
class Patients:
    """Observed and predicted times of patients, in order of their first row.

    Attributes:
        number: Index into the table's patients.
        time: Observed time.
        event: True for a death, False if censored.
        mean: Predicted mean of the log time.
        std: Predicted standard deviation of the log time.
    """

    number: Int[np.ndarray, " p"]
    time: Float[np.ndarray, " p"]
    event: Bool[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    std: Float[np.ndarray, " p"]

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays by catalog name."""
        return {
            "patient_time": self.time,
            "patient_event": self.event.astype(np.int64),
            "patient_pred": np.exp(self.mean),
            "patient_std": self.std,
            "patient_low": np.exp(self.mean - metrics.Z_95 * self.std),
            "patient_high": np.exp(self.mean + metrics.Z_95 * self.std),
        }


def patients(
    observed: MultiviewData,
    rows: Int[np.ndarray, " n"],
    mean: Float[np.ndarray, " n"],
    variance: Float[np.ndarray, " n"],
) -> Patients:
    """Average the predicted log time over each patient's rows (Kandemir 2015, section 5.2).

    The variance is averaged and not divided by the number of rows: a patient's rows share the same
    unobserved causes.

    Args:
        observed: The table.
        rows: Predicted rows of the table.
        mean: Mean of the log time at these rows.
        variance: Variance of the log time, including noise.
    """
    number = np.array(list(dict.fromkeys(observed.patient[rows].tolist())), dtype=np.int64)
    index_of = {p: i for i, p in enumerate(number.tolist())}
    owner = np.array([index_of[p] for p in observed.patient[rows].tolist()], dtype=np.int64)
    count = np.bincount(owner, minlength=len(number))
    first = np.unique(owner, return_index=True)[1] if len(rows) else owner
    return Patients(
        number=number,
        time=observed.target[rows[first]],
        event=observed.event[rows[first]],
        mean=np.bincount(owner, mean, len(number)) / count,
        std=np.sqrt(np.bincount(owner, variance, len(number)) / count),
    )


def curves(cohort: Patients) -> dict[str, np.ndarray]:
    """Survival curves of observed and predicted times, and the mean survival function."""
    if not len(cohort.time):
        return no_curves()
    last = max(float(cohort.time.max()), float(np.exp(cohort.mean).max()))
    grid = np.linspace(0, 1.02 * last, TIMES)
    z = (np.log(np.maximum(grid, 1e-12))[:, None] - cohort.mean) / cohort.std
    all_died = np.ones(len(cohort.mean), dtype=bool)
    return {
        "km_time": grid,
        "km_true": kaplan_meier(cohort.time, cohort.event, grid),
        "km_predicted": kaplan_meier(np.exp(cohort.mean), all_died, grid)[0],
        "km_expected": norm.sf(z).mean(1),
    }


def no_curves() -> dict[str, np.ndarray]:
    """Empty arrays in place of curves, for other tasks."""
    return {
        "km_time": np.empty(0),
        "km_true": np.empty((3, 0)),
        "km_predicted": np.empty(0),
        "km_expected": np.empty(0),
    }


def nobody() -> dict[str, np.ndarray]:
    """Empty arrays in place of patients, for other tasks."""
    names = ("time", "event", "pred", "std", "low", "high")
    return {f"patient_{name}": np.empty(0) for name in names}


def kaplan_meier(
    time: Float[np.ndarray, " p"], event: Bool[np.ndarray, " p"], grid: Float[np.ndarray, " t"]
) -> Float[np.ndarray, "3 t"]:
    """Kaplan-Meier estimate of survival beyond each time, and its 95% interval.

    The interval is that of log(-log S) (Greenwood). It is 1 to 1 before the first death, and
    constant after the last one if everybody has died.
    """
    if not event.any():
        return np.ones((3, len(grid)))
    result = ecdf(CensoredData.right_censored(time, ~event)).sf
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # undefined at 0 and 1, see above
        limits = result.confidence_interval(0.95, method="log-log")
    rows = [result.probabilities]
    for end in (limits.low.probabilities, limits.high.probabilities):
        filled = np.array(end)
        filled[(result.probabilities >= 1) & np.isnan(filled)] = 1.0
        for i in np.flatnonzero(np.isnan(filled)):
            filled[i] = filled[i - 1] if i else result.probabilities[i]
        rows.append(filled)
    index = np.searchsorted(result.quantiles, grid, side="right")
    return np.stack([np.concatenate([[1.0], row])[index] for row in rows])


def log_rank(cohort: Patients) -> float:
    """p of the log-rank test for equal distributions of predicted and observed times."""
    if not cohort.event.any():
        return float("nan")
    true = CensoredData.right_censored(cohort.time, ~cohort.event)
    return float(logrank(true, CensoredData(np.exp(cohort.mean))).pvalue)


def calibrated(cohort: Patients, bins: int = 5) -> float:
    """p of the test that predicted survival at the times of death is uniform (D-calibration).

    A censored patient counts in all bins of possible later deaths, in proportion to their
    probability (Haider et al. 2020, Journal of Machine Learning Research 21:85). NaN if nobody
    died.

    Args:
        cohort: Patients.
        bins: Number of bins; the chi-square statistic has one degree of freedom fewer.
    """
    if not cohort.event.any():
        return float("nan")
    z = (np.log(cohort.time) - cohort.mean) / cohort.std
    s = np.clip(norm.sf(z), 1e-12, 1.0)
    low, width = np.arange(bins) / bins, 1 / bins
    below = np.clip(s[:, None] - low, 0.0, width)  # part of each bin below s
    died = (s[:, None] > low) & (s[:, None] <= low + width + 1e-12)
    share = np.where(cohort.event[:, None], died / died.sum(1, keepdims=True), below / s[:, None])
    expected = len(s) / bins
    return float(chi2.sf(((share.sum(0) - expected) ** 2 / expected).sum(), bins - 1))
