"""The publication's experiments with its models and settings (Kandemir 2015, sections 5.1-5.3).

All models have the settings of the preset "as published", and the same number of Adam steps at one
rate. SGP is FITC, as published; the Student-t process has as many degrees of freedom as DFGP has
neurons. DFGP follows the text. The authors' program instead fixes the variances of the hidden
neurons at 0.01, a noise precision of 10 and the hidden lengthscales.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.metrics import nlpd, nmse
from scant.models.dfgp.model import SINGLE_VIEW_NEURONS
from scant.models.fitc import FITC
from scant.models.student_t import StudentT
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize
from scant.studies.multiview import survival
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.models import Learner
from scant.studies.multiview.preprocessing import ViewTransforms
from scant.studies.multiview.published import SETTINGS, SURVIVAL
from scant.studies.multiview.settings import LAYERED, MODELS, MultiviewSettings
from scant.studies.multiview.simulate.survival import cohort
from scant.studies.multiview.table import of
from scant.studies.published import values

METHODS = {label: name for name, label in MODELS.items()}
LAYERED_METHODS = tuple(MODELS[name] for name in LAYERED)
TISSUE = {"intensity": 176, "texture": 246, "shape": 211, "stain": 105}  # 738 features in all
PATIENTS_SHARE = 0.25  # share of the patients for training
TIMES = 120  # points of a survival curve
Scored = list[tuple[str, str, float]]  # method, metric and value
Rows = Float[np.ndarray, " n"]
Tissue = tuple[MultiviewData, Float[np.ndarray, "n d"]]  # rows with patients, their inputs


def moments(
    s: MultiviewSettings, method: str, x: Tensor, y: Tensor, new: Tensor, seed: int
) -> tuple[Rows, Rows]:
    """Mean and variance of the target, including noise, at new rows of one view.

    Args:
        s: Settings.
        method: One of `METHODS`.
        x: Inputs `"n d"`.
        y: Targets.
        new: Inputs of the new rows.
        seed: Seed of the model's start.
    """
    generator = torch.Generator().manual_seed(seed)
    model: Any
    if method in LAYERED_METHODS:
        model = _layered(s, method, [x], y, generator)
        mean, variance = model.ask([new])
        return mean.numpy(), variance.numpy()
    if method == MODELS["sgp"]:
        model = FITC.build(x, y, s.n_inducing, generator, s.ard)
        target = model.log_density
    else:
        model = StudentT.build(x, y, s.neurons or SINGLE_VIEW_NEURONS, s.ard)
        target = model.elbo
    trainer = AdamLBFGS(model, target, len(y), adam=None, rate=s.learning_rate)
    maximize(trainer, s.max_steps)
    mean, variance = model.predict(new)[:2]
    return mean.numpy(), variance.numpy()


def _layered(
    s: MultiviewSettings,
    method: str,
    views: list[Tensor],
    y: Tensor,
    generator: torch.Generator,
    classes: bool = False,
) -> Learner:
    learner = Learner(
        s,
        METHODS[method],
        views,
        y,
        classes,
        torch.zeros(len(y), dtype=torch.bool),
        generator,
        s.max_steps,
    )
    learner.train(s.max_steps)
    return learner


def level_scores(x: Tensor, y: Rows, new: Tensor, truth: Rows, seed: int) -> Scored:
    """NMSE and NLPD of each model, trained on untransformed values (section 5.1).

    Args:
        x: Training inputs `"n d"`.
        y: Training values.
        new: Inputs of the held-out rows.
        truth: Values of the held-out rows.
        seed: Seed of the models.
    """
    s, result = MultiviewSettings(**values(SETTINGS)), []
    for method in METHODS:
        mean, variance = moments(s, method, x, torch.as_tensor(y), new, seed)
        result += [
            (method, "NMSE", nmse(truth, mean)),
            (method, "NLPD", nlpd(truth, mean, variance)),
        ]
    return result


def event_probability(method: str, views: list[Tensor], y: Tensor, new: list[Tensor]) -> Rows:
    """Probability of class 1 by a network with a neuron for each view (section 5.3)."""
    s = MultiviewSettings(**values(SETTINGS))
    learner = _layered(s, method, views, y, torch.Generator().manual_seed(s.seed), classes=True)
    probability: Rows = learner.ask(new)[0].numpy()
    return probability


def tissue() -> Tissue:
    """Simulate a cohort with the published number of features, and its principal components.

    All features are one view; components are fitted to all rows (section 5.2).
    """
    table = cohort(widths=TISSUE)
    observed = of(table.rename(columns=lambda name: name.replace(".", "_")))
    all_rows, components = np.arange(len(observed)), int(values(SURVIVAL)["n_components"])
    transforms = ViewTransforms.at(observed, observed.names, all_rows, components)
    return observed, transforms.of(observed.x, torch.device("cpu"))[0].numpy()


def survival_scores(observed: MultiviewData, x: Float[np.ndarray, "n d"], seed: int) -> Scored:
    """Scores by patient after training on a quarter of the patients (section 5.2).

    Models learn the untransformed times of patients who died; predictions are averaged over the
    rows of a patient. NMSE covers held-out patients who died, the curve all held-out patients.

    Args:
        observed: Rows with patients and times.
        x: Inputs of the rows.
        seed: Seed of the training patients and of the models.
    """
    s = MultiviewSettings(**values(SURVIVAL))
    shuffled = np.random.default_rng(seed).permutation(len(observed.patients))
    learned = np.isin(observed.patient, shuffled[: round(PATIENTS_SHARE * len(shuffled))])
    train, test = np.flatnonzero(learned & observed.event), np.flatnonzero(~learned)
    inputs, result = torch.as_tensor(x), []
    y = torch.as_tensor(observed.target[train])
    for method in METHODS:
        prediction = moments(s, method, inputs[train], y, inputs[test], seed)
        result += [(method, *score) for score in _by_patient(observed, test, *prediction)]
    return result


def _by_patient(
    observed: MultiviewData, rows: Int[np.ndarray, " n"], mean: Rows, variance: Rows
) -> list[tuple[str, float]]:
    patients = survival.patients(observed, rows, mean, variance)  # of times, not their logarithms
    time, died = patients.time, patients.event
    grid = np.linspace(0, time.max(), TIMES)
    true = survival.kaplan_meier(time, died, grid)[0]
    predicted = survival.kaplan_meier(patients.mean, np.ones(len(time), dtype=bool), grid)[0]
    return [
        ("NMSE by patient", nmse(time[died], patients.mean[died])),
        ("RMSE of the survival curve", float(np.sqrt(np.square(predicted - true).mean()))),
    ]
