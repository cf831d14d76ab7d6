"""Neural network of the publication's comparison (Ma 2023, section 5.4), one per output."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from scant.metrics import nmse
from scant.studies.genes.table import Replicas, held_out

HIDDEN = (200, 200)  # units, with ReLU
STEPS = 1000  # from the example in the authors' program


def neural_network_nmse(observed: Replicas, split: str, seed: int, steps: int = STEPS) -> float:
    """NMSE (5.43) of the held-out rows of a split, in units of each output's deviation.

    The network takes x alone, as in the authors' program, so that all replicas of an output share
    one curve. Adam with rate 0.01 uses all rows in each step; the loss is the mean squared error.

    Args:
        observed: The table.
        split: Held-out rows (`held_out`).
        seed: Seed of split and starts.
        steps: Number of steps.
    """
    test = held_out(observed, split, seed)
    predicted = np.empty(len(observed))
    y = np.empty(len(observed))
    for d in range(len(observed.outputs)):
        rows = observed.output == d
        y[rows] = _standardized(observed.y[rows])
        train, query = rows & ~test, rows & test
        network = MLPRegressor(
            hidden_layer_sizes=HIDDEN,
            alpha=0.0,
            batch_size=int(train.sum()),
            learning_rate_init=0.01,
            max_iter=steps,
            n_iter_no_change=steps,  # no early stopping
            random_state=seed,
        )
        x = observed.x[:, None].astype(np.float32)  # the precision of the authors' program
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # all steps are always taken
            network.fit(x[train], y[train].astype(np.float32))
        predicted[query] = network.predict(x[query])
    return nmse(y[test], predicted[test])


def _standardized(y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return (y - y.mean()) / y.std()
