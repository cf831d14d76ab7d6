"""Base classes of the estimators: validation, seeds, training with a stopping rule, classes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from scant.errors import BadInput
from scant.optim.ascent import Convergence, maximize
from scant.optim.trainer import Trainer


class Judge(Protocol):
    """Protocol of a validation score that selects the parameters during training."""

    def score(self) -> float:
        """Return the score of the current parameters in nats per row."""

    def keep(self) -> None:
        """Store the current parameters as the best so far."""


class Ascent(NamedTuple):
    """Number of steps, and the ELBO of the last step or of the best by a `Judge`, in nats."""

    steps: int
    elbo: float


class ScantEstimator(BaseEstimator):
    """Base class of estimators for numeric inputs.

    Subclasses have the parameters `max_iter`, `tol`, `n_iter_no_change` and `random_state`.
    """

    _missing = False  # whether NaN is accepted as a missing value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._missing
        tags.non_deterministic = False
        return tags

    def _learn(self, X: Any, y: Any, **how: Any) -> tuple[Float[np.ndarray, "n d"], np.ndarray]:
        """Validate training inputs and targets with scikit-learn."""
        x, y = validate_data(self, X, y, ensure_min_samples=2, **self._numbers(), **how)
        return x, y

    def _rows(self, X: Any) -> Float[Tensor, "n d"]:
        """Validate and scale inputs to predict."""
        check_is_fitted(self)
        return torch.tensor(self._scaled(validate_data(self, X, reset=False, **self._numbers())))

    def _numbers(self) -> dict[str, Any]:
        """Return validation options, with C order so that sums are reproducible bit by bit."""
        finite = "allow-nan" if self._missing else True
        return {"dtype": np.float64, "order": "C", "ensure_all_finite": finite}

    def _scale_to(self, x: Float[np.ndarray, "n d"]) -> Float[Tensor, "n d"]:
        """Fit the scaler if `standardize` is True, and scale the inputs."""
        self.x_scaler_ = StandardScaler().fit(x) if getattr(self, "standardize", False) else None
        return torch.tensor(self._scaled(x))

    def _scaled(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        scaled: np.ndarray = x if self.x_scaler_ is None else self.x_scaler_.transform(x)
        return scaled

    def _generator(self) -> torch.Generator:
        """Return a generator seeded from `random_state`."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return torch.Generator().manual_seed(int(seed))

    def _climb(self, trainer: Trainer, rows: int, judge: Judge | None = None) -> Ascent:
        """Train until `max_iter` steps, or `n_iter_no_change` steps without a gain of `tol`.

        The score is the ELBO in nats per row, or that of `judge`. Gains are accumulated until they
        exceed `tol`.
        """
        for name in ("max_iter", "n_iter_no_change"):
            check_scalar(getattr(self, name), name, (int, np.integer), min_val=1)
        rule, best = Convergence(), math.nan

        def done(elbo: float) -> bool:
            nonlocal best
            gains = rule.gains(elbo / rows if judge is None else judge.score(), self.tol)
            if judge is None or gains:
                best = elbo
            if judge is not None and gains:
                judge.keep()
            return rule.reached(self.n_iter_no_change)

        return Ascent(len(maximize(trainer, self.max_iter, done)), best)


class GPClassifier(ClassifierMixin, ScantEstimator):
    """Base class of classifiers; subclasses implement `predict_proba`."""

    _binary = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary
        return tags

    def _learn_classes(self, y: np.ndarray) -> Int[Tensor, " n"]:
        """Set `classes_` and return the class indices.

        Raises:
            ValueError: Targets are not classes, or the number of classes is not supported.
        """
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if self._binary and kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of two classes at least; all are of class "
                f"{self.classes_[0]!r}."
            )
        return torch.tensor(index)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class of each row.

        Args:
            X: Rows (n_samples, n_features).

        Returns:
            Classes (n_samples,).
        """
        p = self.predict_proba(X)
        labels: np.ndarray = self.classes_[p.argmax(1)]
        return labels


def both(p: Float[Tensor, " n"]) -> Float[np.ndarray, "n 2"]:
    """Return probabilities of two classes from those of the second."""
    return torch.stack([1 - p, p], 1).numpy()


def one_of(value: Any, name: str, allowed: tuple[str | None, ...]) -> Any:
    """Check that the value of a parameter is allowed, and return it.

    Raises:
        BadInput: The value is not allowed.
    """
    if value not in allowed:
        raise BadInput(
            f"Parameter {name!r} is {value!r}; use one of {', '.join(map(repr, allowed))}."
        )
    return value
