"""What all estimators do alike: rows in and out, seeds, training until the ELBO rests, classes."""

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
from scant.optim.trainer import Trainer


class Judge(Protocol):
    """Rows held out, which say where training ends."""

    def score(self) -> float:
        """Of the model as it is, nats a row."""

    def keep(self) -> None:
        """Take note of the model as it is: it is the best so far."""


class Ascent(NamedTuple):
    """Steps taken, and the ELBO of the last, or of the one that a judge has kept, in nats."""

    steps: int
    elbo: float


class ScantEstimator(BaseEstimator):
    """Rows of finite numbers in, one Gaussian process model of Scant inside.

    A subclass has the parameters `max_iter`, `tol`, `n_iter_no_change` and `random_state`.
    """

    _missing = False  # whether NaN means a missing value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._missing
        tags.non_deterministic = False
        return tags

    def _learn(self, X: Any, y: Any, **how: Any) -> tuple[Float[np.ndarray, "n d"], np.ndarray]:
        """Rows to learn from and their targets, checked as scikit-learn wants."""
        x, y = validate_data(self, X, y, ensure_min_samples=2, **self._numbers(), **how)
        return x, y

    def _rows(self, X: Any) -> Float[Tensor, "n d"]:
        """Rows to predict, on the scale that was learned from."""
        check_is_fitted(self)
        return torch.tensor(self._scaled(validate_data(self, X, reset=False, **self._numbers())))

    def _numbers(self) -> dict[str, Any]:
        """Of one order in memory: sums then agree to the last bit, wherever rows come from."""
        finite = "allow-nan" if self._missing else True
        return {"dtype": np.float64, "order": "C", "ensure_all_finite": finite}

    def _scale_to(self, x: Float[np.ndarray, "n d"]) -> Float[Tensor, "n d"]:
        """Learn the columns' scale, if `standardize` asks for it, and take the rows to it."""
        self.x_scaler_ = StandardScaler().fit(x) if getattr(self, "standardize", False) else None
        return torch.tensor(self._scaled(x))

    def _scaled(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        scaled: np.ndarray = x if self.x_scaler_ is None else self.x_scaler_.transform(x)
        return scaled

    def _generator(self) -> torch.Generator:
        """A generator of one's own: as `random_state` is, so are all numbers drawn."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return torch.Generator().manual_seed(int(seed))

    def _climb(self, trainer: Trainer, rows: int, judge: Judge | None = None) -> Ascent:
        """Steps until `max_iter`, or the score has gained less than `tol` in `n_iter_no_change`.

        The score is the ELBO of a row, or a judge's. Small gains add up until together they pass
        `tol`, in nats a row.
        """
        for name in ("max_iter", "n_iter_no_change"):
            check_scalar(getattr(self, name), name, (int, np.integer), min_val=1)
        anchor, since, step, elbo, best = -math.inf, 0, 0, math.nan, math.nan
        while step < self.max_iter and since < self.n_iter_no_change and not trainer.stalled:
            step, since = step + 1, since + 1
            value = trainer.step()
            if not math.isfinite(value):
                break
            elbo = value
            score = elbo / rows if judge is None else judge.score()
            if score > anchor + self.tol:
                anchor, since, best = score, 0, elbo
                if judge is not None:
                    judge.keep()
        return Ascent(step, elbo if judge is None else best)


class GPClassifier(ClassifierMixin, ScantEstimator):
    """A `ScantEstimator` of classes; a subclass says which are allowed and `predict_proba`."""

    _binary = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary
        return tags

    def _learn_classes(self, y: np.ndarray) -> Int[Tensor, " n"]:
        """Each row's class as its place in `classes_`.

        Raises:
            ValueError: Targets that are no classes, a single class, or more than a model takes.
        """
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if self._binary and kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, place = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of two classes at least; all are of class "
                f"{self.classes_[0]!r}."
            )
        return torch.tensor(place)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row.

        Args:
            X: Rows (n_samples, n_features).

        Returns:
            Classes (n_samples,).
        """
        p = self.predict_proba(X)
        found: np.ndarray = self.classes_[p.argmax(1)]
        return found


def both(p: Float[Tensor, " n"]) -> Float[np.ndarray, "n 2"]:
    """Probabilities of two classes, from those of the second."""
    return torch.stack([1 - p, p], 1).numpy()


def one_of(value: Any, name: str, known: tuple[str | None, ...]) -> Any:
    """The parameter's value, if it is a known one.

    Raises:
        BadInput: It is not.
    """
    if value not in known:
        raise BadInput(
            f"Parameter {name!r} is {value!r}; use one of {', '.join(map(repr, known))}."
        )
    return value
