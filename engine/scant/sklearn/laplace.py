"""Laplace's approximation as a binary classifier (Yousefi 2021, section 2.2.4.1 and chapter 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.sklearn.base import GPClassifier, both


class LaplaceGPClassifier(GPClassifier):
    """A GP classifier of two classes by Laplace's approximation, exact in the rows.

    `scant.models.laplace.classifier.LaplaceGPC` (Yousefi 2021, section 2.2.4.1 and B.13-B.18;
    Rasmussen and Williams 2006, algorithms 3.1, 3.2 and 5.1) with a squared exponential kernel
    whose hyperparameters maximize the approximate log evidence. A step costs n^3. For more than
    two classes put it into `sklearn.multiclass.OneVsRestClassifier`.

    Args:
        link: "logistic" or "probit".
        ard: Learn a lengthscale a feature, else one for all.
        prior: Hold the hyperparameters by the weak prior that the clamp study has
            (`scant.models.laplace.classifier.Prior`); else classes that can be told apart without
            an error have an amplitude that grows without end.
        standardize: Scale the columns of X to mean 0 and variance 1.
        max_iter: Most steps of L-BFGS.
        tol: Gain of the objective, in nats a row, that counts as one.
        n_iter_no_change: Steps without such a gain after which training ends.
        random_state: Nothing is drawn; here for the sake of one signature.

    Attributes:
        model_: The fitted `LaplaceGPC`.
        classes_: The two classes, sorted.
        elbo_: Approximate log evidence of the training rows, in nats.
        n_iter_: Steps taken.
        x_scaler_: `StandardScaler` of X, or None.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.
    """

    _binary = True

    def __init__(
        self,
        link: str = "logistic",
        *,
        ard: bool = False,
        prior: bool = True,
        standardize: bool = True,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_iter_no_change: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.link = link
        self.ard = ard
        self.prior = prior
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> LaplaceGPClassifier:
        """Learn from rows (n_samples, n_features) and their classes (n_samples,), two of them.

        Raises:
            ValueError: Values that are not finite, not two classes, an unknown link.
        """
        x, y = self._learn(X, y)
        label, inputs = self._learn_classes(y), self._scale_to(x)
        prior = Prior() if self.prior else None
        model = LaplaceGPC.build(inputs, label, self.link, self.ard, prior)
        trainer = AdamLBFGS(model, model.elbo, 1, adam=0)
        self.n_iter_, elbo = self._climb(trainer, len(inputs))
        self.elbo_ = elbo - float(model.log_prior())  # another evaluation costs a tenth of a fit
        self.model_ = model
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """Probability of each class (GPML 3.25): averaged over the latent function.

        Args:
            X: Rows (n_samples, n_features).

        Returns:
            Probabilities (n_samples, 2), in the order of `classes_`.
        """
        rows = self._rows(X)
        return both(self.model_.probability(rows))
