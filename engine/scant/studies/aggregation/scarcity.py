"""Errors against the number of fine rows, with the other tasks and without.

Fine rows are those of the scarce task (Yousefi 2021, Figs. 5.2-5.3). `curve` computes exact
posteriors at the run's hyperparameters; `retrain` continues the training of the run's model for one
number of rows, with any likelihoods.
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
STEPS = 60  # to retrain a model, from the run's
EXACT_STEPS = 15  # likewise, with L-BFGS
BATCH = 1000  # rows of each task in a step

Rows = Int[np.ndarray, " _"]


def curve(fitted: FittedMTGPA) -> dict[str, np.ndarray]:
    """SMSE and SNLP against the number of fine rows, at the run's hyperparameters.

    The posterior is exact for each number of rows, so nothing is trained; each repeat draws
    other rows. "Alone" leaves the other tasks' rows out.

    Raises:
        BadInput: A likelihood is not Gaussian, or no row of the scarce task is held out.
    """
    if any(kind not in EXACT for kind in fitted.kinds):
        raise BadInput(
            "This curve needs exact posteriors, which only Gaussian likelihoods have; move the "
            "slider instead, which trains the model anew."
        )
    test, fine, others = _rows(fitted)
    inside, max_rows = fitted.whole.inside, MOST_ROWS
    if inside is not None:  # each polygon is many points
        max_rows = min(max_rows, MOST_PIECES // inside.shape[1])
    if len(others) > max_rows - COUNTS[0]:
        raise BadInput(
            f"The other tasks have {len(others):,} rows; this curve is computed exactly, which is "
            f"quick for up to {max_rows:,} rows. Move the slider instead."
        )
    sizes = counts(min(len(fine), max_rows - len(others)))
    result = np.full((2, 2, REPEATS, len(sizes)), np.nan)
    for repeat in range(REPEATS):
        for k, n in enumerate(sizes):
            for variant, rows in enumerate(_sample_rows(fitted, fine, others, n, repeat)):
                posterior = _exact_posterior(fitted.model, fitted.data_of(fitted.whole, rows))
                result[:, variant, repeat, k] = _scores(fitted, posterior, test, fine)
    spread = np.stack([result.mean(2), result.min(2), result.max(2)], axis=2)
    return {"n": np.array(sizes, float), "smse": spread[0], "snlp": spread[1]}


def retrain(fitted: FittedMTGPA, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """SMSE and SNLP after further training with `n` fine rows of draw `repeat`.

    Both models start from the run's parameters; "alone" is then trained without other tasks.

    Raises:
        BadInput: `n` is not between 2 and the number of rows, or no row is held out.
    """
    test, fine, others = _rows(fitted)
    n = int(query.get("n", COUNTS[0]))
    if not 2 <= n <= len(fine):
        raise BadInput(f"Between 2 and {len(fine):,} fine rows can be training rows; got {n:,}.")
    result = np.empty((2, 2))
    for variant, rows in enumerate(
        _sample_rows(fitted, fine, others, n, int(query.get("repeat", 0)))
    ):
        model = _trained_on(fitted, fitted.data_of(fitted.whole, rows))
        result[:, variant] = _scores(fitted, model, test, fine)
    return {"n": np.array([float(n)]), "smse": result[0], "snlp": result[1]}


def _exact_posterior(model: TaskGP, data: Data) -> ExactGP:
    """Exact posterior given these rows; it shares the model's hyperparameters."""
    return ExactGP(model.likelihoods, model.prior, data)


def _trained_on(fitted: FittedMTGPA, data: Data) -> TaskGP:
    """Train a copy of the fitted model on these rows.

    An exact model with more than `MOST_EXACT` rows keeps its hyperparameters.
    """
    s, model = fitted.settings, deepcopy(fitted.model)
    if isinstance(model, AreaGP):
        areas = AreaGP(model.likelihoods, model.prior, data)
        area_trainer = ExactTrainer(areas)
        for _ in range(EXACT_STEPS):
            area_trainer.step()
        return areas
    if isinstance(model, ExactGP):
        exact = _exact_posterior(model, data)
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


def _sample_rows(
    fitted: FittedMTGPA, fine: Rows, others: Rows, n: int, repeat: int
) -> tuple[Rows, Rows]:
    """Draw n fine rows (nested in n): with the other tasks' rows, and alone."""
    sample = np.random.default_rng([fitted.settings.seed, repeat]).permutation(fine)[:n]
    return np.concatenate([sample, others]), sample


def _scores(fitted: FittedMTGPA, model: TaskGP, test: Rows, fine: Rows) -> tuple[float, float]:
    """SMSE and SNLP on the held-out rows, relative to mean and variance of all fine rows."""
    number = fitted.task(fitted.scarce)
    scale, query = fitted.scale[number], fitted.data_of(fitted.whole, test)
    prediction: MTGPAPrediction = model.predict(query.supports, number, query.exposure)
    mean = (fitted.unit(number, query.exposure) * prediction.mean).cpu().numpy()
    density = model.log_predictive(query).detach().cpu().numpy() - np.log(scale.factor)
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
    usable = np.isfinite(whole.y) & np.isin(names, fitted.tasks)
    is_scarce = names == fitted.scarce
    test = evenly_spaced(np.flatnonzero(usable & is_scarce & whole.test), TEST_ROWS)
    fine = np.flatnonzero(usable & is_scarce & ~whole.test)
    if len(test) < 2 or not counts(len(fine)):
        raise BadInput(
            "This curve needs rows of the scarce task that are held out ('test' in a column "
            f"'split') and more than {COUNTS[0]} to learn from."
        )
    return test, fine, np.flatnonzero(usable & ~is_scarce & ~whole.test)
