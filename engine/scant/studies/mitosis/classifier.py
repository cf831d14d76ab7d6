"""Classifier of rows: the latent variable model, a GP classifier, or a mixture of both.

The GP classifier learns from all rows that are not held out. Its cross-validated probabilities are
compared with those of the latent variable model on the validation rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from scant.ensemble.stacking import best_expected_threshold
from scant.learners.calibrated import CalibratedClassifier, decided
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_mixture import SoftmaxMixture

SHARES = np.linspace(0, 0.9, 10)  # candidate weights of the latent variable model
BEFORE, STEPS = 300.0, 200  # prior weight of the training shares, in rows; EM iterations
FOR_GP = 5.0  # prior weight of the GP classifier, in rows

Chances = Float[np.ndarray, "n c"]


@dataclass(frozen=True)
class Classifier:
    """Class probabilities from a row's columns and the latent variable model's evidence.

    Attributes:
        latent: Calibrated probabilities of the latent variable model.
        gp: The GP classifier; None: not used.
        share: Weight of the latent variable model in the mixture.
        doubt: Share of rows in `latent` that may be of any class, since few rows calibrated it.
        prior: Class prior, divided by the class shares in the GP classifier's training rows.
        threshold: Minimum probability of class 0 for the prediction of class 0; NaN: the most
            probable class is predicted.
        shift: Class shares divided by those that the mixture assumes; None: the same shares.
    """

    latent: CalibratedClassifier
    gp: SoftmaxMixture | AveragedSoftmax | None
    share: float
    doubt: float
    prior: Float[np.ndarray, " c"]
    threshold: float
    shift: Float[np.ndarray, " c"] | None = None

    @classmethod
    def of_latent(cls, latent: CalibratedClassifier) -> Classifier:
        """Create one without a GP classifier."""
        return cls(latent, None, 1.0, 0.0, np.ones(len(latent.prior)), latent.threshold)

    def of(self, z: Float[np.ndarray, "n k"], evidence: Float[np.ndarray, "n c"] | None) -> Chances:
        """Return class probabilities.

        Args:
            z: Rows.
            evidence: The latent variable model's evidence; None if its weight is 0.
        """
        weighted_parts = []
        if self.gp is not None and self.share < 1:
            weighted_parts.append((1 - self.share) * weighted(self.gp.probability(z), self.prior))
        if self.share > 0:
            assert evidence is not None
            weighted_parts.append(self.share * doubted(self.latent.of(evidence), self.doubt))
        p = np.asarray(sum(weighted_parts))
        return p if self.shift is None else weighted(p, self.shift)

    def shifted(
        self, p: Chances, prior: Float[np.ndarray, " c"], threshold_rows: float = 0.0
    ) -> tuple[Classifier, Chances]:
        """Adapt the classifier to the class shares that are likeliest for rows without labels.

        Args:
            p: Class probabilities of the rows by this classifier.
            prior: Class prior before any shift.
            threshold_rows: Number of rows that the present threshold counts as.

        Returns:
            The adapted classifier, and its probabilities of the rows.
        """
        share = self.shares(prior)
        ratio = estimated_shares(p, share) / share
        adapted, threshold = weighted(p, ratio), self.threshold
        if not np.isnan(threshold):
            best = best_expected_threshold(adapted[:, 0])
            threshold = (threshold_rows * threshold + len(p) * best) / (threshold_rows + len(p))
        shift = ratio if self.shift is None else self.shift * ratio
        return replace(self, shift=shift, threshold=threshold), adapted

    def shares(self, prior: Float[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
        """Class shares that the probabilities assume, given the prior before any shift."""
        shifted = prior if self.shift is None else prior * self.shift
        return np.asarray(shifted / shifted.sum())

    def decide(self, p: Chances) -> np.ndarray:
        """Return the predicted classes."""
        return decided(p, self.threshold).point


def doubted(p: Chances, doubt: float) -> Chances:
    """Probabilities if a share `doubt` of the rows may be of any class."""
    return (1 - doubt) * p + doubt / p.shape[1]


def weighted(p: Chances, ratio: Float[np.ndarray, " c"]) -> Chances:
    """Probabilities under another prior, `ratio` times the present one."""
    q = p * ratio
    return np.asarray(q / q.sum(1, keepdims=True))


def estimated_shares(p: Chances, share: Float[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
    """Estimate class shares of rows from probabilities that assume the shares `share`.

    Saerens, Latinne and Decaestecker 2002, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14(1):21-41: expectation maximization. Imperfectly calibrated
    probabilities of few rows would mislead it, so a prior of `BEFORE` rows has the shares `share`.
    """
    result = share
    for _ in range(STEPS):
        result = (weighted(p, result / share).sum(0) + BEFORE * share) / (len(p) + BEFORE)
    return np.asarray(result)


def best_share(gp: Float[np.ndarray, " v"], latent: Float[np.ndarray, " v"]) -> float:
    """Likeliest weight of the latent variable model; 0 for a gain below its standard error.

    A prior of `FOR_GP` rows favors the GP, whose probabilities are of all rows and not only of
    validation rows.

    Args:
        gp: Probability of the true class, by row.
        latent: Probability by the latent variable model.
    """
    log = np.log((1 - SHARES) * gp[:, None] + SHARES * latent[:, None])
    best = int((log.mean(0) + FOR_GP / len(gp) * np.log(1 - SHARES)).argmax())
    gain = log[:, best] - log[:, 0]
    return float(SHARES[best]) if gain.mean() > gain.std() / len(gain) ** 0.5 else 0.0
