"""Common interface of the latent variable models of a few classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.svm import SVC
from torch import Tensor

from scant.learners.calibrated import USUAL, CalibratedClassifier, decisions, weighted_svm
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.optim.ascent import maximize
from scant.studies.mitosis.settings import MitosisSettings

Model = BGPLVM | DGPLVM  # SCLVM is a BGPLVM


class Places(NamedTuple):
    """Latent positions of rows under each class, and evidence for that class.

    `evidence` is the bound on ln p(y | c) for SCLVM; an SVM's decision for the others, whose
    positions do not depend on the class.
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
    """Create a model at its starting values.

    Args:
        s: Settings.
        name: One of `scant.studies.mitosis.settings.MODELS`.
        z: Training rows; NaN where missing, but not for dgplvm.
        label: Classes of the rows.
        n_classes: Number of classes.
        generator: A CPU generator.
    """
    q, m = s.n_shared_dims + s.n_private_dims, s.n_inducing
    if name == "dgplvm":
        return DGPLVM.build(z, label, q)
    if name == "bgplvm":
        return BGPLVM.build(z, q, n_classes * m, generator)
    return SCLVM.build(z, label, n_classes, s.n_shared_dims, s.n_private_dims, m, generator)


def trainer(model: Model, steps: int, adam: int | None = None) -> GPLVMTrainer:
    """Return a trainer with Adam, then L-BFGS; L-BFGS alone for DGPLVM.

    Args:
        model: Model to train.
        steps: Maximum number of steps of both.
        adam: Steps of Adam, at most two thirds of all; None: two thirds.
    """
    max_adam = -(-2 * steps // 3)
    n_adam = max_adam if adam is None else min(adam, max_adam)
    return GPLVMTrainer(model, 0 if isinstance(model, DGPLVM) else n_adam)


def fit(model: Model, steps: int) -> Model:
    """Train a model for at most `steps` steps."""
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
    """Predictive mean and variance, including noise, at latent positions of a class."""
    return model.decode(x, None, label) if isinstance(model, SCLVM) else model.decode(x)


@torch.no_grad()
def generate(
    model: Model, class_rows: Int[Tensor, " m"], label: int, count: int, generator: torch.Generator
) -> Float[Tensor, "count k"]:
    """Generate rows of a class: decode draws near its rows (`class_rows`)."""
    if isinstance(model, SCLVM):
        return model.generate(label, count, generator)
    mean, std = model.latent()
    pick = class_rows[
        torch.randint(len(class_rows), (count,), generator=generator).to(class_rows.device)
    ]
    noise = torch.randn(count, mean.shape[1], generator=generator, dtype=torch.float64)
    return decode(model, mean[pick] + std[pick] * noise.to(mean), label)[0]


class Reader:
    """Inference of new rows under each class of a trained model.

    Args:
        model: Trained model.
        label: Classes of the training rows.
        n_classes: Number of classes.
        machine: SVM on latent positions, for models without classes.
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
        """Latent positions and evidence of rows under each class."""
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


def temperature_scaled(
    evidence: Float[np.ndarray, "v c"],
    label: Int[np.ndarray, " v"],
    prior: Float[np.ndarray, " c"],
    model: Model,
) -> CalibratedClassifier:
    """Calibrate a model's evidence: a temperature for bounds, a regression for an SVM's decisions.

    Args:
        evidence: Evidence of validation rows; without any, nothing is calibrated.
        label: Classes of these rows.
        prior: Class probabilities that the result assumes.
        model: The model.
    """
    if not isinstance(model, SCLVM):
        return CalibratedClassifier.fit(evidence, label, prior)
    weights, c = np.eye(len(prior)), len(prior)
    if len(evidence):
        weights /= float(model.calibrate(torch.tensor(evidence), torch.tensor(label)))
    return CalibratedClassifier(weights, np.zeros(c), prior).with_threshold(evidence, label)
