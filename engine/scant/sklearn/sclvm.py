"""SCLVM classifier and transformer to its latent space (Yousefi 2021, chapter 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer
from scant.sklearn.base import GPClassifier


class SCLVMClassifier(TransformerMixin, GPClassifier):
    """Classification with a latent space of shared dimensions and private ones for each class.

    `scant.models.gplvm.sclvm.SCLVM` (Yousefi 2021, section 3.2), also for rare classes: a Bayesian
    GPLVM with class probabilities by Bayes' rule from the bounds of a row under each class.
    Features are conditionally independent given the latent position; use principal components of
    images without whitening (`make_pipeline(PCA(20), SCLVMClassifier(standardize=False))`), and
    `sklearn.calibration.CalibratedClassifierCV` to correct overconfident probabilities. NaN in X is
    a missing value.

    `transform` returns the latent position of a row under its most probable class.

    Args:
        n_shared_dims: Number of shared latent dimensions.
        n_private_dims: Number of private latent dimensions of each class.
        n_inducing: Number of inducing inputs of each class; at most the size of the largest class.
        standardize: True to scale X to mean 0 and variance 1.
        adam_steps: Number of Adam steps before L-BFGS; at most two thirds of `max_iter`.
        max_iter: Maximum total number of steps.
        tol: Minimum gain of the bound in nats per row.
        n_iter_no_change: Number of steps without such a gain after which training stops.
        random_state: Seed of the k-means initialization; results are reproducible bit by bit.

    Attributes:
        model_: Fitted `SCLVM`.
        classes_: Classes, sorted.
        elbo_: Bound on the log density of the training rows in nats, for standardized X.
        n_iter_: Number of steps.
        x_scaler_: `StandardScaler` of X, or None.
        n_features_in_, feature_names_in_: Standard attributes of scikit-learn.
    """

    _missing = True

    def __init__(
        self,
        n_shared_dims: int = 2,
        n_private_dims: int = 8,
        n_inducing: int = 30,
        *,
        standardize: bool = True,
        adam_steps: int = 160,
        max_iter: int = 800,
        tol: float = 1e-3,
        n_iter_no_change: int = 40,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_shared_dims = n_shared_dims
        self.n_private_dims = n_private_dims
        self.n_inducing = n_inducing
        self.standardize = standardize
        self.adam_steps = adam_steps
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SCLVMClassifier:
        """Fit to inputs (n_samples, n_features), NaN for missing values, and classes (n_samples,).

        Raises:
            ValueError: Values are infinite, a feature has no value, or there is only one class.
        """
        x, y = self._learn(X, y)
        label, rows = self._learn_classes(y), self._scale_to(x)
        model = SCLVM.build(
            rows,
            label,
            len(self.classes_),
            self.n_shared_dims,
            self.n_private_dims,
            min(self.n_inducing, int(label.bincount().max())),
            self._generator(),
        )
        adam = min(self.adam_steps, -(-2 * self.max_iter // 3))
        self.n_iter_ = self._climb(GPLVMTrainer(model, adam), len(rows)).steps
        with torch.no_grad():
            self.elbo_ = float(model.bound())
        self.model_ = model
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n c"]:
        """Predict class probabilities by Bayes' rule with class frequencies as the prior.

        Args:
            X: Inputs (n_samples, n_features), NaN for missing values.

        Returns:
            Probabilities (n_samples, n_classes), in the order of `classes_`.
        """
        rows = self._rows(X)
        p: np.ndarray = self.model_.probabilities(rows).numpy()
        return p

    def transform(self, X: Any) -> Float[np.ndarray, "n q"]:
        """Infer mean latent positions under the most probable class.

        Args:
            X: Inputs (n_samples, n_features), NaN for missing values.

        Returns:
            Positions (n_samples, n_shared_dims + n_private_dims), shared dimensions first.
        """
        rows = self._rows(X)
        inferred = [self.model_.infer(rows, label=c) for c in range(len(self.classes_))]
        posterior = self.model_.class_posterior(torch.stack([p.bound for p in inferred], 1))
        best = posterior.argmax(1)
        positions: np.ndarray = torch.stack([p.mean for p in inferred])[
            best, torch.arange(len(rows))
        ].numpy()
        return positions

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the latent dimensions: `shared0` ..., `private0` ...

        Args:
            input_features: Not used.
        """
        check_is_fitted(self)
        shared = [f"shared{i}" for i in range(self.n_shared_dims)]
        private = [f"private{i}" for i in range(self.n_private_dims)]
        return np.asarray(shared + private, dtype=object)
