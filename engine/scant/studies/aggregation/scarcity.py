"""How few fine rows can a fitted aggregation study live on, with the other tasks and without?

Errors against the number of fine rows of the scarce task (Yousefi 2021, Figs. 5.2-5.3), in two
ways: `curve` computes exact posteriors at the run's hyperparameters, `retrain` trains on from the
run's model for one number of rows, whatever the likelihoods.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from scant import metrics
from scant.errors import BadInput
from scant.models.mtgpa.areas import AreaGP
from scant.models.mtgpa.exact import ExactGP, ExactTrainer
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.tasks import TaskGP
from scant.models.mtgpa.training import MTGPATrainer
from scant.optim.trainer import Trainer
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.metadata import COUNTS, counts
from scant.studies.aggregation.settings import EXACT, MOST_EXACT, MOST_PIECES
from scant.studies.split import evenly_spaced

REPEATS = 3
MOST_ROWS = 1200  # exact inference costs their cube
TEST_ROWS = 400
STEPS = 60  # of a retrained model, which starts from the run's
EXACT_STEPS = 15  # the same of L-BFGS
BATCH = 1000  # rows of each task in such a step

Rows = Int[np.ndarray, " _"]


def curve(fitted: FittedMTGPA) -> dict[str, np.ndarray]:
    """SMSE and SNLP against the number of fine rows, at the run's hyperparameters.

    The posterior is exact for each number of rows, so nothing is trained; rows are drawn anew for
    each repeat. "Alone" leaves the other tasks' rows out.

    Raises:
        BadInput: A likelihood is not Gaussian, or no row of the scarce task is held out.
    """
    if any(kind not in EXACT for kind in fitted.kinds):
        raise BadInput(
            "This curve needs exact posteriors, which only Gaussian likelihoods have; move the "
            "slider instead, which trains the model anew."
        )
    test, fine, others = _rows(fitted)
    inside, most = fitted.whole.inside, MOST_ROWS
    if inside is not None:  # each polygon is many points
        most = min(most, MOST_PIECES // inside.shape[1])
    if len(others) > most - COUNTS[0]:
        raise BadInput(
            f"The other tasks have {len(others):,} rows; this curve is computed exactly, which is "
            f"quick for up to {most:,} rows. Move the slider instead."
        )
    query = counts(min(len(fine), most - len(others)))
    result = np.full((2, 2, REPEATS, len(query)), np.nan)
    for repeat in range(REPEATS):
        for k, n in enumerate(query):
            for who, rows in enumerate(_drawn(fitted, fine, others, n, repeat)):
                posterior = _on(fitted.model, fitted.data_of(fitted.whole, rows))
                result[:, who, repeat, k] = _scores(fitted, posterior, test, fine)
    spread = np.stack([result.mean(2), result.min(2), result.max(2)], axis=2)
    return {"n": np.array(query, float), "smse": spread[0], "snlp": spread[1]}


def retrain(fitted: FittedMTGPA, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """SMSE and SNLP after training on with `n` fine rows, drawn by number `repeat`.

    Both models start from the run's parameters; "alone" then sees no row of another task.

    Raises:
        BadInput: `n` is no number between 2 and the rows there are; no row is held out.
    """
    test, fine, others = _rows(fitted)
    n = int(query.get("n", COUNTS[0]))
    if not 2 <= n <= len(fine):
        raise BadInput(f"Between 2 and {len(fine):,} fine rows can be training rows; got {n:,}.")
    result = np.empty((2, 2))
    for who, rows in enumerate(_drawn(fitted, fine, others, n, int(query.get("repeat", 0)))):
        model = _trained_on(fitted, fitted.data_of(fitted.whole, rows))
        result[:, who] = _scores(fitted, model, test, fine)
    return {"n": np.array([float(n)]), "smse": result[0], "snlp": result[1]}


def _on(model: TaskGP, data: Data) -> ExactGP:
    """The exact posterior at a model's hyperparameters, which it shares, given these rows."""
    return ExactGP(model.likelihoods, model.prior, data)


def _trained_on(fitted: FittedMTGPA, data: Data) -> TaskGP:
    """A copy of the fitted model that has seen these rows; the one given stays as it is.

    An exact one, of more rows than are quick, keeps its hyperparameters.
    """
    s, model = fitted.settings, deepcopy(fitted.model)
    if isinstance(model, AreaGP):
        areas = AreaGP(model.likelihoods, model.prior, data)
        learning = ExactTrainer(areas)
        for _ in range(EXACT_STEPS):
            learning.step()
        return areas
    if isinstance(model, ExactGP):
        exact = _on(model, data)
        trainer: Trainer = ExactTrainer(exact)
        for _ in range(EXACT_STEPS if len(data.y) <= MOST_EXACT else 0):
            trainer.step()
        return exact
    trainer = MTGPATrainer(
        model,
        data,
        torch.Generator().manual_seed(s.seed),
        scheme="natural" if model.natural else "adam",
        rate=s.learning_rate / 2,
        natural_rate=0.3 if all(kind in EXACT for kind in fitted.kinds) else 0.1,
        halving=STEPS // 2,
        batch=BATCH if len(data.y) > 2 * BATCH else None,
    )
    for _ in range(STEPS):
        trainer.step()
    return model


def _drawn(fitted: FittedMTGPA, fine: Rows, others: Rows, n: int, repeat: int) -> tuple[Rows, Rows]:
    """n fine rows with those of the other tasks, and alone; a smaller n is part of a larger."""
    mixed = np.random.default_rng([fitted.settings.seed, repeat]).permutation(fine)[:n]
    return np.concatenate([mixed, others]), mixed


def _scores(fitted: FittedMTGPA, model: TaskGP, test: Rows, fine: Rows) -> tuple[float, float]:
    """SMSE and SNLP on the held-out rows, beside the mean and variance of all fine rows."""
    number = fitted.task(fitted.scarce)
    scale, own = fitted.scale[number], fitted.data_of(fitted.whole, test)
    told: MTGPAPrediction = model.predict(own.supports, number, own.exposure)
    mean = (fitted.unit(number, own.exposure) * told.mean).cpu().numpy()
    density = model.log_predictive(own).detach().cpu().numpy() - np.log(scale.factor)
    y = fitted.whole.y[test]
    smse = metrics.smse(y, scale.offset + mean)
    return smse, metrics.snlp(y, density, fitted.whole.y[fine])


def _rows(fitted: FittedMTGPA) -> tuple[Rows, Rows, Rows]:
    """Held-out rows of the scarce task, its other rows, and those of the other tasks.

    Raises:
        BadInput: No row is held out, too few are left, or the task has classes.
    """
    if fitted.scarce in fitted.classes:
        raise BadInput(
            f"This curve shows errors of values, and task {fitted.scarce!r} has classes; choose a "
            "task of values in the setting 'scarce'."
        )
    whole = fitted.whole
    names = np.array(whole.tasks, dtype=object)[whole.task]
    known = np.isfinite(whole.y) & np.isin(names, fitted.tasks)
    mine = names == fitted.scarce
    test = evenly_spaced(np.flatnonzero(known & mine & whole.test), TEST_ROWS)
    fine = np.flatnonzero(known & mine & ~whole.test)
    if len(test) < 2 or not counts(len(fine)):
        raise BadInput(
            "This curve needs rows of the scarce task that are held out ('test' in a column "
            f"'split') and more than {COUNTS[0]} to learn from."
        )
    return test, fine, np.flatnonzero(known & ~mine & ~whole.test)
