"""Metrics of predictions and their uncertainty that are not in scikit-learn and GPyTorch.

Functions take NumPy arrays with one entry per row in the unit of the target.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.special import ndtr, ndtri  # importing scipy.stats takes 0.75 s

Rows = Float[ndarray, " n"]
LEVELS = (0.5, 0.8, 0.95)
Z_95 = float(ndtri(0.975))  # half-width of the central 95% interval in standard deviations


def rmse(y: Rows, mean: Rows) -> float:
    """Compute the root mean squared error."""
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def log_density(y: Rows, mean: Rows, variance: Rows) -> Rows:
    """Compute Gaussian log densities in nats."""
    return -0.5 * (y - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)


def mean_log_likelihood(y: Rows, mean: Rows, variance: Rows) -> float:
    """Compute the mean Gaussian log density in nats (Almosallam 2017, Table 6.6)."""
    return float(np.mean(log_density(y, mean, variance)))


def fraction_within(y: Rows, mean: Rows, epsilon: float) -> float:
    """Compute F_epsilon, the percentage with |z - z_hat| / (1 + z) < epsilon (Table 6.6)."""
    return float(100 * np.mean(np.abs(normalized_error(y, mean)) < epsilon))


def normalized_error(y: Rows, mean: Rows) -> Rows:
    """Compute the normalized redshift error (z_hat - z) / (1 + z)."""
    return (mean - y) / (1 + y)


def sigma_mad(error: Rows) -> float:
    """Compute 1.4826 times the median absolute deviation, a robust standard deviation."""
    return float(1.4826 * np.median(np.abs(error - np.median(error))))


def sigma_iqr(error: Rows) -> float:
    """Compute the interquartile range divided by 1.349, as PointSigmaIQR of RAIL."""
    low, high = np.percentile(error, [25, 75])
    return float((high - low) / 1.349)


def outlier_rate(error: Rows) -> float:
    """Compute the fraction of |error| > max(0.06, 3 sigma_IQR) (LSST science requirements)."""
    return float(np.mean(np.abs(error) > max(0.06, 3 * sigma_iqr(error))))


def far_share(error: Rows, beyond: float | None = None) -> float:
    """Compute the fraction of |error| > `beyond`; None for 3 sigma_IQR."""
    return float(np.mean(np.abs(error) > (3 * sigma_iqr(error) if beyond is None else beyond)))


def pit(y: Rows, mean: Rows, variance: Rows) -> Rows:
    """Compute the probability integral transform, which is uniform for calibrated predictions."""
    return ndtr((y - mean) / np.sqrt(variance))


def pit_ks(pit: Rows) -> float:
    """Compute the Kolmogorov-Smirnov distance of PIT values from the uniform distribution."""
    ordered, n = np.sort(pit), len(pit)
    above = np.arange(1, n + 1) / n - ordered
    return float(max(above.max(), (1 / n - above).max()))


def coverage(
    y: Rows, mean: Rows, variance: Rows, levels: tuple[float, ...] = LEVELS
) -> Float[ndarray, "2 c"]:
    """Return nominal levels of central intervals and their empirical coverage."""
    z = np.abs(y - mean) / np.sqrt(variance)
    covered = [float(np.mean(z <= ndtri(0.5 + level / 2))) for level in levels]
    return np.array([levels, covered])


def within_95(y: Rows, mean: Rows, std: Rows) -> Bool[ndarray, " n"]:
    """Return True where a value lies within the central 95% interval of its Gaussian."""
    return np.abs(y - mean) <= Z_95 * std


def redshift_bins(y: Rows, mean: Rows, count: int = 10) -> Float[ndarray, "6 q"]:
    """Compute point metrics in bins of true redshift with equal width and at least twenty rows.

    Returns:
        For each bin: lower edge, upper edge, bias (mean normalized error), sigma_MAD, outlier rate,
        number of rows.
    """
    results = []
    for a, b in bins_of(y, count):
        error = normalized_error(y[(y >= a) & (y < b)], mean[(y >= a) & (y < b)])
        results.append([a, b, error.mean(), sigma_mad(error), outlier_rate(error), len(error)])
    return np.array(results).reshape(-1, 6).T


def bins_of(y: Rows, count: int = 10) -> list[tuple[float, float]]:
    """Return bins of equal width between the 0.5 and 99.5 percentiles with at least twenty rows."""
    low, high = np.percentile(y, [0.5, 99.5])
    edges = np.linspace(low, high, count + 1)
    return [(a, b) for a, b in pairwise(edges.tolist()) if ((y >= a) & (y < b)).sum() >= 20]


def by_confidence(
    y: Rows, mean: Rows, variance: Rows, density: Rows, shares: Float[ndarray, " p"]
) -> Float[ndarray, "6 p"]:
    """Compute metrics of the most confident rows (Fig. 6.14); `density` is the log density of y.

    Returns:
        For each fraction of the rows: fraction, RMSE, mean log-likelihood, F_0.15, F_0.05, bias.
    """
    order = np.argsort(variance, kind="stable")
    results = []
    for share in shares:
        selected = order[: max(1, round(share * len(order)))]
        a, b = y[selected], mean[selected]
        results.append(
            [
                share,
                rmse(a, b),
                float(density[selected].mean()),
                fraction_within(a, b, 0.15),
                fraction_within(a, b, 0.05),
                float(normalized_error(a, b).mean()),
            ]
        )
    return np.array(results).T


def smse(y: Rows, mean: Rows) -> float:
    """Compute the mean squared error divided by the variance of y; 1 for a constant mean."""
    return float(np.mean((y - mean) ** 2) / np.var(y))


def snlp(y: Rows, log_density: Rows, reference: Float[ndarray, " r"]) -> float:
    """Compute the standardized negative log probability density in nats per row.

    Mean negative log density minus that of a Gaussian with mean and variance of `reference`
    (Rasmussen & Williams 2006, section 2.5). Smaller is better; 0 for this Gaussian.
    """
    mean = np.full(len(y), reference.mean())
    variance = np.full(len(y), max(float(reference.var()), 1e-24))
    return mean_log_likelihood(y, mean, variance) - float(np.mean(log_density))


def nmse(y: Rows, mean: Rows) -> float:
    """Compute the normalized mean squared error (Ma 2023, 5.43), equal to `smse`."""
    return smse(y, mean)


def nlpd(y: Rows, mean: Rows, variance: Rows) -> float:
    """Compute the negative log predictive density of Gaussians in nats per row (Ma 2023, 5.44)."""
    return -mean_log_likelihood(y, mean, variance)


def concordance(time: Rows, event: Bool[ndarray, " n"], predicted: Rows) -> float:
    """Compute Harrell's C, the fraction of comparable pairs that are predicted in correct order.

    Pairs are comparable if the earlier time is not censored; ties of predictions count half. NaN
    without comparable pairs.
    """
    comparable = (time[:, None] < time[None]) & event[:, None]
    difference = predicted[None] - predicted[:, None]
    correct = (difference > 0) + 0.5 * (difference == 0)
    pairs = int(comparable.sum())
    return float(correct[comparable].sum() / pairs) if pairs else float("nan")


def reliability(confidence: Rows, right: Rows, bins: int = 10) -> Float[ndarray, "3 b"]:
    """Compute a reliability diagram with bins of equal width, without empty bins.

    Args:
        confidence: Probability of the predicted class.
        right: 1 if the prediction is correct, else 0.
        bins: Number of bins.

    Returns:
        Mean confidence, accuracy and number of rows of each bin.
    """
    bin_index = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(bin_index, minlength=bins).astype(float)
    sums = [np.bincount(bin_index, weights, bins) for weights in (confidence, right)]
    nonempty = count > 0
    return np.array([*(s[nonempty] / count[nonempty] for s in sums), count[nonempty]])


def expected_calibration_error(confidence: Rows, right: Rows, bins: int = 10) -> float:
    """Compute the expected calibration error (Naeini, Cooper & Hauskrecht 2015)."""
    mean_confidence, accuracy, count = reliability(confidence, right, bins)
    return float((count * np.abs(mean_confidence - accuracy)).sum() / count.sum())
