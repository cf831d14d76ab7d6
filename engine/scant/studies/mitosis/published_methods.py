"""Methods of the publication's comparison (Yousefi 2021, Table 3.1) on a split of the slides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from torch import Tensor

from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.dgplvm import DGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.optim.ascent import Convergence, maximize
from scant.studies.mitosis import models
from scant.studies.mitosis.published import SETTINGS
from scant.studies.mitosis.published_data import Case, Split
from scant.studies.mitosis.settings import MODELS, MitosisSettings
from scant.studies.mitosis.study import TOLERANCE
from scant.studies.published import values

AS_PUBLISHED = ", as published"  # methods of the preset, which predict at their own threshold
SPACES, DIMENSIONS = (2, 8), 10  # shared and private dimensions, and all; published: 5 and 5
COMPONENTS = 20  # of latent models: on validation slides 15 were as good, 40 and 60 worse
WIDER = (20, 40)  # candidate numbers of components for classifiers
LATENT_GRID = [(c, g) for c in (1.0, 10.0) for g in (0.03, 0.1, 0.3)]  # SVMs on positions
DISCRIMINANT_ROWS = 1000  # training rows of DGPLVM; the cost is cubic in them


class Rows:
    """Pixels of the training, validation and test rows of a split."""

    def __init__(self, case: Case, parts: Split) -> None:
        self.case = case
        self.index = (parts.learn, parts.choose, parts.test)
        self.learn, self.choose, self.test = (case.x[rows] for rows in self.index)
        self.rare = [case.rare[rows] for rows in self.index]

    def columns(self, components: int, unit: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Return the transformation to principal components of the training rows."""
        pca = PCA(min(components, *self.learn.shape), whiten=unit, random_state=0)
        transform: Callable[[np.ndarray], np.ndarray] = pca.fit(self.learn).transform
        return transform


Scores = Iterator[tuple[str, np.ndarray, np.ndarray]]
Way = Callable[[Rows, int], Scores]


def ways(published: bool) -> list[Way]:
    """Return functions that yield a method's name, and scores of validation and test rows.

    Several results of one method are candidates; the best one on validation rows is chosen.
    """
    results: list[Way] = [sclvm, bgplvm, dgplvm, weighted_svm, weighted_logistic]
    return results + [sclvm_as_published, bgplvm_as_published, dgplvm_as_published] * published


def sclvm(rows: Rows, seed: int) -> Scores:
    """Log odds of the rare class, of the original images and averaged over eight symmetries."""
    columns = rows.columns(COMPONENTS)
    model = _sclvm(rows, columns(rows.learn), rows.case.inducing, seed)
    symmetric = (columns(_turned(part)) for part in (rows.choose, rows.test))
    odds = [_odds(model, x).reshape(8, -1) for x in symmetric]
    yield "SCLVM", odds[0][0], odds[1][0]
    yield "SCLVM, asked in eight turns", odds[0].mean(0), odds[1].mean(0)


def sclvm_as_published(rows: Rows, seed: int) -> Scores:
    """Log odds of the rare class."""
    model = _as_published("sclvm", rows, np.arange(len(rows.learn)), seed)
    assert isinstance(model, SCLVM)
    yield f"{MODELS['sclvm']}{AS_PUBLISHED}", _odds(model, rows.choose), _odds(model, rows.test)


def bgplvm(rows: Rows, seed: int) -> Scores:
    """A weighted SVM on positions in the latent space of all classes."""
    columns = rows.columns(COMPONENTS)
    x = [torch.as_tensor(columns(part)) for part in (rows.learn, rows.choose, rows.test)]
    generator = torch.Generator().manual_seed(seed)
    model = BGPLVM.build(x[0], DIMENSIONS, 2 * rows.case.inducing, generator)
    _train(model, rows.case.steps)
    z = [model.infer(part, 1).mean for part in x[1:]]
    yield from _on_positions(MODELS["bgplvm"], model, z, rows.rare[0])


def bgplvm_as_published(rows: Rows, seed: int) -> Scores:
    """A weighted SVM on positions in the latent space of all classes."""
    model = _as_published("bgplvm", rows, np.arange(len(rows.learn)), seed)
    assert isinstance(model, BGPLVM)
    z = [model.infer(torch.as_tensor(part), 1).mean for part in (rows.choose, rows.test)]
    yield from _on_positions(f"{MODELS['bgplvm']}{AS_PUBLISHED}", model, z, rows.rare[0])


