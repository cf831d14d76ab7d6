"""A fitted latent variable model with its classifier, for reports and queries."""

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
from scant.studies.mitosis.classifier import BEFORE, Classifier, best_share, doubted, weighted
from scant.studies.mitosis.cost import MOST_KNOWN
from scant.studies.mitosis.prepared import Prepared
from scant.studies.mitosis.settings import BOTH, GP, LATENT


@dataclass(frozen=True)
class FittedMitosis:
    """A model of prepared rows.

    Attributes:
        data: The rows.
        model: The latent variable model.
        reader: Inference of new rows under each class; None until training has ended.
        chances: Classifier; None until training has ended.
        how: Strength and width of the SVM on latent positions.
    """

    data: Prepared
    model: models.Model
    reader: models.Reader | None = None
    chances: Classifier | None = None
    how: tuple[float, float] = USUAL

    def ask(
        self, z: torch.Tensor, inputs: Float[np.ndarray, "n _"], restarts: int = 1
    ) -> tuple[models.Places, np.ndarray]:
        """Latent positions of rows under each class, and class probabilities.

        Args:
            z: Inputs of the latent variable model.
            inputs: Inputs of the classifiers.
            restarts: Number of starts of the search for the positions.

        Raises:
            BadInput: The study is not fitted yet.
        """
        if self.reader is None or self.chances is None:
            raise BadInput("This run has not ended yet, so it cannot answer queries.")
        result = self.reader.place(z, restarts)
        return result, self.chances.of(inputs, result.evidence)

    def probabilities(self, inputs: Float[np.ndarray, "n _"]) -> Float[np.ndarray, "n c"]:
        """Class probabilities; latent positions are inferred only if they have weight."""
        if self.chances is not None and not self.chances.share:
            return self.chances.of(inputs, None)
        z = inputs[:, : self.data.width]
        latent_inputs = self.data.filled(z) if self.data.settings.model == "dgplvm" else z
        return self.ask(torch.tensor(latent_inputs).to(self.data.device), inputs)[1]

    def predicted(
        self, inputs: Float[np.ndarray, "n _"]
    ) -> tuple[Float[np.ndarray, "n c"], Int[np.ndarray, " n"]]:
        """Class probabilities of rows to predict, and decisions.

        With the setting `prior` "as held-out rows look", they assume the class shares that are
        likeliest for these rows. With few rows the shares and the threshold stay close to those of
        the fit.
        """
        p, fitted, data = self.probabilities(inputs), self.chances, self.data
        assert fitted is not None
        if data.settings.prior_of_rows:
            fitted, p = fitted.shifted(p, data.prior(data.split.learnt), BEFORE)
        return p, fitted.decide(p)

    def generate(self, label: int, count: int, seed: int) -> np.ndarray:
        """Generate new rows of a class, as images if the table has images."""
        data = self.data
        class_rows = torch.as_tensor(np.flatnonzero(data.label[data.train] == label)).to(
            data.device
        )
        generator = torch.Generator().manual_seed(seed)
        z = models.generate(self.model, class_rows, label, count, generator)
        return data.drawn(z.detach().cpu().numpy())


class Settled(NamedTuple):
    """Inference of new rows, its calibration, and the evidence of the validation rows."""

    reader: models.Reader
    chances: CalibratedClassifier
    how: tuple[float, float]
    evidence: Float[np.ndarray, "v c"]


def settle(
    data: Prepared, model: models.Model, train: Int[np.ndarray, " m"], name: str = ""
) -> Settled:
    """Fit the SVM, temperature and threshold of a trained model to the validation rows.

    Args:
        data: The rows.
        model: The trained model.
        train: Its training rows.
        name: One of `scant.studies.mitosis.settings.MODELS`; empty: the run's.
    """
    validation = data.split.validation
    label, how = data.label[train], USUAL
    reader = models.Reader(model, label, data.n_classes)
    evidence = np.empty((0, data.n_classes))
    if len(validation):
        result = reader.place(data.given(validation, name))
        evidence = result.evidence
        if reader.machine is not None:
            training_positions, positions = (
                v.detach().cpu().numpy() for v in (model.latent()[0], result.mean[:, 0])
            )
            reader.machine, how = best_svm(
                training_positions, label, positions, data.label[validation], data.n_classes
            )
            evidence = decisions(reader.machine, positions, data.n_classes)
    prior = data.prior(train)
    calibrated = models.temperature_scaled(evidence, data.label[validation], prior, model)
    return Settled(reader, calibrated, how, evidence)


def classifier(
    data: Prepared, latent: CalibratedClassifier, evidence: Float[np.ndarray, "v c"]
) -> tuple[Classifier, Choice]:
    """Return the classifier by the settings, and the reason for it.

    Args:
        data: The rows.
        latent: Classifier by latent positions.
        evidence: Its evidence of the validation rows; empty if there are none.
    """
    setting = data.settings.classifier
    if setting == LATENT:
        return Classifier.of_latent(latent), Choice(LATENT, "as set")
    candidates, c = data.known, data.n_classes
    if len(candidates) > MOST_KNOWN:
        rng = np.random.default_rng([data.settings.seed, 45])
        rare = candidates[data.label[candidates] == 0][: MOST_KNOWN // 2]
        others = rng.permutation(candidates[data.label[candidates] != 0])[: MOST_KNOWN - len(rare)]
        candidates = np.union1d(rare, others)
    group = None if data.group is None else data.group[candidates]
    settings_of_fit = data.label[candidates], c, data.settings.seed, group
    gp: SoftmaxMixture | AveragedSoftmax = SoftmaxMixture.fit(data.z[candidates], *settings_of_fit)
    if data.network is not None:
        gp = AveragedSoftmax.fit(data.seen[candidates], data.widths, *settings_of_fit)
    share_of = np.bincount(data.label[candidates], minlength=c) / len(candidates)
    ratio = data.prior(data.split.learnt) / share_of
    held_out = weighted(gp.held, ratio)
    share, reason = 0.5 * (setting == BOTH), "no row is held back to compare them on"
    common, gp_index, latent_index = np.intersect1d(
        candidates[gp.rows], data.split.validation, return_indices=True
    )
    doubt = 1 / (len(common) + 1)
    if len(evidence) and len(common):
        parts = held_out[gp_index], doubted(latent.of(evidence[latent_index]), doubt)
        truth_probability = [p[np.arange(len(common)), data.label[common]] for p in parts]
        share = best_share(*truth_probability) if setting == AUTO else share
        comparison = ", ".join(
            f"{name} {np.log(p).mean():.3g}"
            for name, p in zip(("GP", "latent variables"), truth_probability)
        )
        reason = f"log probability of held-back rows: {comparison} nats"
        if share:
            held_out = (1 - share) * parts[0] + share * parts[1]
    threshold = best_expected_threshold(held_out[:, 0]) if data.settings.tempered else float("nan")
    choice = Choice(BOTH if share else GP, reason)
    return Classifier(latent, gp, share, doubt, ratio, threshold), choice


def shifted(fitted: FittedMitosis, mixture: Classifier) -> Classifier:
    """Adapt a classifier to the class frequencies of the held-out rows, if set.

    Args:
        fitted: The model with its reader.
        mixture: Classifier at the class frequencies of the training rows.
    """
    data = fitted.data
    if not data.settings.prior_of_rows or not len(data.test):
        return mixture
    evidence = None
    if mixture.share > 0:
        assert fitted.reader is not None
        evidence = fitted.reader.place(data.given(data.test)).evidence
    p = mixture.of(data.seen[data.test], evidence)
    return mixture.shifted(p, data.prior(data.split.learnt))[0]
