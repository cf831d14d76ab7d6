"""Mixtures of many Gaussians on a line brought to a few of the same mean and variance.

Runnalls (2007), Kullback-Leibler approach to Gaussian mixture reduction: two components become one
Gaussian with their joint weight, mean and variance, and the pair is taken for which the bound on
the Kullback-Leibler divergence of the mixture rises least (its equation 21), until few enough are
left. Each merger keeps mean and variance of the whole.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

PAIRED = 16  # components whose pairs are compared; lighter ones join the nearest of these first
_NUMBERS = 1 << 18  # of a block of rows that is worked on at a time, for it to stay in the cache

Parts = Float[np.ndarray, "n c"]
Few = Float[np.ndarray, "n k"]


def reduce_mixtures(
    weights: Parts, means: Parts, variances: Parts, most: int
) -> tuple[Few, Few, Few]:
    """At most so many Gaussians a row, with the mean and the variance of all.

    Args:
        weights: Of the components; a row sums to one. What has no weight is not looked at.
        means: Of each.
        variances: Likewise, above zero where the weight is.
        most: How many may be left, at least one.

    Returns:
        Weights, means and variances, the heaviest first. A row with fewer components has weights of
        zero behind, with the mean and variance of its heaviest component.
    """
    counts = (weights > 0).sum(1)
    made = np.zeros((3, len(weights), most))
    order, at = np.argsort(counts, kind="stable"), 0
    while at < len(order):  # rows with about as many components, as wide as the widest
        step = max(1, _NUMBERS // min(int(counts[order[at]]) + most, PAIRED) ** 2)
        rows = order[at : at + step]
        width = max(int(counts[rows[-1]]), most)
        w, m, v = _heaviest(weights[rows], means[rows], variances[rows], width)
        if width > max(PAIRED, most):
            w, m, v = _joined(w, m, v, max(PAIRED, most))
        made[:, rows] = _heaviest(*_merged(w, m, v, most), most)
        at += step
    return made[0], made[1], made[2]


def _heaviest(w: Parts, m: Parts, v: Parts, width: int) -> tuple[Few, Few, Few]:
    """The heaviest components in order; those without weight look like the first."""
    if w.shape[1] < width:
        w, m, v = (np.pad(a, ((0, 0), (0, width - w.shape[1]))) for a in (w, m, v))
    order = np.argsort(-w, axis=1, kind="stable")[:, :width]
    w, m, v = (np.take_along_axis(a, order, 1) for a in (w, m, v))
    used = w > 0
    return np.where(used, w, 0.0), np.where(used, m, m[:, :1]), np.where(used, v, v[:, :1])


def _joined(w: Parts, m: Parts, v: Parts, few: int) -> tuple[Few, Few, Few]:
    """Each component behind the first few joins the one of these that it costs least to."""
    place = np.empty((len(w), w.shape[1] - few), dtype=np.int64)
    every = np.stack([w, m, v, w * np.log(v)])
    for j in range(few, w.shape[1]):
        place[:, j - few] = _cost(every[..., :few], every[..., j, None]).argmin(1)
    into = (np.arange(few) == place[:, :, None]).astype(float)  # (n, c - few, few)

    def gathered(a: Parts) -> Few:
        return np.asarray(a[:, :few] + np.einsum("nj,njk->nk", a[:, few:], into))

    total = gathered(w)
    there = total > 0
    whole = np.where(there, total, 1.0)
    mean = np.where(there, gathered(w * m) / whole, m[:, :few])
    to = np.concatenate([mean, np.take_along_axis(mean, place, 1)], axis=1)
    variance = np.where(there, gathered(w * (v + (m - to) ** 2)) / whole, v[:, :few])
    return total, mean, variance


def _merged(w: Parts, m: Parts, v: Parts, most: int) -> tuple[Few, Few, Few]:
    """Merge the pair that costs least, in each row, until `most` have weight.

    A component without weight costs nothing, so that rows with few components keep them as they
    are: these go first.
    """
    n, c = w.shape
    each, rows = np.stack([w, m, v, w * np.log(v)]), np.arange(n)
    cost = np.full((n, c, c), np.inf)  # above the diagonal
    for i in range(c - 1):
        cost[:, i, i + 1 :] = _cost(each[..., i, None], each[..., i + 1 :])
    for _ in range(c - most):
        a, b = np.divmod(cost.reshape(n, -1).argmin(1), c)
        both, mean, variance = _pair(each[:, rows, a], each[:, rows, b])
        each[:, rows, a] = both, mean, variance, both * np.log(variance)
        each[0, rows, b] = each[3, rows, b] = 0.0
        cost[rows, b, :] = cost[rows, :, b] = np.inf
        new = _cost(each[:, rows, a][..., None], each)
        before, behind = np.arange(c) < a[:, None], np.arange(c) > a[:, None]
        new[np.isinf(np.where(behind, cost[rows, a, :], cost[rows, :, a]))] = np.inf
        cost[rows, a, :] = np.where(behind, new, np.inf)
        cost[rows, :, a] = np.where(before, new, np.inf)
    return each[0], each[1], each[2]


def _pair(
    one: Float[np.ndarray, "4 n *#c"], other: Float[np.ndarray, "4 n *#c"]
) -> tuple[Float[np.ndarray, "n *c"], Float[np.ndarray, "n *c"], Float[np.ndarray, "n *c"]]:
    """Weight, mean and variance of two components together; see `_cost`."""
    both = one[0] + other[0]
    share = other[0] / np.where(both > 0, both, 1.0)
    apart = other[1] - one[1]
    variance = one[2] + share * (other[2] - one[2]) + share * (1 - share) * apart**2
    return both, one[1] + share * apart, variance


def _cost(
    one: Float[np.ndarray, "4 n *#c"], other: Float[np.ndarray, "4 n *#c"]
) -> Float[np.ndarray, "n *c"]:
    """Runnalls' bound on what a merger adds to the divergence (21), twice, in nats.

    Components are weight, mean, variance, and weight times logarithm of the variance.
    """
    both, _, variance = _pair(one, other)
    return np.asarray(both * np.log(variance) - one[3] - other[3])
