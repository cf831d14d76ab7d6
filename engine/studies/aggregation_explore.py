"""Answers to what a person asks of a fitted aggregation study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from engine import metrics
from engine.errors import BadInput
from engine.models.mtgpa_exact import exact_posterior
from engine.studies import aggregation_space as space

if TYPE_CHECKING:
    from engine.studies.aggregation import Study

GRID = 200
COUNTS = (5, 10, 20, 50, 100, 200, 500)
REPEATS = 3
MOST_ROWS = 1200  # exact inference costs their cube
TEST_ROWS = 400


def answer(study: Study, question: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, a task or box that cannot be.
    """
    if question == "box":
        return box(study, asked)
    if question == "field":
        return study.field(str(asked.get("task", study.words["scarce"])))
    if question == "scarcity":
        return scarcity(study)
    raise BadInput(f"Nothing is known of {question!r}; ask 'box', 'field' or 'scarcity'.")


def box(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Posterior of a task's average over one box."""
    dims = study.words["dims"]
    bounds = [np.asarray(asked.get(name, ()), float) for name in ("lo", "hi")]
    if any(len(b) != len(dims) or not np.isfinite(b).all() for b in bounds):
        raise BadInput(f"A box needs a lower and an upper bound of {', '.join(dims)}.")
    lo, hi = np.minimum(*bounds)[None], np.maximum(*bounds)[None]
    task = study.task(str(asked.get("task", study.words["scarce"])))
    mean, std, new = (float(v[0]) for v in study.ask(space.tensors_of(lo, hi, study.device), task))
    std = max(std, 1e-12 * max(abs(mean), 1.0))
    grid = np.linspace(mean - 4 * std, mean + 4 * std, GRID)
    return {
        "grid": grid,
        "density": norm.pdf(grid, mean, std),
        "moments": np.array([mean, std, new]),
    }


def scarcity(study: Study) -> dict[str, np.ndarray]:
    """SMSE and SNLP against the number of fine rows, at the run's hyperparameters.

    The posterior is exact for each number of rows, so nothing is trained; rows are drawn anew for
    each repeat. "Alone" leaves the other tasks' rows out (Yousefi 2021, Figs. 5.2-5.3).

    Raises:
        BadInput: A likelihood is not Gaussian, or no row of the scarce task is held out.
    """
    if any(kind != "gaussian" for kind in study.kinds):
        raise BadInput(
            "This curve needs exact posteriors, which only Gaussian likelihoods have; train with "
            "another number of fine rows to see its effect."
        )
    test, fine, others = _rows(study)
    if len(others) > MOST_ROWS - COUNTS[0]:
        raise BadInput(
            f"The other tasks have {len(others):,} rows; this curve is computed exactly, which is "
            f"quick for up to {MOST_ROWS:,} rows. Train with another number of fine rows instead."
        )
    number = study.task(study.words["scarce"])
    counts = [n for n in COUNTS if n < min(len(fine), MOST_ROWS - len(others))]
    if len(test) < 2 or not counts:
        raise BadInput(
            "This curve needs rows of the scarce task that are held out ('test' in a column "
            f"'split') and more than {COUNTS[0]} to learn from."
        )
    own = study.data_of(study.whole, test)
    y = study.whole.y[test]
    found = np.full((2, 2, REPEATS, len(counts)), np.nan)
    for repeat in range(REPEATS):
        mixed = np.random.default_rng([study.settings.seed, repeat]).permutation(fine)
        for k, n in enumerate(counts):
            for who, rows in enumerate((np.concatenate([mixed[:n], others]), mixed[:n])):
                posterior = exact_posterior(study.model, study.data_of(study.whole, rows))
                scale = study.scale[number]
                mean = (
                    scale.offset
                    + scale.factor * posterior.predict(own.supports, number).mean.cpu().numpy()
                )
                density = posterior.log_predictive(own).cpu().numpy() - np.log(scale.factor)
                reference = study.whole.y[fine]
                found[0, who, repeat, k] = metrics.smse(y, mean)
                found[1, who, repeat, k] = metrics.snlp(y, density, reference)
    spread = np.stack([found.mean(2), found.min(2), found.max(2)], axis=2)
    return {"n": np.array(counts, float), "smse": spread[0], "snlp": spread[1]}


def _rows(study: Study) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Held-out rows of the scarce task, its other rows, and those of the other tasks."""
    whole, tasks = study.whole, study.words["tasks"]
    names = np.array(whole.tasks, dtype=object)[whole.task]
    known = np.isfinite(whole.y) & np.isin(names, tasks)
    mine = names == study.words["scarce"]
    test = np.flatnonzero(known & mine & whole.test)
    if len(test) > TEST_ROWS:
        test = test[np.linspace(0, len(test) - 1, TEST_ROWS).astype(int)]
    fine = np.flatnonzero(known & mine & ~whole.test)
    return test, fine, np.flatnonzero(known & ~mine & ~whole.test)
