"""The deep feed-forward GP as regressor and classifier (Kandemir and Hamprecht 2015)."""

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
    """Parameters, views and training of both; see `DFGPRegressor`."""

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
            self._seen(torch.tensor(x)),
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
        """Columns of each view, as numbers."""
        if self.views is None:
            return [list(range(n_features))]
        names = list(getattr(self, "feature_names_in_", ()))
        known = {**dict(zip(names, range(n_features))), **{i: i for i in range(n_features)}}
        unknown = [c for view in self.views for c in view if c not in known]
        if unknown:
            raise BadInput(
                f"Parameter 'views' names the column {unknown[0]!r}, which X does not have; name "
                f"columns by numbers from 0 to {n_features - 1}, or as the DataFrame does."
            )
        return [[known[c] for c in view] for view in self.views]

    def _seen(self, rows: Float[Tensor, "n d"]) -> list[Tensor]:
        return [rows[:, columns] for columns in self.view_columns_]


class DFGPRegressor(RegressorMixin, _DFGP):
    """A network of sparse GPs, hidden neurons that see views of the columns, and an output.

    `scant.models.dfgp.model.DFGP` (Kandemir and Hamprecht 2015) with a Gaussian likelihood; it
    standardizes X and y. Trained by Adam, whose rate falls along a cosine to a hundredth.

    Args:
        n_inducing: Inducing inputs of every neuron.
        views: Columns of each view, by number or name; None: one view of all columns. With
            several views each is a kernel of its own (multiple kernel learning).
        n_neurons: Hidden neurons, which take the views in turn; 0: one a view, three of a single
            one.
        output: "rbf", or "linear" for DFGP-WP, a Wishart process (Theorem 1).
        bound: "published", "closed" or "stochastic" (see the model's module).
        ard: Learn a lengthscale a column, else one a view.
        learn_inducing: Learn the hidden neurons' inducing inputs, which as published are a random
            subset of the rows.
        start_width: Lengthscales to start from, in typical distances between rows of a view.
        learning_rate: Of Adam, at its start.
        max_iter: Most steps.
        tol: Gain of the bound, in nats a row, that counts as one.
        n_iter_no_change: Steps without such a gain after which training ends.
        random_state: Seed of inducing inputs and draws; the same one gives the same numbers bit
            by bit.

    Attributes:
        model_: The fitted `DFGP`.
        elbo_: Its bound at the end, in nats of y as given; the published one is none on the
            evidence, since it leaves out an entropy.
        n_iter_: Steps taken.
        view_columns_: Columns of each view, by number.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.
    """

    def fit(self, X: Any, y: Any) -> DFGPRegressor:
        """Learn from rows (n_samples, n_features) and targets (n_samples,).

        Raises:
            ValueError: Values that are not finite, a target that does not vary, unknown columns.
        """
        x, y = self._learn(X, y, y_numeric=True)
        self._train(x, torch.tensor(y, dtype=torch.float64), "gaussian")
        return self

    def predict(
        self, X: Any, return_std: bool = False
    ) -> Float[np.ndarray, " n"] | tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Predictive mean of each row.

        Args:
            X: Rows (n_samples, n_features).
            return_std: Give the standard deviation of a new target besides, noise included.

        Returns:
            Means (n_samples,), in the unit of y; or they and the standard deviations.
        """
        rows = self._rows(X)
        mean, variance = self.model_.predict(self._seen(rows))
        return (mean.numpy(), variance.sqrt().numpy()) if return_std else mean.numpy()


class DFGPClassifier(GPClassifier, _DFGP):
    """The same network as `DFGPRegressor` for two classes, with a probit link.

    Parameters and attributes are the same, but for the defaults of the multiview study's classes:
    50 inducing inputs, which are learned, and wide lengthscales to start from. For more than two
    classes put it into `sklearn.multiclass.OneVsRestClassifier`.

    Attributes:
        classes_: The two classes, sorted.
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
        """Learn from rows (n_samples, n_features) and their classes (n_samples,), two of them.

        Raises:
            ValueError: Values that are not finite, not two classes, unknown columns.
        """
        x, y = self._learn(X, y)
        self._train(x, self._learn_classes(y).double(), "bernoulli")
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """Probability of each class.

        Args:
            X: Rows (n_samples, n_features).

        Returns:
            Probabilities (n_samples, 2), in the order of `classes_`.
        """
        rows = self._rows(X)
        return both(self.model_.probability(self._seen(rows)))
