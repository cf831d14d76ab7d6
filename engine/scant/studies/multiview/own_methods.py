"""Our models of SO2 and of cell events: every lengthscale and variance is learned.

The publication's models are in `published_methods`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from scant.models.dfgp.model import DFGP
from scant.models.dfgp.output import Output
from scant.models.dfgp.training import DFGPTrainer
from scant.models.student_t import StudentT
from scant.models.svgp import SVGP
from scant.optim.ascent import maximize
from scant.studies.multiview.data import MultiviewData

INDUCING = 10  # as published
NEURONS = 5  # also degrees of freedom of the Student-t process; 3 and 7 give similar scores
RATE, STEPS = 0.05, 100
SGP_STEPS = 200  # more than the others, since GPyTorch's model converges more slowly
EXACT_STEPS = 15  # steps of L-BFGS
SLACK = 10.0  # C of support vector machines
EXACT = "Student-t"
AVERAGED = "SVM, averaged kernels"
Rows = Float[np.ndarray, " n"]
Index = Int[np.ndarray, " m"]
# Function from the rows of two groups to scores of the second, and the threshold of an event.
Classify = Callable[[MultiviewData, Index, Index], tuple[Rows, float]]
Moments = tuple[torch.Tensor, torch.Tensor]
Regression = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int, int], Moments]


def _layered(
    output: Output, x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, inducing: int, seed: int
) -> Moments:
    model = DFGP.build(
        [x],
        y,
        "gaussian",
        output,
        inducing,
        torch.Generator().manual_seed(seed),
        neurons=NEURONS,
        bound="published" if inducing <= INDUCING else "closed",
    )
    train(model, STEPS)
    return model.predict([new])


def _sparse(
    x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, inducing: int, seed: int
) -> Moments:
    model = SVGP.build(x, y, "gaussian", inducing, torch.Generator().manual_seed(seed))
    model.fit(SGP_STEPS)
    return model.predict(new)


def _student(
    x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, inducing: int, seed: int
) -> Moments:
    # One lengthscale: with one for each input it overfits its 1,000 rows.
    model = StudentT.build(x, y, df=NEURONS, ard=False)
    model.fit(EXACT_STEPS)
    return model.predict(new)[:2]


REGRESSIONS: dict[str, Regression] = {
    "DFGP": partial(_layered, "rbf"),
    "DFGP-WP": partial(_layered, "linear"),
    "SGP": _sparse,
    EXACT: _student,
}


def train(model: DFGP, steps: int) -> None:
    """Train a model with Adam."""
    maximize(DFGPTrainer(model, adam=steps, rate=RATE), steps)


def by_view(observed: MultiviewData, rows: Index) -> list[Float[np.ndarray, "m _"]]:
    return [
        observed.x[np.ix_(rows, np.flatnonzero(observed.view == v))]
        for v in range(len(observed.names))
    ]


def _merged(
    output: Output, observed: MultiviewData, rows: Index, others: Index
) -> tuple[Rows, float]:
    """DFGP with a neuron per view."""
    training_rows, new = (
        [torch.as_tensor(x) for x in by_view(observed, selected)] for selected in (rows, others)
    )
    generator = torch.Generator().manual_seed(0)
    y = torch.as_tensor(observed.target[rows])
    model = DFGP.build(training_rows, y, "bernoulli", output, INDUCING, generator)
    train(model, STEPS)
    return model.probability(new).numpy(), 0.5


def _pooled(observed: MultiviewData, rows: Index, others: Index) -> tuple[Rows, float]:
    """One sparse GP on the features of all views."""
    y, generator = torch.as_tensor(observed.target[rows]), torch.Generator().manual_seed(0)
    x = torch.as_tensor(observed.x[rows])
    model = SVGP.build(x, y, "bernoulli", INDUCING, generator, ard=False)
    model.fit(SGP_STEPS, RATE)
    return model.predict(torch.as_tensor(observed.x[others]))[0].numpy(), 0.5


def averaged(observed: MultiviewData, rows: Index, others: Index) -> tuple[Rows, float]:
    """SVM-UA: the mean of the views' RBF kernels."""
    train_kernels, test_kernels = [], []
    for x, new in zip(by_view(observed, rows), by_view(observed, others)):
        scaler = StandardScaler().fit(x)
        x, new = scaler.transform(x), scaler.transform(new)
        train_kernels.append(rbf_kernel(x, gamma=0.5 / x.shape[1]))
        test_kernels.append(rbf_kernel(new, x, gamma=0.5 / x.shape[1]))
    machine = SVC(C=SLACK, kernel="precomputed", class_weight="balanced")
    machine.fit(np.mean(train_kernels, axis=0), observed.target[rows])
    return machine.decision_function(np.mean(test_kernels, axis=0)), 0.0


CLASSIFIERS: dict[str, Classify] = {
    "DFGP": partial(_merged, "rbf"),
    "DFGP-WP": partial(_merged, "linear"),
    AVERAGED: averaged,
    "SGP, all features": _pooled,
}
