"""Training of one model on one fold, and its scores on the held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold

from scant.models.mogp_ar import training
from scant.studies.omniglot.published_data import Case
from scant.studies.reproduction import Experiment, Score

SECONDS = "seconds to train"  # of processor time
ALL = "all outputs"
Predict = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # predicts classes from inputs and outputs of rows
Train = Callable[[], Predict]
Trained = TypeVar("Trained", bound=Predict)


def shuffled_folds(case: Case, fold: int) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " k"]]:
    """Training and test rows of random folds."""
    number = case.label + 1000 * case.output
    split = StratifiedKFold(case.folds, shuffle=True, random_state=0).split(case.x, number)
    return next(islice(split, fold, None))


def scores(
    case: Case, test: Int[np.ndarray, " k"], train: Callable[[], Trained]
) -> tuple[Trained, list[tuple[str, str, float]]]:
    """Train a model, and score it on the held-out rows.

    Args:
        case: The data.
        test: Held-out rows.
        train: Timed function that trains the model.

    Returns:
        The trained model, and its scores as triples of output, metric and value.
    """
    start = time.process_time()
    predict = train()
    results = [(ALL, SECONDS, time.process_time() - start)]
    best = predict(case.x[test], case.output[test])
    for d, name in enumerate(case.outputs):
        of_output = case.output[test] == d
        precision, recall, f1, _ = precision_recall_fscore_support(
            case.label[test][of_output], best[of_output], average="weighted", zero_division=0.0
        )
        for metric, value in (("recall", recall), ("precision", precision), ("F1", f1)):
            results.append((name, metric, float(value)))
    return predict, results


def score(name: str, case: Case, method: str, output: str, metric: str, value: float) -> Score:
    """Score of an output; the experiment's name has the output if there are several."""
    experiment_name = name if output == ALL or len(case.outputs) == 1 else f"{name}: {output}"
    experiment = Experiment(experiment_name, case.source, "folds of the cross-validation")
    return Score(experiment, method, metric, value)


class TrainedGP:
    """A trained Gaussian process that predicts classes from inputs and outputs of rows.

    Args:
        model: Model from `scant.models.mogp_ar.training.fit`.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, x: np.ndarray, output: np.ndarray) -> np.ndarray:
        rows = self.model.kernel.prepare(torch.as_tensor(x))
        probabilities = self.model.probabilities(rows, torch.as_tensor(output))
        best: np.ndarray = probabilities.argmax(1).numpy()
        return best


def gaussian(
    x: Float[np.ndarray, "m v"],
    output: Int[np.ndarray, " m"],
    label: Int[np.ndarray, " m"],
    **values: Any,
) -> TrainedGP:
    """Train a Gaussian process; `values` are arguments of `scant.models.mogp_ar.training.fit`."""
    rows = (torch.as_tensor(x), torch.as_tensor(output), torch.as_tensor(label))
    return TrainedGP(training.fit(*rows, **values))
