"""Learning curve: the multiview study retrained on fewer groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from scant.errors import BadInput
from scant.studies.multiview.learners import predicted
from scant.studies.multiview.metadata import blocks
from scant.studies.multiview.prepared import Prepared
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.report import main
from scant.studies.query import whole

LEAST_OF_CLASS = 3
MOST_ROWS = 600  # maximum number of training rows
TRIES = 50  # maximum number of draws until both classes are included


def curve(data: Prepared, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Main score of some methods trained on fewer groups, patients or rows.

    The held-out rows are the run's. Within a draw, smaller sets of units are nested in larger ones.

    Args:
        data: The run's rows.
        query: `n`, the number of units; `draw`, the seed of the draw.

    Raises:
        BadInput: The number of units is invalid, or a class is too rare among them.
    """
    units = np.unique(blocks(data.observed, data.train)[1])
    n = whole(query.get("n", len(units)), "n", 1, len(units))
    train = drawn(data, n, whole(query.get("draw", 0), "draw", 0, 1000))
    transforms = ViewTransforms.at(
        data.observed, data.transforms.names, train, data.settings.n_components
    )
    scores = [
        main(data, data.test, predicted(data, method, train, data.test, transforms))
        for method in data.metadata["scarce"]
    ]
    return {"n": np.array([n]), "rows": np.array([len(train)]), "scores": np.array(scores)}


def drawn(data: Prepared, n: int, draw: int) -> Int[np.ndarray, " m"]:
    """Rows of units that are drawn at random until both classes are included.

    Raises:
        BadInput: No draw has both classes.
    """
    name, block = blocks(data.observed, data.train)
    units = np.unique(block)
    for attempt in range(TRIES):
        rng = np.random.default_rng([data.settings.seed, 55, draw, attempt])
        train = data.train[np.isin(block, rng.permutation(units)[:n])]
        if len(train) > MOST_ROWS:
            train = np.sort(rng.permutation(train)[:MOST_ROWS])
        if _enough(data, train):
            return train
    raise BadInput(
        f"n: got {n}, and in so few {name} a class is too rare to learn from; ask for more."
    )


def _enough(data: Prepared, train: Int[np.ndarray, " m"]) -> bool:
    if data.observed.task != "classification":
        return len(train) >= 2
    n_positive = int(data.observed.target[train].sum())
    return min(n_positive, len(train) - n_positive) >= LEAST_OF_CLASS
