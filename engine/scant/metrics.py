"""Measures of predictions and of their uncertainty that scikit-learn and GPyTorch lack.

All take arrays of one entry a row, in the target's own unit, and are plain NumPy.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.special import ndtr, ndtri  # scipy.stats takes a worker three quarters of a second

Rows = Float[ndarray, " n"]
LEVELS = (0.5, 0.8, 0.95)


def rmse(y: Rows, mean: Rows) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def log_density(y: Rows, mean: Rows, variance: Rows) -> Rows:
    """Log densities of a Gaussian prediction, in nats."""
    return -0.5 * (y - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)


def mean_log_likelihood(y: Rows, mean: Rows, variance: Rows) -> float:
    """Mean log density of a Gaussian prediction (Almosallam 2017, Table 6.6)."""
    return float(np.mean(log_density(y, mean, variance)))


def fraction_within(y: Rows, mean: Rows, epsilon: float) -> float:
    """F_epsilon: per cent of rows with |z - z_hat| / (1 + z) below epsilon (Table 6.6)."""
    return float(100 * np.mean(np.abs(normalized_error(y, mean)) < epsilon))


def normalized_error(y: Rows, mean: Rows) -> Rows:
    """(z_hat - z) / (1 + z): the error of a redshift on the scale of its meaning."""
    return (mean - y) / (1 + y)


def sigma_mad(error: Rows) -> float:
    """1.4826 times the median absolute deviation: the spread that outliers do not move."""
    return float(1.4826 * np.median(np.abs(error - np.median(error))))


def sigma_iqr(error: Rows) -> float:
    """Interquartile range over 1.349, that of a standard Gaussian (as RAIL: PointSigmaIQR)."""
    low, high = np.percentile(error, [25, 75])
    return float((high - low) / 1.349)


def outlier_rate(error: Rows) -> float:
    """Share of normalized errors beyond max(0.06, 3 sigma_IQR) (LSST science requirements)."""
    return float(np.mean(np.abs(error) > max(0.06, 3 * sigma_iqr(error))))


def far_share(error: Rows, beyond: float | None = None) -> float:
    """Share of normalized errors beyond a bound; None: three deviations by the quartiles."""
    return float(np.mean(np.abs(error) > (3 * sigma_iqr(error) if beyond is None else beyond)))


def pit(y: Rows, mean: Rows, variance: Rows) -> Rows:
    """Probability integral transform of the truth: uniform where the prediction is calibrated."""
    return ndtr((y - mean) / np.sqrt(variance))


def coverage(
    y: Rows, mean: Rows, variance: Rows, levels: tuple[float, ...] = LEVELS
) -> Float[ndarray, "2 c"]:
    """Nominal levels of the central intervals, and the shares of rows that they cover."""
    away = np.abs(y - mean) / np.sqrt(variance)
    held = [float(np.mean(away <= ndtri(0.5 + level / 2))) for level in levels]
    return np.array([levels, held])


def redshift_bins(y: Rows, mean: Rows, count: int = 10) -> Float[ndarray, "6 q"]:
    """Point metrics by bin of true redshift, for bins of equal width with twenty rows or more.

    Rows of the answer: low edge, high edge, bias (mean normalized error), sigma_MAD, outlier rate,
    number of rows.
    """
    found = []
    for a, b in bins_of(y, count):
        error = normalized_error(y[(y >= a) & (y < b)], mean[(y >= a) & (y < b)])
        found.append([a, b, error.mean(), sigma_mad(error), outlier_rate(error), len(error)])
    return np.array(found).reshape(-1, 6).T


def bins_of(y: Rows, count: int = 10) -> list[tuple[float, float]]:
    """Bins of equal width between the 0.5th and 99.5th per cent that hold twenty rows or more."""
    low, high = np.percentile(y, [0.5, 99.5])
    edges = np.linspace(low, high, count + 1)
    return [(a, b) for a, b in pairwise(edges.tolist()) if ((y >= a) & (y < b)).sum() >= 20]


def by_confidence(
    y: Rows, mean: Rows, variance: Rows, density: Rows, shares: Float[ndarray, " p"]
) -> Float[ndarray, "6 p"]:
    """Metrics of the most confident share of rows (Fig. 6.14); `density` is the log density of y.

    Rows of the answer: share kept, RMSE, mean log-likelihood, F_0.15, F_0.05, bias.
    """
    order = np.argsort(variance, kind="stable")
    found = []
    for share in shares:
        kept = order[: max(1, round(share * len(order)))]
        a, b = y[kept], mean[kept]
        found.append(
            [
                share,
                rmse(a, b),
                float(density[kept].mean()),
                fraction_within(a, b, 0.15),
                fraction_within(a, b, 0.05),
                float(normalized_error(a, b).mean()),
            ]
        )
    return np.array(found).T


def smse(y: Rows, mean: Rows) -> float:
    """Mean squared error over the variance of the rows: 1 is what their mean would score."""
    return float(np.mean((y - mean) ** 2) / np.var(y))


def snlp(y: Rows, log_density: Rows, reference: Float[ndarray, " r"]) -> float:
    """Mean negative log density less that of a Gaussian with mean and variance of `reference`.

    Standardized negative log probability density (Rasmussen & Williams 2006, section 2.5): 0 is
    what the reference's own mean and variance would score, less is better. Nats a row.
    """
    mean = np.full(len(y), reference.mean())
    variance = np.full(len(y), max(float(reference.var()), 1e-24))
    return mean_log_likelihood(y, mean, variance) - float(np.mean(log_density))


def nmse(y: Rows, mean: Rows) -> float:
    """Normalized mean squared error (Ma 2023, 5.43): the same measure as `smse`, by its name."""
    return smse(y, mean)


def nlpd(y: Rows, mean: Rows, variance: Rows) -> float:
    """Negative log predictive density of Gaussian predictions, nats a row (Ma 2023, 5.44)."""
    return -mean_log_likelihood(y, mean, variance)


def concordance(time: Rows, event: Bool[ndarray, " n"], predicted: Rows) -> float:
    """Harrell's C: of the pairs of rows whose order is known, the share told in that order.

    A pair counts where the earlier time is no bound; equal predictions count half. NaN without one.
    """
    sooner = (time[:, None] < time[None]) & event[:, None]
    gap = predicted[None] - predicted[:, None]
    right = (gap > 0) + 0.5 * (gap == 0)
    pairs = int(sooner.sum())
    return float(right[sooner].sum() / pairs) if pairs else float("nan")


def reliability(confidence: Rows, right: Rows, bins: int = 10) -> Float[ndarray, "3 b"]:
    """Of the rows in each bin of confidence (equal widths, empty ones left out).

    Args:
        confidence: Probability of the class that is predicted.
        right: 1 where that is the true one, else 0.
        bins: How many.

    Returns:
        Mean confidence, accuracy and number of rows of each bin.
    """
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins).astype(float)
    sums = [np.bincount(place, weights, bins) for weights in (confidence, right)]
    kept = count > 0
    return np.array([*(s[kept] / count[kept] for s in sums), count[kept]])


def expected_calibration_error(confidence: Rows, right: Rows, bins: int = 10) -> float:
    """Mean distance of confidence and accuracy over bins (Naeini, Cooper & Hauskrecht 2015)."""
    sure, hit, count = reliability(confidence, right, bins)
    return float((count * np.abs(sure - hit)).sum() / count.sum())
