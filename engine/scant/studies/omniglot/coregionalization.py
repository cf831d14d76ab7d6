"""Correlations of classes, from the factors of the matrices B_q = A_q A_q'.

B_q of all classes is never formed: with 1,623 classes each would take 21 MB. Factors are scaled by
the prior deviation of their latent function, so that matrices of different q are on one scale: an
entry of B_q is the part of q in the prior covariance of two classes at a typical input.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from scant.studies.omniglot.settings import DIAGRAMS

Factors = Float[np.ndarray, "q c r"]


def largest(factors: Factors, count: int = DIAGRAMS) -> Int[np.ndarray, " k"]:
    """Latent functions with the largest shares of the prior variance, the largest first."""
    return np.argsort(-np.square(factors).sum((1, 2)), kind="stable")[:count]


def blocks(factors: Factors, latent: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k c c"]:
    """B_q of some latent functions, among all classes of the factors."""
    chosen = factors[latent]
    return np.asarray(chosen @ chosen.transpose(0, 2, 1))


def correlation(factors: Factors) -> Float[np.ndarray, "c c"]:
    """Prior correlation of the classes at one input: the sum of all B_q, scaled."""
    covariance = np.einsum("qcr,qdr->cd", factors, factors)
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    result = np.clip(covariance / scale / scale[:, None], -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return result


def alike(correlation: Float[np.ndarray, "c c"]) -> Int[np.ndarray, " c"]:
    """Order of classes that groups correlated ones (average linkage)."""
    if len(correlation) < 3:
        return np.arange(len(correlation))
    dissimilarity = np.maximum(1.0 - (correlation + correlation.T) / 2, 0.0)
    np.fill_diagonal(dissimilarity, 0.0)
    distance = squareform(dissimilarity, checks=False)
    tree = optimal_leaf_ordering(linkage(distance, "average"), distance)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def between_outputs(
    factors: Factors, sizes: Int[np.ndarray, " d"], latent: Int[np.ndarray, " k"] | None = None
) -> Float[np.ndarray, "d d"]:
    """Mean absolute entry of the blocks of two outputs, over latent functions (3.42-3.43).

    Args:
        factors: Factors of all classes, grouped by output.
        sizes: Numbers of classes C_d.
        latent: Functions to average; None: all, the global absolute coregionalization matrix.
    """
    starts = np.cumsum([0, *sizes])[:-1]
    functions = range(len(factors)) if latent is None else latent.tolist()
    total = np.zeros((len(sizes), len(sizes)))
    for a in (factors[q] for q in functions):
        if a.shape[1] == 1:  # |a_c a_c'| = |a_c| |a_c'|
            mean = np.add.reduceat(np.abs(a[:, 0]), starts) / sizes
            total += np.outer(mean, mean)
            continue
        for d, (start, size) in enumerate(zip(starts, sizes)):
            block = a[start : start + size]
            if not block.any():
                continue
            rows = np.abs(block @ a.T).mean(0)
            total[d] += np.add.reduceat(rows, starts) / sizes
    return total / max(len(functions), 1)
