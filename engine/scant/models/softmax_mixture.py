"""Stacked mixture of softmax GPs with several kernels (`softmax_gp`).

Lengthscales and amplitudes C of each kernel are selected by cross-validated log probability, and
the kernels' models are stacked (`scant.ensemble`). No kernel is best on all tables: squared
exponential kernels suit smooth classes, the exponential kernel of ranks suits tables on which trees
do well, and linear kernels suit few rows.

    model = SoftmaxMixture.fit(x, label, classes)    # x may have missing values (NaN)
    model.probability(x_new)
    model.held                                       # probabilities of left-out rows
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from scant.ensemble import Ensemble, Sharpened
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.softmax_gp import Inputs, Kernel, Probabilities, Problem, Rows, SoftmaxGP
from scant.predictive import CategoricalPredictive

LANDMARKS = 300
SEARCHED = 1000  # rows used to compare kernels; the final fit uses all rows
FOLDS = 5
LENGTHS = (0.5, 1.0, 2.0, 4.0)  # lengthscales, in typical distances between rows
AMPLITUDES = (10.0, 1.0, 100.0)  # C; the first with all lengthscales, others with the best
STRENGTHS = (0.3, 0.03, 3.0, 30.0)  # C of linear kernels
RELEVANT = 40  # most columns with separate lengthscales
RELEVANCE_ROWS, RELEVANCE_STEPS, RELEVANCE_CLASSES = 150, 20, 3
MIN_PROBABILITY = 1e-12

KERNELS = (
    Kernel("linear", False),
    Kernel("linear", True),
    Kernel("rbf", False),
    Kernel("rbf", True),
    Kernel("laplacian", True),
    Kernel("rbf", True, ard=True),
)

Folds = list[tuple[Int[np.ndarray, " _"], Int[np.ndarray, " _"]]]


@dataclass(frozen=True)
class SoftmaxMixture:
    """Stacked mixture of softmax GPs with different kernels; made by `fit`.

    Attributes:
        inputs: Preprocessing of the columns.
        models: One model for each of `KERNELS` that was fitted.
        ensemble: Their weights and the sharpness of the average.
        rows: Training rows used for cross-validation.
        held: Cross-validated probabilities of these rows.
    """

    inputs: Inputs
    models: tuple[SoftmaxGP, ...]
    ensemble: Ensemble[CategoricalPredictive]
    rows: Int[np.ndarray, " s"]
    held: Float[np.ndarray, "s c"]

    @classmethod
    def fit(
        cls,
        x: Rows,
        label: Int[np.ndarray, " n"],
        classes: int,
        seed: int = 0,
        group: Int[np.ndarray, " n"] | None = None,
    ) -> SoftmaxMixture:
        """Select kernels by cross-validation and fit them to all rows.

        Args:
            x: Columns of similar scale; NaN where missing.
            label: Class of each row, 0 ... classes - 1; at least two rows per class.
            classes: Number of classes.
            seed: Seed for the folds, the landmarks and the cross-validated rows.
            group: Group of each row; groups are left out together.
        """
        rng = np.random.default_rng([seed, 44])
        inputs = Inputs.fit(x)
        rows = _stratified_sample(rng, label, SEARCHED)
        landmarks = np.flatnonzero(
            np.isin(rows, rows[_stratified_sample(rng, label[rows], LANDMARKS)])
        )
        folds = _folds(label[rows], seed, None if group is None else group[rows])
        models, held = [], []
        for start in KERNELS:
            columns = inputs.transform(x, start.ranks)
            if start.ard and not 1 < columns.shape[1] <= RELEVANT:
                continue
            subset = Problem(
                columns[rows], label[rows], classes, landmarks, np.ones(columns.shape[1])
            )
            scales = [subset.scale] * len(folds)
            if start.ard:
                scales = [relevance(subset, training, rng) for training, _ in folds]
            kernel, p = _best(subset, start, folds, scales)
            scale = np.exp(np.mean(np.log(scales), axis=0))
            problem = Problem(columns, label, classes, rows[landmarks], scale)
            models.append(problem.model(kernel))
            held.append(p)
        left_out = by_number(held)
        ensemble = Ensemble.fit(left_out, label[rows], Sharpened)
        return cls(inputs, tuple(models), ensemble, rows, ensemble.combine(left_out).probabilities)

    def probability(self, x: Rows) -> Probabilities:
        """p(c | x) of rows, with the training rows' class frequencies."""
        columns = {ranks: self.inputs.transform(x, ranks) for ranks in (False, True)}
        each = [model.probability(columns[model.kernel.ranks]) for model in self.models]
        return self.ensemble.combine(by_number(each)).probabilities

    def refit(self, x: Rows, label: Int[np.ndarray, " n"], seed: int = 0) -> SoftmaxMixture:
        """Refit to other rows with the same kernels, weights and power."""
        rng = np.random.default_rng([seed, 44])
        inputs, landmarks = Inputs.fit(x), _stratified_sample(rng, label, LANDMARKS)
        models = []
        for old in self.models:
            columns = inputs.transform(x, old.kernel.ranks)
            scale = old.scale if columns.shape[1] == len(old.scale) else np.ones(columns.shape[1])
            problem = Problem(columns, label, self.held.shape[1], landmarks, scale)
            models.append(problem.model(old.kernel))
        return replace(self, inputs=inputs, models=tuple(models))

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for `from_arrays`, which restores the model exactly."""
        arrays = {f"inputs.{k}": v for k, v in vars(self.inputs).items()}
        arrays |= mixture_arrays(self.ensemble)
        arrays |= {"rows": self.rows, "held": self.held}
        for i, model in enumerate(self.models):
            kernel = [["linear", "rbf", "laplacian"].index(model.kernel.form), *model.kernel[1:]]
            arrays[f"{i}.kernel"] = np.array(kernel, dtype=float)
            arrays |= {f"{i}.{k}": v for k, v in vars(model).items() if k != "kernel"}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> SoftmaxMixture:
        """Restore a model from `arrays`."""
        inputs = Inputs(**{k: arrays[f"inputs.{k}"] for k in Inputs.__dataclass_fields__})
        models = []
        for i in range(len(arrays["shares"])):
            form, ranks, ard, length, amplitude = arrays[f"{i}.kernel"].tolist()
            name = ("linear", "rbf", "laplacian")[int(form)]
            parts = ("scale", "landmarks", "coefficients", "constant")
            models.append(
                SoftmaxGP(
                    Kernel(name, bool(ranks), bool(ard), length, amplitude),
                    *(arrays[f"{i}.{part}"] for part in parts),
                )
            )
        ensemble = mixture_of(arrays)
        return cls(inputs, tuple(models), ensemble, arrays["rows"], arrays["held"])


def mixture_arrays(ensemble: Ensemble[CategoricalPredictive]) -> dict[str, np.ndarray]:
    """Arrays for `mixture_of`."""
    meta = ensemble.meta()
    return {"shares": np.array(meta["weights"]), "power": np.array(meta["power"])}


def mixture_of(arrays: Mapping[str, np.ndarray]) -> Ensemble[CategoricalPredictive]:
    """Restore an ensemble of numbered models from `mixture_arrays`."""
    shares = arrays["shares"].tolist()
    names = [str(i) for i in range(len(shares))]
    return Ensemble.from_meta({"weights": shares, "power": arrays["power"]}, names, Sharpened)


def by_number(each: Sequence[Probabilities]) -> dict[str, CategoricalPredictive]:
    """Predictions of numbered models."""
    return {str(i): CategoricalPredictive(p) for i, p in enumerate(each)}


def relevance(
    problem: Problem, training: Int[np.ndarray, " a"], rng: np.random.Generator
) -> Float[np.ndarray, " d"]:
    """Column scales with mean square 1: inverse ARD lengthscales that maximize the evidence.

    They are averaged over binary GPs with Laplace's approximation (`LaplaceGPC`), one class against
    the rest for the largest classes.
    """
    subset = training[_stratified_sample(rng, problem.label[training], RELEVANCE_ROWS)]
    x, label = torch.tensor(problem.x[subset]), problem.label[subset]
    count = np.bincount(label, minlength=problem.classes)
    largest = np.argsort(-count, kind="stable")[: 1 if problem.classes == 2 else RELEVANCE_CLASSES]
    total = np.zeros(problem.x.shape[1])
    for c in largest:
        model = LaplaceGPC.build(x, torch.tensor((label == c).astype(int)), ard=True, prior=Prior())
        model.fit(RELEVANCE_STEPS, 1e-2)
        total += count[c] * model.kernel.base_kernel.lengthscale.detach().numpy().ravel() ** -2
    return np.asarray(np.sqrt(total / total.mean()))


def _best(
    problem: Problem, start: Kernel, folds: Folds, scales: list[np.ndarray]
) -> tuple[Kernel, Probabilities]:
    """Kernel with the best cross-validated log probability, and its probabilities.

    Lengthscales are compared first, then amplitudes with the best lengthscale.
    """
    truth = np.arange(len(problem.x)), problem.label
    if start.form == "linear":
        candidates = [start._replace(amplitude=c) for c in STRENGTHS]
    else:
        candidates = [start._replace(length=s, amplitude=AMPLITUDES[0]) for s in LENGTHS]
    score, best, probabilities = -np.inf, start, np.empty(0)
    while candidates:
        compare_amplitudes = (
            candidates[0].form != "linear" and candidates[0].amplitude == AMPLITUDES[0]
        )
        for kernel in candidates:
            p = _left_out(problem, kernel, folds, scales)
            value = float(np.log(np.maximum(p[truth], MIN_PROBABILITY)).mean())
            if value > score:
                score, best, probabilities = value, kernel, p
        candidates = (
            [best._replace(amplitude=c) for c in AMPLITUDES[1:]] if compare_amplitudes else []
        )
    return best, probabilities


def _left_out(
    problem: Problem, kernel: Kernel, folds: Folds, scales: list[np.ndarray]
) -> Probabilities:
    """Cross-validated class probabilities of all rows."""
    p = np.empty((len(problem.x), problem.classes))
    features: Rows | None = None
    for i, (training, held_out) in enumerate(folds):
        if features is None or scales[i] is not scales[i - 1]:
            features, _ = problem._replace(scale=scales[i]).design(kernel)
        weights, constant = problem.fit_mode(kernel, features, training)
        f = features[held_out] @ weights + constant
        p[held_out] = np.exp(f - f.max(1, keepdims=True))
    return np.asarray(p / p.sum(1, keepdims=True))


def _stratified_sample(
    rng: np.random.Generator, label: Int[np.ndarray, " n"], size: int
) -> Int[np.ndarray, " m"]:
    """Sorted stratified sample of about `size` rows, with at least two per class."""
    if len(label) <= size:
        return np.arange(len(label))
    by_class = (rng.permutation(np.flatnonzero(label == c)) for c in np.unique(label))
    sample = [rows[: max(2, round(size * len(rows) / len(label)))] for rows in by_class]
    return np.sort(np.concatenate(sample))


def _folds(label: Int[np.ndarray, " n"], seed: int, group: Int[np.ndarray, " n"] | None) -> Folds:
    """Stratified cross-validation folds that keep groups together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # for classes with fewer rows than folds
        if group is None or len(np.unique(group)) < FOLDS:
            return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(label, label))
        splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        return list(splitter.split(label, label, group))
