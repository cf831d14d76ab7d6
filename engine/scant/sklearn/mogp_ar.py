"""MOGPs-AR as a classifier of one output or of many (Ma 2023, chapter 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, column_or_1d
from torch import Tensor

from scant.errors import BadInput
from scant.models.mogp_ar.baselines import build
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.training import MOGPARTrainer
from scant.sklearn.base import GPClassifier


class MOGPARClassifier(GPClassifier):
    """A GP classifier whose classes, of one output or of many, share latent functions.

    `scant.models.mogp_ar.model.MOGPAR` (Ma 2023, chapter 3): multi-output GPs with the softmax of
    augment and reduce, and an RBF kernel with a lengthscale a feature. Trained by Adam on batches,
    whose rate falls along a cosine to a hundredth.

    Several outputs (alphabets, say, each with its own classes) are told apart by `output` in
    `fit`, `predict`, `predict_proba` and `score`; a row competes among the classes of its output.

    Args:
        n_latent: Latent functions that the classes mix, Q.
        n_inducing: Inducing points of each; at most one a row.
        rank: Of each coregionalization matrix.
        covariance: "kept", or "dropped" as published: that between classes in the bound.
        standardize: Scale each column by its standard deviation, else all by a common one.
        batch_size: Rows of each output a step; None: all.
        sampled_classes: Wrong classes drawn a row and step; 0: all.
        learning_rate: Of Adam, at its start.
        max_iter: Most steps.
        tol: Gain of the bound's estimate, in nats a row, that counts as one.
        n_iter_no_change: Steps without such a gain after which training ends.
        random_state: Seed of start and batches; the same one gives the same numbers bit by bit.

    Attributes:
        model_: The fitted `MOGPAR`.
        classes_: All classes, sorted.
        outputs_: All outputs, sorted; [0] where `fit` was given none.
        output_classes_: Places in `classes_` of each output's classes.
        elbo_: The bound of all rows at the end (3.23), in nats.
        n_iter_: Steps taken.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.
    """

    def __init__(
        self,
        n_latent: int = 16,
        n_inducing: int = 40,
        *,
        rank: int = 1,
        covariance: str = "kept",
        standardize: bool = True,
        batch_size: int | None = 50,
        sampled_classes: int = 0,
        learning_rate: float = 0.05,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 40,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_latent = n_latent
        self.n_inducing = n_inducing
        self.rank = rank
        self.covariance = covariance
        self.standardize = standardize
        self.batch_size = batch_size
        self.sampled_classes = sampled_classes
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any, output: Any = None) -> MOGPARClassifier:
        """Learn from rows (n_samples, n_features) and their classes (n_samples,).

        Args:
            X: Finite numbers.
            y: Classes.
            output: Output of each row (n_samples,); None: there is one.

        Raises:
            ValueError: Values that are not finite; an output with rows of a single class.
        """
        x, y = self._learn(X, y)
        place = self._learn_classes(y).numpy()
        output = np.zeros(len(x), dtype=int) if output is None else column_or_1d(output)
        check_consistent_length(x, output)
        self.outputs_, of = np.unique(output, return_inverse=True)
        self.output_classes_ = [np.unique(place[of == d]) for d in range(len(self.outputs_))]
        single = [d for d, classes in enumerate(self.output_classes_) if len(classes) < 2]
        if single:
            raise BadInput(
                f"Output {self.outputs_[single[0]]!r} has rows of one class only; an output needs "
                "two classes at least."
            )
        first = np.zeros_like(place)
        for d, classes in enumerate(self.output_classes_):
            first[of == d] = np.searchsorted(classes, place[of == d])
        self._train(torch.tensor(x), torch.tensor(of), torch.tensor(first))
        return self

    def _train(
        self, x: Float[Tensor, "n d"], output: Int[Tensor, " n"], label: Int[Tensor, " n"]
    ) -> None:
        self.x_scaler_ = None  # the kernel standardizes
        generator = self._generator()
        kernel = RbfArd(x, self.n_latent, self.standardize)
        rows = kernel.prepare(x)
        sizes = [len(classes) for classes in self.output_classes_]
        inducing = min(self.n_inducing, len(x))
        options = {"rank": self.rank, "covariance": self.covariance}
        model = build("mogp-ar", kernel, rows, output, sizes, inducing, generator, **options)
        trainer = MOGPARTrainer(
            model,
            rows,
            output,
            label,
            generator,
            self.batch_size,
            self.sampled_classes,
            self.learning_rate,
            self.max_iter,
        )
        self.n_iter_ = self._climb(trainer, len(x)).steps
        self.elbo_ = float(model.bound(rows, output, label))
        self.model_ = model

    def predict_proba(self, X: Any, output: Any = None) -> Float[np.ndarray, "n c"]:
        """Probability of each class (3.35); 0 of classes that the row's output does not have.

        Args:
            X: Rows (n_samples, n_features).
            output: Output of each row (n_samples,); not needed where there is one.

        Returns:
            Probabilities (n_samples, n_classes), in the order of `classes_`.

        Raises:
            ValueError: An output that was not learned from, or none where there are several.
        """
        rows = self._rows(X)
        of = self._places(output, len(rows))
        found = self.model_.probabilities(self.model_.kernel.prepare(rows), torch.tensor(of))
        p = np.zeros((len(rows), len(self.classes_)))
        for d, classes in enumerate(self.output_classes_):
            own = of == d
            p[np.ix_(own, classes)] = found[own, : len(classes)].numpy()
        return p

    def predict(self, X: Any, output: Any = None) -> np.ndarray:
        """The most probable class of each row within its output; see `predict_proba`."""
        p = self.predict_proba(X, output)
        found: np.ndarray = self.classes_[p.argmax(1)]
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, output: Any = None) -> float:
        """Accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, output), sample_weight=sample_weight))

    def _places(self, output: Any, n: int) -> Int[np.ndarray, " n"]:
        """Each row's output as its place in `outputs_`."""
        if output is None:
            if len(self.outputs_) > 1:
                raise BadInput(f"Several outputs were learned; name each row's in 'output' ({n}).")
            return np.zeros(n, dtype=int)
        output = column_or_1d(output)
        unknown = np.setdiff1d(output, self.outputs_)
        if len(unknown) or len(output) != n:
            raise BadInput(
                f"'output' must name one of the outputs learned from for each of {n} rows; "
                f"got {len(output)}, unknown: {unknown.tolist()[:5]}."
            )
        return np.searchsorted(self.outputs_, output)
