"""Reduction of univariate Gaussian mixtures to few components with the same mean and variance.

Runnalls (2007), Kullback-Leibler approach to Gaussian mixture reduction: repeatedly replace two
components by one Gaussian with their joint weight, mean and variance, choosing the pair with the
smallest increase of a bound on the Kullback-Leibler divergence (his equation 21). Every merger
preserves the mean and variance of the mixture.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

PAIRED = 16  # components compared in pairs; lighter ones first join the closest of these
_BLOCK = 1 << 18  # elements of a block of rows that stays in cache

Parts = Float[np.ndarray, "n c"]
Reduced = Float[np.ndarray, "n k"]


def reduce_mixtures(
    weights: Parts, means: Parts, variances: Parts, max_components: int
) -> tuple[Reduced, Reduced, Reduced]:
    """Reduce each row's mixture to at most k Gaussians, keeping its mean and variance.

    Args:
        weights: Component weights, summing to one per row; components of weight 0 are ignored.
        means: Component means.
        variances: Component variances, positive where the weight is.
        max_components: Maximum number k of components, at least one.

    Returns:
        Weights, means and variances, heaviest component first. Rows with fewer components are
        padded with weight 0 and the mean and variance of the heaviest.
    """
    counts = (weights > 0).sum(1)
    result = np.zeros((3, len(weights), max_components))
    order, start = np.argsort(counts, kind="stable"), 0
    while start < len(order):  # blocks of rows with similar numbers of components
        step = max(1, _BLOCK // min(int(counts[order[start]]) + max_components, PAIRED) ** 2)
        rows = order[start : start + step]
        width = max(int(counts[rows[-1]]), max_components)
        w, m, v = _heaviest(weights[rows], means[rows], variances[rows], width)
        if width > max(PAIRED, max_components):
            w, m, v = _joined(w, m, v, max(PAIRED, max_components))
        result[:, rows] = _heaviest(*_merged(w, m, v, max_components), max_components)
        start += step
    return result[0], result[1], result[2]


def _heaviest(w: Parts, m: Parts, v: Parts, width: int) -> tuple[Reduced, Reduced, Reduced]:
    """Heaviest components in order; those without weight copy the first one's moments."""
    if w.shape[1] < width:
        w, m, v = (np.pad(a, ((0, 0), (0, width - w.shape[1]))) for a in (w, m, v))
    order = np.argsort(-w, axis=1, kind="stable")[:, :width]
    w, m, v = (np.take_along_axis(a, order, 1) for a in (w, m, v))
    used = w > 0
    return np.where(used, w, 0.0), np.where(used, m, m[:, :1]), np.where(used, v, v[:, :1])


def _joined(w: Parts, m: Parts, v: Parts, k: int) -> tuple[Reduced, Reduced, Reduced]:
    """Merge each component after the first k into the one of these with the lowest cost."""
    target = np.empty((len(w), w.shape[1] - k), dtype=np.int64)
    components = np.stack([w, m, v, w * np.log(v)])
    for j in range(k, w.shape[1]):
        target[:, j - k] = _cost(components[..., :k], components[..., j, None]).argmin(1)
    one_hot = (np.arange(k) == target[:, :, None]).astype(float)  # (n, c - k, k)

    def gathered(a: Parts) -> Reduced:
        return np.asarray(a[:, :k] + np.einsum("nj,njk->nk", a[:, k:], one_hot))

    total = gathered(w)
    used = total > 0
    safe_total = np.where(used, total, 1.0)
    mean = np.where(used, gathered(w * m) / safe_total, m[:, :k])
    target_mean = np.concatenate([mean, np.take_along_axis(mean, target, 1)], axis=1)
    variance = np.where(used, gathered(w * (v + (m - target_mean) ** 2)) / safe_total, v[:, :k])
    return total, mean, variance


def _merged(w: Parts, m: Parts, v: Parts, max_components: int) -> tuple[Reduced, Reduced, Reduced]:
    """Merge the pair with the lowest cost in each row until `max_components` have weight.

    Components without weight merge first, at no cost, so rows with few components are unchanged.
    """
    n, c = w.shape
    components, rows = np.stack([w, m, v, w * np.log(v)]), np.arange(n)
    cost = np.full((n, c, c), np.inf)  # above the diagonal
    for i in range(c - 1):
        cost[:, i, i + 1 :] = _cost(components[..., i, None], components[..., i + 1 :])
    for _ in range(c - max_components):
        a, b = np.divmod(cost.reshape(n, -1).argmin(1), c)
        weight, mean, variance = _pair(components[:, rows, a], components[:, rows, b])
        components[:, rows, a] = weight, mean, variance, weight * np.log(variance)
        components[0, rows, b] = components[3, rows, b] = 0.0
        cost[rows, b, :] = cost[rows, :, b] = np.inf
        new = _cost(components[:, rows, a][..., None], components)
        before, behind = np.arange(c) < a[:, None], np.arange(c) > a[:, None]
        new[np.isinf(np.where(behind, cost[rows, a, :], cost[rows, :, a]))] = np.inf
        cost[rows, a, :] = np.where(behind, new, np.inf)
        cost[rows, :, a] = np.where(before, new, np.inf)
    return components[0], components[1], components[2]


def _pair(
    a: Float[np.ndarray, "4 n *#c"], b: Float[np.ndarray, "4 n *#c"]
) -> tuple[Float[np.ndarray, "n *c"], Float[np.ndarray, "n *c"], Float[np.ndarray, "n *c"]]:
    """Weight, mean and variance of the merger of two components (format: see `_cost`)."""
    weight = a[0] + b[0]
    share = b[0] / np.where(weight > 0, weight, 1.0)
    difference = b[1] - a[1]
    variance = a[2] + share * (b[2] - a[2]) + share * (1 - share) * difference**2
    return weight, a[1] + share * difference, variance


def _cost(
    a: Float[np.ndarray, "4 n *#c"], b: Float[np.ndarray, "4 n *#c"]
) -> Float[np.ndarray, "n *c"]:
    """Twice Runnalls' bound (21) on the increase of the divergence by a merger, in nats.

    Components are (weight, mean, variance, weight * ln variance) along the first axis.
    """
    weight, _, variance = _pair(a, b)
    return np.asarray(weight * np.log(variance) - a[3] - b[3])
