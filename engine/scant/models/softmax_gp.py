"""Gaussian process classification with a softmax, and a mixture of such models of several kernels.

    p(c | x) = softmax(f(x))_c,    f_c ~ GP(0, C k) for each class

f is at the mode of its posterior (Rasmussen and Williams 2006, GPML, section 3.5), among functions
of the landmarks' kernels (the subset of regressors, GPML 8.3.1); a constant is free. Kernels, their
lengthscales and amplitudes C are compared by the log probability of rows left out, and what comes
of each kernel is mixed by it (`scant.inference.stacking`). In these tables neither kernel is best:
squared exponential ones are for smooth classes, the exponential one of ranks is for what trees
are good at, linear ones for few rows.

    model = SoftmaxMixture.fit(x, label, classes)    # x may have gaps (NaN)
    model.probability(x_new)
    model.held                                       # the same of rows, by models without them
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from scant.inference import stacking
from scant.models.laplace.classifier import LaplaceGPC, Prior

LANDMARKS = 300
SEARCHED = 1000  # rows by which kernels are compared; all are learned from afterwards
FOLDS = 5
LENGTHS = (0.5, 1.0, 2.0, 4.0)  # in units of the distance of two rows
AMPLITUDES = (10.0, 1.0, 100.0)  # C; the first with every lengthscale, others with the best
STRENGTHS = (0.3, 0.03, 3.0, 30.0)  # C of linear kernels
RELEVANT = 40  # columns up to which each has a lengthscale of its own
RELEVANCE_ROWS, RELEVANCE_STEPS, RELEVANCE_CLASSES = 150, 20, 3
QUANTILES = 101
FARTHEST = 5.0  # deviations at which a value is cut
STEPS = 100  # of L-BFGS, to a mode
SURE = 1e-12

Rows = Float[np.ndarray, "n d"]
Chances = Float[np.ndarray, "n c"]


@dataclass(frozen=True)
class Inputs:
    """From columns with gaps to standardized ones, or to ranks of unit variance.

    Attributes:
        median: Of each column, in place of what is missing.
        center: Its mean.
        scale: Its deviation.
        quantiles: Its distribution, by which ranks are given.
        gaps: Columns beside which another one says whether a value is missing.
        used: Columns that vary.
    """

    median: Float[np.ndarray, " d"]
    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    quantiles: Float[np.ndarray, "q d"]
    gaps: Bool[np.ndarray, " d"]
    used: Bool[np.ndarray, " d"]

    @classmethod
    def of(cls, x: Rows) -> Inputs:
        """Those of some rows; a column without a value is left out."""
        gaps = np.isnan(x).any(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a value
            median = np.nan_to_num(np.nanmedian(x, axis=0))
        filled = np.where(np.isnan(x), median, x)
        scale = filled.std(0)
        at = np.linspace(0, 1, min(len(x), QUANTILES))
        used = scale > 1e-9 * np.maximum(1.0, np.abs(median))
        return cls(
            median, filled.mean(0), np.where(used, scale, 1.0),
            np.quantile(filled, at, axis=0), gaps, used,
        )  # fmt: skip

    def of_kind(self, x: Rows, ranks: bool) -> Float[np.ndarray, "n e"]:
        """Standardized values or ranks, and what is missing."""
        filled = np.where(np.isnan(x), self.median, x)
        if ranks:
            made = np.column_stack([_rank(filled[:, j], q) for j, q in enumerate(self.quantiles.T)])
        else:
            made = np.clip((filled - self.center) / self.scale, -FARTHEST, FARTHEST)
        return np.hstack([made[:, self.used], np.isnan(x[:, self.gaps]).astype(float)])


def _rank(x: Float[np.ndarray, " n"], quantiles: Float[np.ndarray, " q"]) -> Any:
    """Where values lie among quantiles, ties in their middle; mean 0 and variance 1."""
    at = np.linspace(0, 1, len(quantiles))
    both = np.interp(x, quantiles, at) - np.interp(-x, -quantiles[::-1], -at[::-1])
    return (both / 2 - 0.5) * 12**0.5


class Kernel(NamedTuple):
    """A kernel of the columns, with its amplitude.

    `length` is in units of the distance of two rows: gamma is 1 / (2 d length^2) or 1 / (d length)
    in d columns.
    """

    form: str  # linear, rbf, laplacian
    ranks: bool
    ard: bool = False
    length: float = 1.0
    amplitude: float = 1.0

    def __call__(self, a: Rows, b: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
        d = a.shape[1]
        if self.form == "rbf":
            return np.asarray(rbf_kernel(a, b, gamma=0.5 / (d * self.length**2)))
        return np.asarray(laplacian_kernel(a, b, gamma=1 / (d * self.length)))


KERNELS = (
    Kernel("linear", False),
    Kernel("linear", True),
    Kernel("rbf", False),
    Kernel("rbf", True),
    Kernel("laplacian", True),
    Kernel("rbf", True, ard=True),
)


@dataclass(frozen=True)
class SoftmaxGP:
    """One kernel's model.

    Attributes:
        kernel: Of it.
        scale: Of the columns, before the kernel.
        landmarks: Rows, scaled; none of a linear kernel.
        coefficients: Of their kernels, or of the columns.
        constant: Of each class.
    """

    kernel: Kernel
    scale: Float[np.ndarray, " d"]
    landmarks: Float[np.ndarray, "m d"]
    coefficients: Float[np.ndarray, "e c"]
    constant: Float[np.ndarray, " c"]

    def probability(self, x: Rows) -> Chances:
        """p(c | x), at the mode."""
        seen = x * self.scale
        if len(self.landmarks):
            seen = self.kernel(seen, self.landmarks)
        f = seen @ self.coefficients + self.constant
        p = np.exp(f - f.max(1, keepdims=True))
        return np.asarray(p / p.sum(1, keepdims=True))


class Problem(NamedTuple):
    """Rows to learn from, the landmarks among them, and the scale of their columns."""

    x: Rows
    label: Int[np.ndarray, " n"]
    classes: int
    landmarks: Int[np.ndarray, " m"]
    scale: Float[np.ndarray, " d"]

    def design(self, kernel: Kernel) -> tuple[Rows, Float[np.ndarray, "m m"] | None]:
        """Columns whose inner products are the kernel, and the landmarks' factor behind them."""
        scaled = self.x * self.scale
        if kernel.form == "linear":
            return scaled, None
        near = scaled[self.landmarks]
        inner = kernel(near, near)
        factor = cholesky(inner + 1e-6 * np.eye(len(inner)), lower=True)
        made = solve_triangular(factor, kernel(scaled, near).T, lower=True).T
        return np.asarray(made), np.asarray(factor)

    def learned(
        self, kernel: Kernel, made: Rows, rows: Int[np.ndarray, " k"]
    ) -> tuple[Float[np.ndarray, "e c"], Float[np.ndarray, " c"]]:
        """Coefficients and constants of the mode, of some rows."""
        machine = LogisticRegression(C=kernel.amplitude, tol=1e-3, max_iter=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # near enough by then
            machine.fit(made[rows], self.label[rows])
        at, two = machine.classes_, len(machine.classes_) == 2
        weights = np.zeros((made.shape[1], self.classes))
        constant = np.full(self.classes, -30.0)  # of a class without a row
        weights[:, at] = (
            np.stack([0 * machine.coef_[0], machine.coef_[0]], 1) if two else (machine.coef_.T)
        )
        constant[at] = [0.0, machine.intercept_[0]] if two else machine.intercept_
        return weights, constant

    def model(self, kernel: Kernel) -> SoftmaxGP:
        """Learned from all rows."""
        made, factor = self.design(kernel)
        weights, constant = self.learned(kernel, made, np.arange(len(made)))
        if factor is None:
            return SoftmaxGP(kernel, self.scale, self.x[:0], weights, constant)
        weights = np.asarray(solve_triangular(factor, weights, lower=True, trans="T"))
        near = self.x[self.landmarks] * self.scale
        return SoftmaxGP(kernel, self.scale, near, weights, constant)


Folds = list[tuple[Int[np.ndarray, " _"], Int[np.ndarray, " _"]]]


@dataclass(frozen=True)
class SoftmaxMixture:
    """See the module; made by `fit`.

    Attributes:
        inputs: How columns are taken.
        models: One for each of `KERNELS` that was tried.
        shares: Of them in the mixture.
        power: To which averaged probabilities are raised.
        rows: By which kernels were compared, of those learned from.
        held: Probabilities of these rows by models that had not seen them.
    """

    inputs: Inputs
    models: tuple[SoftmaxGP, ...]
    shares: Float[np.ndarray, " k"]
    power: float
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
        """Learned from rows.

        Args:
            x: Columns, best of like scale; NaN where missing.
            label: Classes of the rows, 0 ... classes - 1; each has two rows at least.
            classes: How many.
            seed: Of folds, landmarks, and the rows by which kernels are compared.
            group: Rows of one number are left out together.
        """
        rng = np.random.default_rng([seed, 44])
        inputs = Inputs.of(x)
        rows = _drawn(rng, label, SEARCHED)
        near = np.flatnonzero(np.isin(rows, rows[_drawn(rng, label[rows], LANDMARKS)]))
        folds = _folds(label[rows], seed, None if group is None else group[rows])
        models, held = [], []
        for start in KERNELS:
            made = inputs.of_kind(x, start.ranks)
            if start.ard and not 1 < made.shape[1] <= RELEVANT:
                continue
            some = Problem(made[rows], label[rows], classes, near, np.ones(made.shape[1]))
            scales = [some.scale] * len(folds)
            if start.ard:
                scales = [relevance(some, seen, rng) for seen, _ in folds]
            kernel, p = _best(some, start, folds, scales)
            scale = np.exp(np.mean(np.log(scales), axis=0))
            whole = Problem(made, label, classes, rows[near], scale)
            models.append(whole.model(kernel))
            held.append(p)
        truth = label[rows]
        right = np.stack([p[np.arange(len(p)), truth] for p in held], 1)
        shares = stacking.weights(np.log(np.maximum(right, SURE)))
        mixed = np.tensordot(shares, np.stack(held), 1)
        power = stacking.sharpness(mixed, truth)
        held_out = stacking.sharpened(mixed, power)
        return cls(inputs, tuple(models), shares, power, rows, held_out)

    def probability(self, x: Rows) -> Chances:
        """p(c | x) of rows, with the shares of the classes learned from."""
        kinds = {ranks: self.inputs.of_kind(x, ranks) for ranks in (False, True)}
        each = [model.probability(kinds[model.kernel.ranks]) for model in self.models]
        return stacking.sharpened(np.tensordot(self.shares, np.stack(each), 1), self.power)

    def again(self, x: Rows, label: Int[np.ndarray, " n"], seed: int = 0) -> SoftmaxMixture:
        """The same kernels, shares and temperature, learned from other rows."""
        rng = np.random.default_rng([seed, 44])
        inputs, near = Inputs.of(x), _drawn(rng, label, LANDMARKS)
        models = []
        for old in self.models:
            made = inputs.of_kind(x, old.kernel.ranks)
            scale = old.scale if made.shape[1] == len(old.scale) else np.ones(made.shape[1])
            problem = Problem(made, label, self.held.shape[1], near, scale)
            models.append(problem.model(old.kernel))
        return replace(self, inputs=inputs, models=tuple(models))

    def arrays(self) -> dict[str, np.ndarray]:
        """What `of_arrays` makes it of, bit by bit."""
        own = {f"inputs.{k}": v for k, v in vars(self.inputs).items()}
        own |= {"shares": self.shares, "power": np.array(self.power)}
        own |= {"rows": self.rows, "held": self.held}
        for i, model in enumerate(self.models):
            kernel = [["linear", "rbf", "laplacian"].index(model.kernel.form), *model.kernel[1:]]
            own[f"{i}.kernel"] = np.array(kernel, dtype=float)
            own |= {f"{i}.{k}": v for k, v in vars(model).items() if k != "kernel"}
        return own

    @classmethod
    def of_arrays(cls, kept: dict[str, np.ndarray]) -> SoftmaxMixture:
        """The inverse of `arrays`."""
        inputs = Inputs(**{k: kept[f"inputs.{k}"] for k in Inputs.__dataclass_fields__})
        models = []
        for i in range(len(kept["shares"])):
            form, ranks, ard, length, amplitude = kept[f"{i}.kernel"].tolist()
            name = ("linear", "rbf", "laplacian")[int(form)]
            parts = ("scale", "landmarks", "coefficients", "constant")
            models.append(
                SoftmaxGP(
                    Kernel(name, bool(ranks), bool(ard), length, amplitude),
                    *(kept[f"{i}.{part}"] for part in parts),
                )
            )
        power = float(kept["power"])
        return cls(inputs, tuple(models), kept["shares"], power, kept["rows"], kept["held"])


def relevance(
    problem: Problem, seen: Int[np.ndarray, " a"], rng: np.random.Generator
) -> Float[np.ndarray, " d"]:
    """What to scale columns by, mean square 1: their inverse lengthscales, by the evidence.

    A binary GP by Laplace's approximation has a lengthscale for each column (`LaplaceGPC`); of more
    classes some are each set against the rest.
    """
    some = seen[_drawn(rng, problem.label[seen], RELEVANCE_ROWS)]
    x, label = torch.tensor(problem.x[some]), problem.label[some]
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
) -> tuple[Kernel, Chances]:
    """The kernel by which rows left out are likeliest, and their probabilities.

    Lengthscales are compared first, then amplitudes with the best of them.
    """
    truth = np.arange(len(problem.x)), problem.label
    if start.form == "linear":
        tried = [start._replace(amplitude=c) for c in STRENGTHS]
    else:
        tried = [start._replace(length=s, amplitude=AMPLITUDES[0]) for s in LENGTHS]
    score, best, chances = -np.inf, start, np.empty(0)
    while tried:
        first = tried[0].form != "linear" and tried[0].amplitude == AMPLITUDES[0]
        for kernel in tried:
            p = _left_out(problem, kernel, folds, scales)
            value = float(np.log(np.maximum(p[truth], SURE)).mean())
            if value > score:
                score, best, chances = value, kernel, p
        tried = [best._replace(amplitude=c) for c in AMPLITUDES[1:]] if first else []
    return best, chances


