"""Simulated replicas: the publication's two synthetic sets, and the page's six genes.

All are draws of the model (Ma 2023, 5.11-5.14). Outputs have positions h, values the covariance

    k_H(h, h') (k_g(x, x') + [same replica] k_f(x, x')),

with k_H the RBF kernel of variance and lengthscale 1 in two dimensions. The publication gives
(section 5.4.1) k_g Matérn-3/2 of variance 0.1, k_f Matérn-3/2 of variance 1, lengthscales 1, noise
variance 0.02, ten points a replica. Further choices are those of the authors' program (commit
e957371): inputs uniform on [0, 10], drawn for each output and shared by its replicas; both
coordinates of the positions run evenly from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.genes.table import held_out, of

LENGTH = 10.0  # of the inputs' range
VARIANCE_SHARED, VARIANCE_REPLICA, VARIANCE_NOISE = 0.1, 1.0, 0.02

GENES = {  # positions of the demonstration's outputs: three similar, two similar, one different
    "gene A": (0.0, 0.0),
    "gene B": (0.45, 0.15),
    "gene C": (0.1, 0.5),
    "gene D": (2.0, 0.3),
    "gene E": (2.3, 0.7),
    "gene F": (0.9, 1.9),
}
EMBRYOS = {  # approximate hours of development at which each was sampled
    "embryo 1": np.arange(2.0, 17.0, 2.0),
    "embryo 2": np.arange(2.0, 17.0, 2.0),
    "embryo 3": np.arange(3.0, 18.0, 2.5),
    "embryo 4": np.arange(2.0, 21.0, 2.0),
    "embryo 5": np.arange(12.0, 21.0, 2.0),
    "embryo 6": np.arange(2.0, 11.0, 2.0),
}
MISSING = (("gene A", "embryo 2"), ("gene C", "embryo 4"), ("gene D", "embryo 1"))


def synthetic(
    seed: int = 0, *, outputs: int = 50, replicas: int = 3, points: int = 10
) -> pd.DataFrame:
    """One draw of the publication's synthetic data, nothing held out.

    Args:
        seed: Seed of inputs, functions and noise.
        outputs: Number D of outputs.
        replicas: Number R of replicas of each.
        points: Number N of points of each replica.

    Returns:
        D R N rows: `output` ("output 1" …), `replica` ("1" …), `x`, `y`.
    """
    rng = np.random.default_rng([seed, 0])
    x = np.sort(rng.uniform(0, LENGTH, (outputs, points)), axis=1)
    positions = np.repeat(np.linspace(0, 1, outputs)[:, None], 2, axis=1)
    covariance = np.repeat(np.repeat(_rbf(positions), points, 0), points, 1) * _matern32(x.ravel())
    # g and every f_r have this covariance up to their variances: one factor suffices.
    factor = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(covariance)))
    functions = (factor @ rng.standard_normal((outputs * points, replicas + 1))).T
    shared, replica_functions = functions[0], functions[1:]
    f = np.sqrt(VARIANCE_SHARED) * shared + np.sqrt(VARIANCE_REPLICA) * replica_functions
    y = f + np.sqrt(VARIANCE_NOISE) * rng.standard_normal(f.shape)
    d, r, n = np.meshgrid(range(outputs), range(replicas), range(points), indexing="ij")
    return pd.DataFrame(
        {
            "output": [f"output {i + 1}" for i in d.ravel()],
            "replica": [str(i + 1) for i in r.ravel()],
            "x": x[d.ravel(), n.ravel()],
            "y": y.reshape(replicas, outputs, points).transpose(1, 0, 2).ravel(),
        }
    )


def first(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Synthetic 1: 50 outputs × 3 replicas × 10 points, half of each replica held out."""
    return _marked(
        synthetic(settings.data_seed, replicas=3), "half of the points", settings.data_seed, rows
    )


def second(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Synthetic 2: 50 outputs × 4 replicas × 10 points, one replica of each output held out."""
    table = synthetic(settings.data_seed, replicas=4)
    return _marked(table, "one replica of each output", settings.data_seed, rows)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Six genes in six embryos at uneven times; three genes lack one embryo each.

    Returns:
        `output`, `replica`, `x` (hours), `y` (log expression), `test` (1 if missing).
    """
    table = genes(settings.data_seed)
    table["test"] = [int(pair in MISSING) for pair in zip(table["output"], table["replica"])]
    return thinned(table, rows)


def genes(seed: int = 0) -> pd.DataFrame:
    """Values of the demonstration, nothing held out.

    All embryos share RBF functions with a lengthscale of 4 hours; each embryo has its own with 3
    hours and a fifth of the variance. Noise has a deviation of 0.08; each gene has its own level.
    """
    rng = np.random.default_rng([seed, 1])
    x = [times + rng.uniform(-0.4, 0.4, len(times)) for times in EMBRYOS.values()]
    all_times = np.concatenate(x)
    root = np.linalg.cholesky(_rbf(np.array(list(GENES.values()))))
    shared = root @ rng.standard_normal((len(GENES), len(all_times))) @ _root(all_times, 4.0).T
    replica_functions = [
        np.sqrt(0.2) * root @ rng.standard_normal((len(GENES), len(t))) @ _root(t, 3.0).T for t in x
    ]
    f = shared + np.concatenate(replica_functions, axis=1)
    y = f + 0.08 * rng.standard_normal(f.shape) + 3.0 + 0.5 * rng.standard_normal((len(GENES), 1))
    names = np.repeat(list(EMBRYOS), [len(t) for t in x])
    return pd.DataFrame(
        {
            "output": np.repeat(list(GENES), len(all_times)).astype(object),
            "replica": np.tile(names, len(GENES)).astype(object),
            "x": np.tile(all_times, len(GENES)),
            "y": y.ravel(),
        }
    )


def _marked(table: pd.DataFrame, split: str, seed: int, rows: int | None) -> pd.DataFrame:
    return thinned(table.assign(test=held_out(of(table), split, seed).astype(int)), rows)


def _rbf(positions: Float[np.ndarray, "n q"], lengthscale: float = 1.0) -> Float[np.ndarray, "n n"]:
    squared_distance = ((positions[:, None] - positions[None]) ** 2).sum(-1)
    covariance: Float[np.ndarray, "n n"] = np.exp(-0.5 * squared_distance / lengthscale**2)
    return covariance


def _matern32(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
    scaled = np.sqrt(3.0) * np.abs(x[:, None] - x[None])
    covariance: Float[np.ndarray, "n n"] = (1 + scaled) * np.exp(-scaled)
    return covariance


def _root(x: Sequence[float] | np.ndarray, lengthscale: float) -> Float[np.ndarray, "n n"]:
    """Root of the RBF covariance, which is too smooth for a Cholesky factor in float64."""
    values, vectors = np.linalg.eigh(_rbf(np.asarray(x, float)[:, None], lengthscale))
    root: Float[np.ndarray, "n n"] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
