"""One interface to the latent variable models of a few classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC
from torch import Tensor

from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.optim.ascent import maximize
from scant.studies.mitosis.settings import MitosisSettings

Model = BGPLVM | DGPLVM  # SCLVM is a BGPLVM
PENALTIES = (1.0, 10.0, 100.0)  # of the SVM, between which held-out rows choose
WIDTHS = (0.3, 1.0, 3.0)  # its gamma, in parts of 1 / (columns x variance)
USUAL = (10.0, 1.0)
FOLDS = 3


class Places(NamedTuple):
    """Where rows lie if they are of each class, and what speaks for that class.

    `evidence` is the bound on ln p(y | c) for SCLVM; an SVM's decision for the others, whose
    positions know no class.
    """

    mean: Float[Tensor, "n c q"]
    std: Float[Tensor, "n c q"]
    evidence: Float[np.ndarray, "n c"]


def build(
    s: MitosisSettings,
    name: str,
    z: Float[Tensor, "n k"],
    label: Int[Tensor, " n"],
    n_classes: int,
    generator: torch.Generator,
) -> Model:
    """A model at its starting values.

    Args:
        s: Settings.
        name: One of `scant.studies.mitosis.settings.MODELS`.
        z: Rows to learn from; NaN where missing, but not for dgplvm.
        label: Their classes.
        n_classes: How many.
        generator: A CPU generator.
    """
    q, m = s.n_shared_dims + s.n_private_dims, s.n_inducing
    if name == "dgplvm":
        return DGPLVM.build(z, label, q)
    if name == "bgplvm":
        return BGPLVM.build(z, q, n_classes * m, generator)
    return SCLVM.build(z, label, n_classes, s.n_shared_dims, s.n_private_dims, m, generator)


def trainer(model: Model, steps: int, adam: int | None = None) -> GPLVMTrainer:
    """Steps of Adam, then of L-BFGS; of L-BFGS alone for DGPLVM.

    Args:
        model: To be trained.
        steps: Of both, at most.
        adam: Those of Adam, two thirds of all at most; None: as many.
    """
    most = -(-2 * steps // 3)
    first = most if adam is None else min(adam, most)
    return GPLVMTrainer(model, 0 if isinstance(model, DGPLVM) else first)


def fit(model: Model, steps: int) -> Model:
    """Train it as far as so many steps go."""
    maximize(trainer(model, steps), steps)
    return model


def covariances(model: Model, rows: Int[Tensor, " k"]) -> Float[Tensor, "3 k k"]:
    """The shared and the private part of the kernel between rows, and their sum (Fig. 3.4)."""
    if isinstance(model, SCLVM):
        return torch.stack(model.covariances(rows))
    whole = model.covariance(rows)
    return torch.stack([whole, torch.zeros_like(whole), whole])


def decode(
    model: Model, x: Float[Tensor, "n q"], label: int
) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
    """Mean and variance, noise included, of what was learned, at positions of a class."""
    return model.decode(x, None, label) if isinstance(model, SCLVM) else model.decode(x)


@torch.no_grad()
def generate(
    model: Model, own: Int[Tensor, " m"], label: int, count: int, generator: torch.Generator
) -> Float[Tensor, "count k"]:
    """New rows of a class: decoded draws from where its rows (`own`) lie."""
    if isinstance(model, SCLVM):
        return model.generate(label, count, generator)
    mean, std = model.latent()
    pick = own[torch.randint(len(own), (count,), generator=generator).to(own.device)]
    noise = torch.randn(count, mean.shape[1], generator=generator, dtype=torch.float64)
    return decode(model, mean[pick] + std[pick] * noise.to(mean), label)[0]


class Reader:
    """Reads the classes of new rows off a trained model.

    Args:
        model: Trained.
        label: Classes of the rows that it learned from.
        n_classes: How many classes there are.
        machine: An SVM on its latent positions, for the models that tell no classes apart.
    """

    def __init__(
        self,
        model: Model,
        label: Int[np.ndarray, " n"],
        n_classes: int,
        machine: SVC | None = None,
    ) -> None:
        self.model, self.label, self.n_classes = model, label, n_classes
        self.machine = machine
        if machine is None and not isinstance(model, SCLVM):
            self.machine = weighted_svm(model.latent()[0].cpu().numpy(), label, USUAL)

    def place(self, z: Float[Tensor, "n k"], restarts: int = 1) -> Places:
        """Positions and evidence of new rows under each class."""
        model, c = self.model, self.n_classes
        if isinstance(model, SCLVM):
            results = [model.infer(z, restarts, label=i) for i in range(c)]
            evidence = torch.stack([p.bound for p in results], 1).cpu().numpy()
            mean, std = (torch.stack([getattr(p, k) for p in results], 1) for k in ("mean", "std"))
            return Places(mean, std, evidence)
        if isinstance(model, DGPLVM):
            mean = model.infer(z, restarts)
            std = torch.zeros_like(mean)
        else:
            mean, std, _ = model.infer(z, restarts)
        assert self.machine is not None
        evidence = decisions(self.machine, mean.cpu().numpy(), c)
        mean, std = (t.unsqueeze(1).expand(-1, c, -1) for t in (mean, std))
        return Places(mean, std, evidence)


def weighted_svm(
    x: Float[np.ndarray, "n k"], label: Int[np.ndarray, " n"], how: tuple[float, float]
) -> SVC:
    """An RBF SVM that weighs classes inversely to their rows.

    Args:
        x: Rows.
        label: Their classes.
        how: Penalty C, and gamma in parts of 1 / (columns x variance).
    """
    gamma = how[1] / (x.shape[1] * max(float(x.var()), 1e-12))
    return SVC(C=how[0], gamma=gamma, class_weight="balanced").fit(x, label)


def best_svm(
    x: Float[np.ndarray, "n k"],
    label: Int[np.ndarray, " n"],
    held: Float[np.ndarray, "v k"],
    held_label: Int[np.ndarray, " v"],
    n_classes: int,
) -> tuple[SVC, tuple[float, float]]:
    """The one of a small grid whose average precision of class 0 is best on held-out rows.

    Without such rows it is the usual one.
    """
    if not len(held):
        return weighted_svm(x, label, USUAL), USUAL
    grid = [(penalty, width) for penalty in PENALTIES for width in WIDTHS]
    made = [weighted_svm(x, label, how) for how in grid]
    scores = [
        average_precision_score(held_label == 0, decisions(machine, held, n_classes)[:, 0])
        for machine in made
    ]
    best = int(np.argmax(scores))
    return made[best], grid[best]


def decisions(machine: Any, x: Float[np.ndarray, "n k"], n_classes: int) -> np.ndarray:
    """What speaks for each class; of two classes, the same against and for."""
    if not len(x):  # scikit-learn refuses an empty array
        return np.empty((0, n_classes))
    result = np.asarray(machine.decision_function(x), dtype=np.float64)
    return np.stack([-result, result], 1) if n_classes == 2 else result


class CalibratedClassifier(NamedTuple):
    """From evidence to probabilities: softmax(evidence weights + offset + ln prior)."""

    weights: Float[np.ndarray, "c c"]
    offset: Float[np.ndarray, " c"]
    prior: Float[np.ndarray, " c"]
    threshold: float  # of class 0, from which a row is of it; NaN: its most probable class

    def of(self, evidence: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
        """Probabilities of the classes."""
        odds = evidence @ self.weights + self.offset + np.log(np.maximum(self.prior, 1e-300))
        odds = np.exp(odds - odds.max(1, keepdims=True, initial=-np.inf))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    def decide(self, p: Float[np.ndarray, "n c"]) -> Int[np.ndarray, " n"]:
        """The class that a row is taken for."""
        if np.isnan(self.threshold):
            return np.asarray(p.argmax(1))
        return np.where(p[:, 0] >= self.threshold, 0, 1 + p[:, 1:].argmax(1))


def temperature_scaled(
    evidence: Float[np.ndarray, "v c"],
    label: Int[np.ndarray, " v"],
    prior: Float[np.ndarray, " c"],
    model: Model | None,
) -> CalibratedClassifier:
    """Chances that suit rows not learned from: a temperature for bounds, a regression for others.

    Args:
        evidence: Of those rows; none: nothing is tempered, nor a threshold found.
        label: Their classes.
        prior: With which the chances are to be used.
        model: Whose evidence it is; None: another classifier's.
    """
    c = len(prior)
    weights, offset, threshold = np.eye(c), np.zeros(c), float("nan")
    if len(evidence):
        share = np.bincount(label, minlength=c) / len(label)
        if isinstance(model, SCLVM):
            weights = weights / float(model.calibrate(torch.tensor(evidence), torch.tensor(label)))
        else:
            weights, offset = _regression(evidence, label, c)
            offset = offset - np.log(np.maximum(share, 1e-12))
        free = CalibratedClassifier(weights, offset, prior, threshold)
        threshold = best_threshold(free.of(evidence)[:, 0], label == 0)
    return CalibratedClassifier(weights, offset, prior, threshold)


def _regression(
    evidence: Float[np.ndarray, "v c"], label: Int[np.ndarray, " v"], c: int
) -> tuple[Float[np.ndarray, "c c"], Float[np.ndarray, " c"]]:
    """Platt's: a logistic regression of the classes on the decisions."""
    result = LogisticRegression(C=100.0, max_iter=1000).fit(evidence, label)
    weights, offset = np.zeros((c, c)), np.full(c, -30.0)
    if len(result.classes_) == 2:
        low, high = result.classes_
        weights[:, high], offset[[low, high]] = result.coef_[0], [0.0, result.intercept_[0]]
    else:
        weights[:, result.classes_], offset[result.classes_] = result.coef_.T, result.intercept_
    return weights, offset


def best_threshold(p: Float[np.ndarray, " v"], rare: np.ndarray) -> float:
    """Of the rare class's probability: where F1 is best, half way to the next lower one."""
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(rare[order])
    f1 = 2 * hits / (np.arange(1, len(p) + 1) + rare.sum())
    cut = np.append(p[order][:-1] > p[order][1:], True)  # equal ones cannot be parted
    best = int(np.argmax(np.where(cut, f1, -1.0)))
    low = p[order][best + 1] if best + 1 < len(p) else 0.0
    return float((p[order][best] + low) / 2)
