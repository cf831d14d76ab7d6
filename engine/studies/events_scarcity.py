"""How few labels will do: the events study trained anew on fewer of the groups it learnt from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from engine.errors import BadInput
from engine.studies.asked import whole
from engine.studies.events_looks import Looks
from engine.studies.events_report import main, predicted
from engine.studies.events_rows import blocks

if TYPE_CHECKING:
    from engine.studies.events import Study

LEAST_OF_CLASS = 3
MOST_ROWS = 600  # that are learnt from at once
TRIES = 50  # of a draw, until both classes are in it


def curve(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Main score of some methods that learn from fewer groups, patients or rows.

    The held-out rows are the run's. More blocks of one draw hold the fewer ones of the same.

    Args:
        study: A fitted one.
        asked: `n`, how many blocks; `draw`, which random ones.

    Raises:
        BadInput: A number of blocks that there are not, or in which a class is too rare.
    """
    every = np.unique(blocks(study.seen, study.learnt)[1])
    n = whole(asked.get("n", len(every)), "n", 1, len(every))
    learnt = drawn(study, n, whole(asked.get("draw", 0), "draw", 0, 1000))
    looks = Looks.at(study.seen, study.looks.names, learnt, study.settings.components)
    scores = [
        main(study, study.test, *predicted(study, method, learnt, study.test, looks))
        for method in study.words["scarce"]
    ]
    return {"n": np.array([n]), "rows": np.array([len(learnt)]), "scores": np.array(scores)}


def drawn(study: Study, n: int, draw: int) -> Int[np.ndarray, " m"]:
    """The rows of some blocks, drawn at random until both classes are among them.

    Raises:
        BadInput: They never are.
    """
    name, block = blocks(study.seen, study.learnt)
    every = np.unique(block)
    for attempt in range(TRIES):
        rng = np.random.default_rng([study.settings.seed, 55, draw, attempt])
        learnt = study.learnt[np.isin(block, rng.permutation(every)[:n])]
        if len(learnt) > MOST_ROWS:
            learnt = np.sort(rng.permutation(learnt)[:MOST_ROWS])
        if _enough(study, learnt):
            return learnt
    raise BadInput(
        f"n: got {n}, and in so few {name} a class is too rare to learn from; ask for more."
    )


def _enough(study: Study, learnt: Int[np.ndarray, " m"]) -> bool:
    if study.seen.task != "classification":
        return len(learnt) >= 2
    ones = int(study.seen.target[learnt].sum())
    return min(ones, len(learnt) - ones) >= LEAST_OF_CLASS
