"""The rows of a table as the models learn them, and a model that has learned from them.

What reports, answers and the methods compared are made from; `Study` makes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.ensemble.stacking import best_expected_threshold
from scant.errors import BadInput
from scant.learners.calibrated import USUAL, CalibratedClassifier, best_svm, decisions
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_gp import SoftmaxMixture
from scant.studies.auto import AUTO, Choice
from scant.studies.learned_region import LearnedRegion
from scant.studies.mitosis import models
from scant.studies.mitosis import splits as rows
from scant.studies.mitosis.classifier import (
    Classifier,
    best_share,
    doubted,
    weighted,
)
from scant.studies.mitosis.cost import MOST_KNOWN
from scant.studies.mitosis.entry import STRIP
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import BOTH, GP, LATENT, PRIORS, MitosisSettings
from scant.studies.mitosis.sight import Sight
from scant.studies.mitosis.splits import Split

PICTURED = 50  # held-out rows of each class whose images are kept


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Of the run.
        metadata: What labels the arrays on a page (`splits.metadata_of`).
        label: Classes of the rows, the rare one 0.
        z: Pixels or features of the rows as they are learned; NaN where missing.
        split: Rows by what they are for.
        columns: From the table's columns to `z`, and back.
        image: Height and width of images; None: rows are features.
        places: Of the rows in the table.
        sight: From images to features of a network; None: classifiers are given `z`.
        network: Those features of the rows.
        joined: How many of them the latent variable model learns.
        group: Of the rows; None: they have none, or training has ended.
        pictured: Rows whose images are kept.
        images: Those images.
        shares: Of the classes in the table.
        device: On which models are trained.
    """

    settings: MitosisSettings
    metadata: dict[str, Any]
    label: Int[np.ndarray, " n"]
    z: Float[np.ndarray, "n k"]
    split: Split
    columns: Columns
    image: tuple[int, int] | None
    places: Int[np.ndarray, " n"]
    pictured: Int[np.ndarray, " m"]
    images: Float[np.ndarray, "m d"]
    shares: Float[np.ndarray, " c"]
    device: torch.device
    sight: Sight | None = None
    network: Float[np.ndarray, "n e"] | None = None
    joined: int = 0
    group: Int[np.ndarray, " n"] | None = None

    @property
    def seen(self) -> Float[np.ndarray, "n _"]:
        """The rows as classifiers are given them."""
        return self.z if self.network is None else np.hstack([self.z, self.network])

    @property
    def widths(self) -> list[int]:
        """Columns of `seen` that are the latent variable model's, and the network's."""
        return [part.shape[1] for part in (self.z, self.network) if part is not None]

    @property
    def width(self) -> int:
        """The first columns of `seen`, which the latent variable model learns."""
        return self.z.shape[1] + self.joined

    def look(self, x: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m _"]:
        """Rows in the table's units, as classifiers are given them."""
        z = self.columns.forward(x)
        return z if self.sight is None else np.hstack([z, self.sight.forward(x)])

    @property
    def n_classes(self) -> int:
        return len(self.metadata["classes"])

    @property
    def train(self) -> Int[np.ndarray, " l"]:
        """Rows that the latent variable model learns from."""
        split = self.split
        return split.learnt if split.modeled is None else split.modeled

    @cached_property
    def known(self) -> Int[np.ndarray, " k"]:
        """Rows whose classes are known: those learned from, and those spared."""
        return np.union1d(self.split.learnt, self.split.validation).astype(int)

    @property
    def test(self) -> Int[np.ndarray, " t"]:
        return self.split.test

    @cached_property
    def region(self) -> LearnedRegion:
        """Where rows were learned from."""
        return LearnedRegion(self.z[self.split.learnt])

    def given(self, which: Int[np.ndarray, " m"], name: str = "") -> torch.Tensor:
        """Rows as a model is given them; dgplvm takes no missing values."""
        z = self.seen[which, : self.width]
        if (name or self.settings.model) == "dgplvm":
            z = self.filled(z)
        return torch.tensor(z, dtype=torch.float64).to(self.device)

    def filled(self, z: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
        """Rows without gaps: what is missing is the mean of the rows that are learned from."""
        usual = np.nanmean(self.seen[self.train, : z.shape[1]], axis=0)
        return np.where(np.isfinite(z), z, usual)

    def drawn(self, z: Float[np.ndarray, "m k"]) -> np.ndarray:
        """What was learned as the table shows it: images in whole shades, or features."""
        x = self.columns.back(z[:, : self.z.shape[1]])
        if self.image is None:
            return x
        shades = np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES
        return shades.reshape(len(z), *self.image)

    def picture(self, row: int) -> np.ndarray:
        """A row in the table's units; the stored image itself where there is one."""
        at = int(np.searchsorted(self.pictured, row))
        if self.image is not None and at < len(self.pictured) and self.pictured[at] == row:
            return self.images[at].reshape(self.image)
        return self.drawn(self.filled(self.z[[row]]))[0]

    def prior(self, train: Int[np.ndarray, " m"]) -> Float[np.ndarray, " c"]:
        """Shares of the classes before a row is seen, as the settings want them."""
        if self.settings.prior == PRIORS[2]:
            return np.full(self.n_classes, 1 / self.n_classes)
        if self.settings.prior == PRIORS[1]:
            return self.shares
        own = self.split.learnt if train is self.train else train
        return np.bincount(self.label[own], minlength=self.n_classes) / len(own)


@dataclass(frozen=True)
class FittedMitosis:
    """A model of prepared rows; `reader` and `chances` are None until training has ended."""

    data: Prepared
    model: models.Model
    reader: models.Reader | None
    chances: Classifier | None

    def ask(
        self, z: torch.Tensor, seen: Float[np.ndarray, "n _"], restarts: int = 1
    ) -> tuple[models.Places, np.ndarray]:
        """Where rows lie under each class, and the classes' probabilities.

        Args:
            z: Rows as the latent variable model is given them.
            seen: The same as classifiers are given them.
            restarts: Of the search for their places.

        Raises:
            BadInput: The study is not fitted yet.
        """
        if self.reader is None or self.chances is None:
            raise BadInput("This run has not ended yet, so that nothing can be asked of it.")
        result = self.reader.place(z, restarts)
        return result, self.chances.of(seen, result.evidence)

    def probabilities(self, seen: Float[np.ndarray, "n _"]) -> Float[np.ndarray, "n c"]:
        """Of the classes of rows; where they lie is only found if it counts."""
        if self.chances is not None and not self.chances.share:
            return self.chances.of(seen, None)
        z = seen[:, : self.data.width]
        own = self.data.filled(z) if self.data.settings.model == "dgplvm" else z
        return self.ask(torch.tensor(own).to(self.data.device), seen)[1]

    def generate(self, label: int, count: int, seed: int) -> np.ndarray:
        """New rows of a class, as images where there are images."""
        data = self.data
        own = torch.as_tensor(np.flatnonzero(data.label[data.train] == label)).to(data.device)
        generator = torch.Generator().manual_seed(seed)
        z = models.generate(self.model, own, label, count, generator)
        return data.drawn(z.detach().cpu().numpy())


def pictured(label: Int[np.ndarray, " n"], split: Split, n_classes: int) -> Int[np.ndarray, " m"]:
    """Rows whose images are kept: those beside generated ones, and some held out."""
    strip = split.learnt[rows.shown(label[split.learnt], STRIP * n_classes)]
    held = [split.test[label[split.test] == c][:PICTURED] for c in range(n_classes)]
    return np.unique(np.concatenate([strip, *held]))


class Settled(NamedTuple):
    """How classes are read off a model, and what it says of the rows spared."""

    reader: models.Reader
    chances: CalibratedClassifier
    how: tuple[float, float]
    evidence: Float[np.ndarray, "v c"]


def settle(
    data: Prepared, model: models.Model, train: Int[np.ndarray, " m"], name: str = ""
) -> Settled:
    """How classes are read off a trained model: its SVM, temperature and threshold.

    Args:
        data: The rows.
        model: Trained.
        train: The rows that it has learned from.
        name: One of `scant.studies.mitosis.settings.MODELS`; empty: the run's.
    """
    spared = data.split.validation
    label, how = data.label[train], USUAL
    reader = models.Reader(model, label, data.n_classes)
    evidence = np.empty((0, data.n_classes))
    if len(spared):
        result = reader.place(data.given(spared, name))
        evidence = result.evidence
        if reader.machine is not None:
            own, held = (v.detach().cpu().numpy() for v in (model.latent()[0], result.mean[:, 0]))
            reader.machine, how = best_svm(own, label, held, data.label[spared], data.n_classes)
            evidence = decisions(reader.machine, held, data.n_classes)
    prior = data.prior(train)
    chances = models.temperature_scaled(evidence, data.label[spared], prior, model)
    return Settled(reader, chances, how, evidence)


def classifier(
    data: Prepared, latent: CalibratedClassifier, evidence: Float[np.ndarray, "v c"]
) -> tuple[Classifier, Choice]:
    """What tells the classes, as the settings want it, and why.

    Args:
        data: The rows.
        latent: What the latent variable model came to.
        evidence: What it says of the rows spared; none where none are.
    """
    wish = data.settings.classifier
    if wish == LATENT:
        return Classifier.of_latent(latent), Choice(LATENT, "as set")
    known, c = data.known, data.n_classes
    if len(known) > MOST_KNOWN:
        rng = np.random.default_rng([data.settings.seed, 45])
        rare = known[data.label[known] == 0][: MOST_KNOWN // 2]
        others = rng.permutation(known[data.label[known] != 0])[: MOST_KNOWN - len(rare)]
        known = np.union1d(rare, others)
    group = None if data.group is None else data.group[known]
    own = data.label[known], c, data.settings.seed, group
    gp: SoftmaxMixture | AveragedSoftmax = SoftmaxMixture.fit(data.z[known], *own)
    if data.network is not None:
        gp = AveragedSoftmax.fit(data.seen[known], data.widths, *own)
    share_of = np.bincount(data.label[known], minlength=c) / len(known)
    ratio = data.prior(data.split.learnt) / share_of
    held = weighted(gp.held, ratio)
    share, why = 0.5 * (wish == BOTH), "no row is spared to compare with"
    both, at, of = np.intersect1d(known[gp.rows], data.split.validation, return_indices=True)
    doubt = 1 / (len(both) + 1)
    if len(evidence) and len(both):
        parts = held[at], doubted(latent.of(evidence[of]), doubt)
        right = [p[np.arange(len(both)), data.label[both]] for p in parts]
        share = best_share(*right) if wish == AUTO else share
        each = ", ".join(
            f"{name} {np.log(p).mean():.3g}" for name, p in zip(("GP", "latent variables"), right)
        )
        why = f"log probability of rows spared: {each} nats"
        if share:
            held = (1 - share) * parts[0] + share * parts[1]
    threshold = best_expected_threshold(held[:, 0]) if data.settings.tempered else float("nan")
    choice = Choice(BOTH if share else GP, why)
    return Classifier(latent, gp, share, doubt, ratio, threshold), choice


def shifted(fitted: FittedMitosis, chances: Classifier) -> Classifier:
    """For the shares of the classes among rows held out, if settings want it.

    Args:
        fitted: The model, its reader settled.
        chances: What tells the classes, for the shares in the training rows.
    """
    data = fitted.data
    if data.settings.prior != PRIORS[3] or not len(data.test):
        return chances
    evidence = None
    if chances.share > 0:
        assert fitted.reader is not None
        evidence = fitted.reader.place(data.given(data.test)).evidence
    return chances.shifted(data.seen[data.test], evidence, data.prior(data.split.learnt))
