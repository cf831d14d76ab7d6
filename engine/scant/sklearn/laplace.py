"""Binary GP classifier with the Laplace approximation (Yousefi 2021, 2.2.4.1 and chapter 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.sklearn.base import GPClassifier, both


class LaplaceGPClassifier(GPClassifier):
    """Binary GP classification with the Laplace approximation, without inducing inputs.

    `scant.models.laplace.classifier.LaplaceGPC` (Yousefi 2021, section 2.2.4.1 and B.13-B.18;
    Rasmussen and Williams 2006, algorithms 3.1, 3.2 and 5.1) with a squared exponential kernel
    whose hyperparameters maximize the approximate log evidence. A step costs O(n^3). For more
    classes use `sklearn.multiclass.OneVsRestClassifier`.

    Args:
        link: "logistic" or "probit".
        ard: True to learn a lengthscale for each feature, False for a common one.
        prior: True for the weak hyperprior of the clamp study
            (`scant.models.laplace.classifier.Prior`); without it the amplitude diverges for
            separable classes.
        standardize: True to scale X to mean 0 and variance 1.
        max_iter: Maximum number of L-BFGS steps.
        tol: Minimum gain of the objective in nats per row.
        n_iter_no_change: Number of steps without such a gain after which training stops.
        random_state: Not used, for a common signature.

    Attributes:
        model_: Fitted `LaplaceGPC`.
        classes_: Two classes, sorted.
        elbo_: Approximate log evidence of the training rows in nats.
        n_iter_: Number of steps.
        x_scaler_: `StandardScaler` of X, or None.
        n_features_in_, feature_names_in_: Standard attributes of scikit-learn.
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
        """Fit to inputs (n_samples, n_features) and two classes (n_samples,).

        Raises:
            ValueError: Values are not finite, there are not two classes, or the link is unknown.
        """
        x, y = self._learn(X, y)
        label, inputs = self._learn_classes(y), self._scale_to(x)
        prior = Prior() if self.prior else None
        model = LaplaceGPC.build(inputs, label, self.link, self.ard, prior)
        trainer = AdamLBFGS(model, model.elbo, 1, adam=0)
        self.n_iter_, elbo = self._climb(trainer, len(inputs))
        self.elbo_ = elbo - float(model.log_prior())  # avoids another evaluation, a tenth of a fit
        self.model_ = model
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """Predict class probabilities, averaged over the latent function (GPML 3.25).

        Args:
            X: Inputs (n_samples, n_features).

        Returns:
            Probabilities (n_samples, 2), in the order of `classes_`.
        """
        rows = self._rows(X)
        return both(self.model_.probability(rows))
