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

TIMES = 120  # of a curve


@dataclass(frozen=True)
class Patients:
    """Patients as a study knows and predicts them, in order of their first row.

    Attributes:
        number: Index into the table's patients.
        time: How long each is known to have lived.
        event: Whether he died then.
        mean: Predicted mean of the log time.
        std: Its predicted deviation.
    """

    number: Int[np.ndarray, " p"]
    time: Float[np.ndarray, " p"]
    event: Bool[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    std: Float[np.ndarray, " p"]

    def arrays(self) -> dict[str, np.ndarray]:
        """As the catalog names them."""
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
    """Averages over each patient's rows of the predicted log time (Kandemir 2015, section 5.2).

    The variance is averaged too and not divided by the rows: what a patient's tissue does not show
    of him, none of his rows does.

    Args:
        observed: The table.
        rows: Which of its rows are predicted.
        mean: Of the log time, at these rows.
        variance: Likewise, noise included.
    """
    number = np.array(list(dict.fromkeys(observed.patient[rows].tolist())), dtype=np.int64)
    place = {p: i for i, p in enumerate(number.tolist())}
    owner = np.array([place[p] for p in observed.patient[rows].tolist()], dtype=np.int64)
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
    """Survival curves of the truth, of the predicted times, and as the predictions expect them."""
    if not len(cohort.time):
        return no_curves()
    last = max(float(cohort.time.max()), float(np.exp(cohort.mean).max()))
    grid = np.linspace(0, 1.02 * last, TIMES)
    z = (np.log(np.maximum(grid, 1e-12))[:, None] - cohort.mean) / cohort.std
    own = np.ones(len(cohort.mean), dtype=bool)
    return {
        "km_time": grid,
        "km_true": kaplan_meier(cohort.time, cohort.event, grid),
        "km_predicted": kaplan_meier(np.exp(cohort.mean), own, grid)[0],
        "km_expected": norm.sf(z).mean(1),
    }


def no_curves() -> dict[str, np.ndarray]:
    """What stands in place of curves where no survival is learned."""
    return {
        "km_time": np.empty(0),
        "km_true": np.empty((3, 0)),
        "km_predicted": np.empty(0),
        "km_expected": np.empty(0),
    }


def nobody() -> dict[str, np.ndarray]:
    """What stands in place of patients likewise."""
    names = ("time", "event", "pred", "std", "low", "high")
    return {f"patient_{name}": np.empty(0) for name in names}


def kaplan_meier(
    time: Float[np.ndarray, " p"], event: Bool[np.ndarray, " p"], grid: Float[np.ndarray, " t"]
) -> Float[np.ndarray, "3 t"]:
    """The Kaplan-Meier estimate of survival beyond each time, and its 95% interval.

    The interval is that of log(-log S) (Greenwood); where nobody has died yet it is 1 to 1, and
    where everybody has it is kept as it last was.
    """
    if not event.any():
        return np.ones((3, len(grid)))
    result = ecdf(CensoredData.right_censored(time, ~event)).sf
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # undefined at 0 and 1, as said above
        ends = result.confidence_interval(0.95, method="log-log")
    rows = [result.probabilities]
    for end in (ends.low.probabilities, ends.high.probabilities):
        filled = np.array(end)
        filled[(result.probabilities >= 1) & np.isnan(filled)] = 1.0
        for i in np.flatnonzero(np.isnan(filled)):
            filled[i] = filled[i - 1] if i else result.probabilities[i]
        rows.append(filled)
    at = np.searchsorted(result.quantiles, grid, side="right")
    return np.stack([np.concatenate([[1.0], row])[at] for row in rows])


def log_rank(cohort: Patients) -> float:
    """p of the log-rank test that predicted times and the true ones, censored, are alike."""
    if not cohort.event.any():
        return float("nan")
    true = CensoredData.right_censored(cohort.time, ~cohort.event)
    return float(logrank(true, CensoredData(np.exp(cohort.mean))).pvalue)


def calibrated(cohort: Patients, bins: int = 5) -> float:
    """p of the test that predicted survival at the times of death is uniform (D-calibration).

    A patient last seen alive counts in the bins that his death may still fall into, each by its
    probability (Haider et al. 2020, Journal of Machine Learning Research 21:85). NaN where nobody
    died.

    Args:
        cohort: Patients, with the deviation of each one's log time.
        bins: Of the probability; the chi-square statistic has one degree of freedom fewer.
    """
    if not cohort.event.any():
        return float("nan")
    z = (np.log(cohort.time) - cohort.mean) / cohort.std
    s = np.clip(norm.sf(z), 1e-12, 1.0)
    low, width = np.arange(bins) / bins, 1 / bins
    inside = np.clip(s[:, None] - low, 0.0, width)  # of each bin, what is below s
    died = (s[:, None] > low) & (s[:, None] <= low + width + 1e-12)
    share = np.where(cohort.event[:, None], died / died.sum(1, keepdims=True), inside / s[:, None])
    expected = len(s) / bins
    return float(chi2.sf(((share.sum(0) - expected) ** 2 / expected).sum(), bins - 1))