def dgplvm(rows: Rows, seed: int) -> Scores:
    """A weighted SVM on positions of a discriminative model."""
    columns, selected = rows.columns(COMPONENTS), _discriminant(rows.rare[0])
    x = [torch.as_tensor(columns(part)) for part in (rows.learn[selected], rows.choose, rows.test)]
    rare = rows.rare[0][selected]
    model = DGPLVM.build(x[0], torch.as_tensor(rare).long(), DIMENSIONS, scale=0.1)
    maximize(GPLVMTrainer(model, adam=0), rows.case.steps // 4)
    yield from _on_positions(
        MODELS["dgplvm"], model, [model.infer(part, 1, 15) for part in x[1:]], rare
    )


def dgplvm_as_published(rows: Rows, seed: int) -> Scores:
    """A weighted SVM on positions of a discriminative model of fewer rows."""
    selected = _discriminant(rows.rare[0])
    model = _as_published("dgplvm", rows, selected, seed)
    assert isinstance(model, DGPLVM)
    z = [model.infer(torch.as_tensor(part), 1) for part in (rows.choose, rows.test)]
    yield from _on_positions(f"{MODELS['dgplvm']}{AS_PUBLISHED}", model, z, rows.rare[0][selected])


def weighted_svm(rows: Rows, seed: int) -> Scores:
    """A weighted SVM on components of unit variance; also with eight symmetries per row."""
    rare, grid = rows.rare[0], list(product((1, 10), (0.003, 0.01, 0.03, 0.1)))
    for count in WIDER:
        columns = rows.columns(count, unit=True)
        x = [columns(part) for part in (rows.learn, rows.choose, rows.test)]
        yield from _machines("weighted SVM", x, rare, grid)
    columns = rows.columns(COMPONENTS, unit=True)
    x = [columns(_turned(part)) for part in (rows.learn[rare], rows.choose, rows.test)]
    x[0] = np.concatenate([x[0], columns(rows.learn[~rare])])
    is_rare = np.arange(len(x[0])) < 8 * rare.sum()
    for _, choose, test in _machines("", x, is_rare, product((10,), (0.01, 0.03))):
        mean = (part.reshape(8, -1).mean(0) for part in (choose, test))
        yield "weighted SVM, learned and asked in eight turns", *mean


def weighted_logistic(rows: Rows, seed: int) -> Scores:
    """Weighted logistic regression on components of unit variance."""
    for count, strength in product(WIDER, (0.01, 0.1, 1.0)):
        columns = rows.columns(count, unit=True)
        model = LogisticRegression(C=strength, class_weight="balanced", max_iter=500)
        model.fit(columns(rows.learn), rows.rare[0])
        choose, test = (model.decision_function(columns(x)) for x in (rows.choose, rows.test))
        yield "weighted logistic regression", choose, test


def _sclvm(rows: Rows, x: np.ndarray, inducing: int, seed: int) -> SCLVM:
    generator = torch.Generator().manual_seed(seed)
    label = torch.as_tensor(rows.rare[0]).long()
    model = SCLVM.build(torch.as_tensor(x), label, 2, *SPACES, inducing, generator)
    _train(model, rows.case.steps)
    return model


def _odds(model: SCLVM, x: np.ndarray) -> np.ndarray:
    """Log odds of class 1 with the class frequencies of the training rows."""
    evidence, prior = model.class_log_evidence(torch.as_tensor(x), 1), model.prior().log()
    return np.asarray(evidence[:, 1] - evidence[:, 0] + prior[1] - prior[0])


def _as_published(
    name: str, rows: Rows, selected: Int[np.ndarray, " n"], seed: int
) -> BGPLVM | DGPLVM:
    """Train a model of the preset "as published" on the rows `selected`, like the study."""
    s = MitosisSettings(**values(SETTINGS) | {"model": name, "max_steps": rows.case.most})
    x, label = torch.as_tensor(rows.learn[selected]), torch.as_tensor(rows.rare[0][selected]).long()
    model = models.build(s, name, x, label, 2, torch.Generator().manual_seed(seed))
    train_to_convergence(model, s)
    return model


def train_to_convergence(model: BGPLVM | DGPLVM, s: MitosisSettings) -> list[float]:
    """Train until the bound per row stops rising for `patience` steps, or to `max_steps`.

    Returns:
        The ELBO of each step in nats.
    """
    rule = Convergence()

    def done(elbo: float) -> bool:
        rule.gains(elbo / len(model.label), TOLERANCE)
        return rule.reached(s.patience)

    return maximize(models.trainer(model, s.max_steps, s.adam_steps), s.max_steps, done)


def _discriminant(rare: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " k"]:
    """`DISCRIMINANT_ROWS` rows, at most half of them of the rare class."""
    n_rare = min(int(rare.sum()), DISCRIMINANT_ROWS // 2)
    others = np.flatnonzero(~rare)[: DISCRIMINANT_ROWS - n_rare]
    return np.concatenate([np.flatnonzero(rare)[:n_rare], others])


def _on_positions(
    name: str, model: BGPLVM | DGPLVM, z: list[Tensor], rare: Bool[np.ndarray, " n"]
) -> Scores:
    """Fit weighted SVMs to latent positions of training rows, and score other positions."""
    x = [np.asarray(part) for part in (model.latent()[0], *z)]
    yield from _machines(name, x, rare, LATENT_GRID)


def _machines(
    name: str, x: list[np.ndarray], rare: np.ndarray, grid: Iterable[tuple[float, float]]
) -> Scores:
    """Fit class-weighted SVMs of several strengths and widths."""
    for strength, gamma in grid:
        model = SVC(C=strength, gamma=gamma, class_weight="balanced").fit(x[0], rare)
        yield name, model.decision_function(x[1]), model.decision_function(x[2])


def _turned(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "8*n d"]:
    """The eight symmetries of square images; first the original images."""
    side = round(x.shape[1] ** 0.5)
    images = x.reshape(-1, side, side)
    mirrored = (images, images[:, :, ::-1])
    symmetries = [np.rot90(image, k, (1, 2)) for image in mirrored for k in range(4)]
    return np.concatenate(symmetries).reshape(8 * len(x), -1)


def _train(model: BGPLVM, steps: int) -> None:
    """Train with Adam; L-BFGS stays at linear functions (`scant.models.gplvm.training`)."""
    maximize(GPLVMTrainer(model, adam=steps), steps)