def _left_out(problem: Problem, kernel: Kernel, folds: Folds, scales: list[np.ndarray]) -> Chances:
    """Probabilities of rows by models that have not seen them."""
    p = np.empty((len(problem.x), problem.classes))
    made: Rows | None = None
    for i, (seen, left) in enumerate(folds):
        if made is None or scales[i] is not scales[i - 1]:
            made, _ = problem._replace(scale=scales[i]).design(kernel)
        weights, constant = problem.learned(kernel, made, seen)
        f = made[left] @ weights + constant
        p[left] = np.exp(f - f.max(1, keepdims=True))
    return np.asarray(p / p.sum(1, keepdims=True))


def _drawn(
    rng: np.random.Generator, label: Int[np.ndarray, " n"], most: int
) -> Int[np.ndarray, " m"]:
    """About so many rows, in order: of each class its share, and two at least."""
    if len(label) <= most:
        return np.arange(len(label))
    own = (rng.permutation(np.flatnonzero(label == c)) for c in np.unique(label))
    kept = [rows[: max(2, round(most * len(rows) / len(label)))] for rows in own]
    return np.sort(np.concatenate(kept))


def _folds(label: Int[np.ndarray, " n"], seed: int, group: Int[np.ndarray, " n"] | None) -> Folds:
    """Parts of rows to learn from and to leave out, with classes alike, groups whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with fewer rows than folds
        if group is None or len(np.unique(group)) < FOLDS:
            return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(label, label))
        cut = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        return list(cut.split(label, label, group))
