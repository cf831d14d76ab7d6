"""A fitted latent variable model and the classifier beside it, for reports and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.ensemble.stacking import best_expected_threshold
from scant.errors import BadInput
from scant.learners.calibrated import USUAL, CalibratedClassifier, best_svm, decisions
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_mixture import SoftmaxMixture
from scant.studies.auto import AUTO, Choice
from scant.studies.mitosis import models
from scant.studies.mitosis.classifier import Classifier, best_share, doubted, weighted
from scant.studies.mitosis.cost import MOST_KNOWN
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.settings import BOTH, GP, LATENT, PRIORS


@dataclass(frozen=True)
class FittedMitosis:
    """A model of prepared rows.

    Attributes:
        data: The rows.
        model: The latent variable model.
        reader: Classes by latent positions; None until training has ended.
        chances: The classifier; None until training has ended.
        how: Weight and width of the SVM on latent positions.
    """

    data: Prepared
    model: models.Model
    reader: models.Reader | None = None
    chances: Classifier | None = None
    how: tuple[float, float] = USUAL

    def ask(
        self, z: torch.Tensor, seen: Float[np.ndarray, "n _"], restarts: int = 1
    ) -> tuple[models.Places, np.ndarray]:
        """Latent positions of rows under each class, and class probabilities.

        Args:
            z: Inputs of the latent variable model.
            seen: Inputs of the classifiers.
            restarts: Number of starts of the search for the positions.

        Raises:
            BadInput: The study is not fitted yet.
        """
        if self.reader is None or self.chances is None:
            raise BadInput("This run has not ended yet, so it cannot answer queries.")
        result = self.reader.place(z, restarts)
        return result, self.chances.of(seen, result.evidence)

    def probabilities(self, seen: Float[np.ndarray, "n _"]) -> Float[np.ndarray, "n c"]:
        """Class probabilities; latent positions are only inferred if they have a weight."""
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


class Settled(NamedTuple):
    """Classes by latent positions, and the model's evidence of the validation rows."""

    reader: models.Reader
    chances: CalibratedClassifier
    how: tuple[float, float]
    evidence: Float[np.ndarray, "v c"]


def settle(
    data: Prepared, model: models.Model, train: Int[np.ndarray, " m"], name: str = ""
) -> Settled:
    """Fit SVM, temperature and threshold of a trained model to the validation rows.

    Args:
        data: The rows.
        model: The trained model.
        train: Its training rows.
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
    """The classifier by the settings, and the reason for it.

    Args:
        data: The rows.
        latent: Classifier by latent positions.
        evidence: Its evidence of the validation rows; empty without any.
    """
    setting = data.settings.classifier
    if setting == LATENT:
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
    share, why = 0.5 * (setting == BOTH), "no row is held back to compare them on"
    both, at, of = np.intersect1d(known[gp.rows], data.split.validation, return_indices=True)
    doubt = 1 / (len(both) + 1)
    if len(evidence) and len(both):
        parts = held[at], doubted(latent.of(evidence[of]), doubt)
        right = [p[np.arange(len(both)), data.label[both]] for p in parts]
        share = best_share(*right) if setting == AUTO else share
        each = ", ".join(
            f"{name} {np.log(p).mean():.3g}" for name, p in zip(("GP", "latent variables"), right)
        )
        why = f"log probability of held-back rows: {each} nats"
        if share:
            held = (1 - share) * parts[0] + share * parts[1]
    threshold = best_expected_threshold(held[:, 0]) if data.settings.tempered else float("nan")
    choice = Choice(BOTH if share else GP, why)
    return Classifier(latent, gp, share, doubt, ratio, threshold), choice


def shifted(fitted: FittedMitosis, chances: Classifier) -> Classifier:
    """Adapt a classifier to the class frequencies of the held-out rows, if the settings say so.

    Args:
        fitted: The model with its reader.
        chances: Classifier at the class frequencies of the training rows.
    """
    data = fitted.data
    if data.settings.prior != PRIORS[3] or not len(data.test):
        return chances
    evidence = None
    if chances.share > 0:
        assert fitted.reader is not None
        evidence = fitted.reader.place(data.given(data.test)).evidence
    return chances.shifted(data.seen[data.test], evidence, data.prior(data.split.learnt))
