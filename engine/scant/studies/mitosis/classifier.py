"""What tells the classes of rows: the latent variable model, a GP classifier, or both.

The GP classifier learns from all rows that are not held out. Its probabilities of rows that it had
not seen (cross-validation) are compared with the latent variable model's of the rows spared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from scant.ensemble.stacking import best_expected_threshold
from scant.learners.calibrated import CalibratedClassifier, decided
from scant.models.averaged_softmax import AveragedSoftmax
from scant.models.softmax_mixture import SoftmaxMixture

SHARES = np.linspace(0, 0.9, 10)  # of the latent variable model
BEFORE, STEPS = 300.0, 200  # rows that speak for the shares of training; of the search for others
FOR_GP = 5.0  # rows that speak for the GP classifier before one is seen

Chances = Float[np.ndarray, "n c"]


@dataclass(frozen=True)
class Classifier:
    """From a row's columns, and what the latent variable model says of it, to probabilities.

    Attributes:
        latent: The latent variable model's probabilities.
        doubt: Of them, the share of rows that may be of any class; it has been tempered on few.
        gp: The GP classifier; None: it has no part.
        share: Of the latent variable model in the mixture.
        prior: Of the classes, over their shares in the rows that the GP classifier learned from.
        threshold: On the probability of class 0, from which a row is of it; NaN: its most probable
            class.
        shift: Of the classes, over the shares that the mixture is for; None: the same ones.
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
        """Without a GP classifier."""
        return cls(latent, None, 1.0, 0.0, np.ones(len(latent.prior)), latent.threshold)

    def of(self, z: Float[np.ndarray, "n k"], evidence: Float[np.ndarray, "n c"] | None) -> Chances:
        """Probabilities of the classes.

        Args:
            z: Rows.
            evidence: What the latent variable model says of them; None where it has no share.
        """
        parts = []
        if self.gp is not None and self.share < 1:
            parts.append((1 - self.share) * weighted(self.gp.probability(z), self.prior))
        if self.share > 0:
            assert evidence is not None
            parts.append(self.share * doubted(self.latent.of(evidence), self.doubt))
        p = np.asarray(sum(parts))
        return p if self.shift is None else weighted(p, self.shift)

    def shifted(
        self,
        z: Float[np.ndarray, "n k"],
        evidence: Float[np.ndarray, "n c"] | None,
        share: Float[np.ndarray, " c"],
    ) -> Classifier:
        """For the shares of the classes under which these rows are likeliest.

        Args:
            z: Rows, whose labels are not known.
            evidence: As `of` takes it.
            share: Of the classes, that the mixture is for.
        """
        p = self.of(z, evidence)
        ratio = estimated_shares(p, share) / share
        moved = weighted(p, ratio)
        threshold = self.threshold
        if not np.isnan(threshold):
            threshold = best_expected_threshold(moved[:, 0])
        return replace(self, shift=ratio, threshold=threshold)

    def decide(self, p: Chances) -> np.ndarray:
        """Return the predicted classes."""
        return decided(p, self.threshold).point


def doubted(p: Chances, doubt: float) -> Chances:
    """Probabilities if that share of the rows may be of any class."""
    return (1 - doubt) * p + doubt / p.shape[1]


def weighted(p: Chances, ratio: Float[np.ndarray, " c"]) -> Chances:
    """Probabilities under another prior, `ratio` times the one that they are for."""
    q = p * ratio
    return np.asarray(q / q.sum(1, keepdims=True))


def estimated_shares(p: Chances, share: Float[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
    """Shares of classes among rows, from probabilities that are for other shares.

    Saerens, Latinne and Decaestecker 2002, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14(1):21-41: expectation maximization. Probabilities of few
    rows that are not quite calibrated would lead it astray, so that `BEFORE` rows speak for the
    shares that the probabilities are for.
    """
    found = share
    for _ in range(STEPS):
        found = (weighted(p, found / share).sum(0) + BEFORE * share) / (len(p) + BEFORE)
    return np.asarray(found)


def best_share(gp: Float[np.ndarray, " v"], latent: Float[np.ndarray, " v"]) -> float:
    """Of the latent variable model: where rows are likeliest, if they gain their standard error.

    A few more rows speak for the GP, whose probabilities are of all rows and not only of those
    spared.

    Args:
        gp: Probability of the truth, by row.
        latent: Likewise.
    """
    log = np.log((1 - SHARES) * gp[:, None] + SHARES * latent[:, None])
    best = int((log.mean(0) + FOR_GP / len(gp) * np.log(1 - SHARES)).argmax())
    gain = log[:, best] - log[:, 0]
    return float(SHARES[best]) if gain.mean() > gain.std() / len(gain) ** 0.5 else 0.0
