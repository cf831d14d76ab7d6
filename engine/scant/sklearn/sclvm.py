"""SCLVM as a classifier and as a transformer to its latent space (Yousefi 2021, chapter 3)."""

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
    """Classes, rare ones too, in a latent space they share and one that each has to itself.

    `scant.models.gplvm.sclvm.SCLVM` (Yousefi 2021, section 3.2): a Bayesian GPLVM whose posterior
    of a class follows from the bounds of a row under each (Bayes' rule). Features count as
    independent given the position: give images as principal components, not whitened
    (`make_pipeline(PCA(20), SCLVMClassifier(standardize=False))`), and mend probabilities that are
    too sure by `sklearn.calibration.CalibratedClassifierCV`. NaN in X is a missing value.

    `transform` gives the position of a row under its most probable class.

    Args:
        n_shared_dims: Latent dimensions of all classes.
        n_private_dims: Latent dimensions of each class.
        n_inducing: Inducing inputs of each class; at most as many as the largest has rows.
        standardize: Scale the columns of X to mean 0 and variance 1.
        adam_steps: Steps of Adam before L-BFGS, at most two thirds of all.
        max_iter: Most steps of both.
        tol: Gain of the bound, in nats a row, that counts as one.
        n_iter_no_change: Steps without such a gain after which training ends.
        random_state: Seed of the k-means start; the same one gives the same numbers bit by bit.

    Attributes:
        model_: The fitted `SCLVM`.
        classes_: Sorted.
        elbo_: Bound on the log density of the training rows, in nats of standardized X.
        n_iter_: Steps taken.
        x_scaler_: `StandardScaler` of X, or None.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.
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
        """Learn from rows (n_samples, n_features), NaN where missing, and classes (n_samples,).

        Raises:
            ValueError: Infinite values, a column without a value, a single class.
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
        """Probability of each class by Bayes' rule, a priori its share of the training rows.

        Args:
            X: Rows (n_samples, n_features), NaN where missing.

        Returns:
            Probabilities (n_samples, n_classes), in the order of `classes_`.
        """
        rows = self._rows(X)
        p: np.ndarray = self.model_.probabilities(rows).numpy()
        return p

    def transform(self, X: Any) -> Float[np.ndarray, "n q"]:
        """Means of the latent positions under the most probable class, shared dimensions first.

        Args:
            X: Rows (n_samples, n_features), NaN where missing.

        Returns:
            Positions (n_samples, n_shared_dims + n_private_dims).
        """
        rows = self._rows(X)
        placed = [self.model_.infer(rows, label=c) for c in range(len(self.classes_))]
        odds = self.model_.class_posterior(torch.stack([p.bound for p in placed], 1))
        best = odds.argmax(1)
        positions: np.ndarray = torch.stack([p.mean for p in placed])[
            best, torch.arange(len(rows))
        ].numpy()
        return positions

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the latent dimensions: `shared0` ..., `private0` ...

        Args:
            input_features: Not read.
        """
        check_is_fitted(self)
        shared = [f"shared{i}" for i in range(self.n_shared_dims)]
        private = [f"private{i}" for i in range(self.n_private_dims)]
        return np.asarray(shared + private, dtype=object)
