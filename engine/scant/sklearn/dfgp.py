"""Deep feed-forward GP regressor and classifier (Kandemir and Hamprecht 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import RegressorMixin
from torch import Tensor

from scant.errors import BadInput
from scant.models.dfgp.model import DFGP
from scant.models.dfgp.training import DFGPTrainer
from scant.sklearn.base import GPClassifier, ScantEstimator, both, one_of

Views = Sequence[Sequence[int | str]]


class _DFGP(ScantEstimator):
    """Base class of `DFGPRegressor` and `DFGPClassifier`."""

    def __init__(
        self,
        n_inducing: int = 10,
        *,
        views: Views | None = None,
        n_neurons: int = 0,
        output: str = "rbf",
        bound: str = "published",
        ard: bool = True,
        learn_inducing: bool = False,
        start_width: float = 1.0,
        learning_rate: float = 0.05,
        max_iter: int = 150,
        tol: float = 1e-4,
        n_iter_no_change: int = 20,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_inducing = n_inducing
        self.views = views
        self.n_neurons = n_neurons
        self.output = output
        self.bound = bound
        self.ard = ard
        self.learn_inducing = learn_inducing
        self.start_width = start_width
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def _train(self, x: Float[np.ndarray, "n d"], y: Float[Tensor, " n"], likelihood: Any) -> None:
        self.x_scaler_ = None  # the model standardizes views itself
        self.view_columns_ = self._columns(x.shape[1])
        generator = self._generator()
        model = DFGP.build(
            self._split_views(torch.tensor(x)),
            y,
            likelihood,
            one_of(self.output, "output", ("rbf", "linear")),
            self.n_inducing,
            generator,
            neurons=self.n_neurons,
            bound=one_of(self.bound, "bound", ("published", "closed", "stochastic")),
            ard=self.ard,
            move=self.learn_inducing,
            width=self.start_width,
        )
        trainer = DFGPTrainer(
            model, self.max_iter, self.learning_rate, generator=generator, horizon=self.max_iter
        )
        self.n_iter_ = self._climb(trainer, len(x)).steps
        with torch.no_grad():
            self.elbo_ = float(model.bound())
        self.model_ = model

    def _columns(self, n_features: int) -> list[list[int]]:
        """Return the column indices of each view."""
        if self.views is None:
            return [list(range(n_features))]
        names = list(getattr(self, "feature_names_in_", ()))
        index = {**dict(zip(names, range(n_features))), **{i: i for i in range(n_features)}}
        unknown = [c for view in self.views for c in view if c not in index]
        if unknown:
            raise BadInput(
                f"Parameter 'views' names the column {unknown[0]!r}, which X does not have; name "
                f"columns by numbers from 0 to {n_features - 1}, or as the DataFrame does."
            )
        return [[index[c] for c in view] for view in self.views]

    def _split_views(self, rows: Float[Tensor, "n d"]) -> list[Tensor]:
        return [rows[:, columns] for columns in self.view_columns_]


class DFGPRegressor(RegressorMixin, _DFGP):
    """Regression with a two-layer network of sparse GPs on views of the features.

    `scant.models.dfgp.model.DFGP` (Kandemir and Hamprecht 2015) with a Gaussian likelihood. X and y
    are standardized by the model. Trained by Adam with cosine decay of the learning rate to a
    hundredth.

    Args:
        n_inducing: Number of inducing inputs of each neuron.
        views: Feature indices or names of each view; None for one view of all features. Several
            views have separate kernels (multiple kernel learning).
        n_neurons: Number of hidden neurons, which use the views in turn; 0 for one per view, or
            three for a single view.
        output: "rbf", or "linear" for DFGP-WP, a Wishart process (Theorem 1).
        bound: "published", "closed" or "stochastic" (see the module of the model).
        ard: True to learn a lengthscale for each feature, False for one per view.
        learn_inducing: True to learn the inducing inputs of hidden neurons; as published they are a
            random subset of the training rows.
        start_width: Initial lengthscale in units of the typical distance between rows of a view.
        learning_rate: Initial learning rate of Adam.
        max_iter: Maximum number of steps.
        tol: Minimum gain of the bound in nats per row.
        n_iter_no_change: Number of steps without such a gain after which training stops.
        random_state: Seed of inducing inputs and random numbers; results are reproducible bit by
            bit.

    Attributes:
        model_: Fitted `DFGP`.
        elbo_: Bound after training in nats, for y in its original unit. The published bound is not
            a bound on the evidence, since it omits an entropy.
        n_iter_: Number of steps.
        view_columns_: Feature indices of each view.
        n_features_in_, feature_names_in_: Standard attributes of scikit-learn.
    """

    def fit(self, X: Any, y: Any) -> DFGPRegressor:
        """Fit to inputs (n_samples, n_features) and targets (n_samples,).

        Raises:
            ValueError: Values are not finite, the target is constant, or `views` has unknown
                features.
        """
        x, y = self._learn(X, y, y_numeric=True)
        self._train(x, torch.tensor(y, dtype=torch.float64), "gaussian")
        return self

    def predict(
        self, X: Any, return_std: bool = False
    ) -> Float[np.ndarray, " n"] | tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Predict the mean of each row.

        Args:
            X: Inputs (n_samples, n_features).
            return_std: True to return the predictive standard deviation with noise, too.

        Returns:
            Means (n_samples,) in the unit of y, or means and standard deviations.
        """
        rows = self._rows(X)
        mean, variance = self.model_.predict(self._split_views(rows))
        return (mean.numpy(), variance.sqrt().numpy()) if return_std else mean.numpy()


class DFGPClassifier(GPClassifier, _DFGP):
    """Binary classification with the network of `DFGPRegressor` and a probit link.

    Parameters and attributes are those of `DFGPRegressor`, with the defaults of the multiview study
    for classes: 50 inducing inputs, which are learned, and larger initial lengthscales. For more
    classes use `sklearn.multiclass.OneVsRestClassifier`.

    Attributes:
        classes_: Two classes, sorted.
    """

    _binary = True

    def __init__(
        self,
        n_inducing: int = 50,
        *,
        views: Views | None = None,
        n_neurons: int = 0,
        output: str = "rbf",
        bound: str = "published",
        ard: bool = True,
        learn_inducing: bool = True,
        start_width: float = 4.0,
        learning_rate: float = 0.05,
        max_iter: int = 150,
        tol: float = 1e-4,
        n_iter_no_change: int = 20,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_inducing,
            views=views,
            n_neurons=n_neurons,
            output=output,
            bound=bound,
            ard=ard,
            learn_inducing=learn_inducing,
            start_width=start_width,
            learning_rate=learning_rate,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any) -> DFGPClassifier:
        """Fit to inputs (n_samples, n_features) and two classes (n_samples,).

        Raises:
            ValueError: Values are not finite, there are not two classes, or `views` has unknown
                features.
        """
        x, y = self._learn(X, y)
        self._train(x, self._learn_classes(y).double(), "bernoulli")
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """Predict class probabilities.

        Args:
            X: Inputs (n_samples, n_features).

        Returns:
            Probabilities (n_samples, 2), in the order of `classes_`.
        """
        rows = self._rows(X)
        return both(self.model_.probability(self._split_views(rows)))
