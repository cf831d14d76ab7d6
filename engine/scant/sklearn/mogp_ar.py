"""MOGPs-AR classifier of one or several outputs (Ma 2023, chapter 3)."""

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
    """GP classification of one or several outputs with shared latent functions.

    `scant.models.mogp_ar.model.MOGPAR` (Ma 2023, chapter 3): multi-output GPs with the
    augment-and-reduce softmax and an RBF kernel with a lengthscale per feature. Trained by Adam on
    minibatches with cosine decay of the learning rate to a hundredth.

    Outputs have their own classes, such as alphabets, and are given by `output` in `fit`,
    `predict`, `predict_proba` and `score`. The softmax of a row is over the classes of its output.

    Args:
        n_latent: Number of latent functions, Q.
        n_inducing: Number of inducing points of each latent function; at most the number of rows.
        rank: Rank of the coregionalization matrices.
        covariance: "kept" to include covariances between classes in the bound, or "dropped" as
            published.
        standardize: True to scale each feature by its standard deviation, False for a common one.
        batch_size: Number of rows of each output in a step; None for all.
        sampled_classes: Number of negative classes sampled for a row and step; 0 for all.
        learning_rate: Initial learning rate of Adam.
        max_iter: Maximum number of steps.
        tol: Minimum gain of the estimated bound in nats per row.
        n_iter_no_change: Number of steps without such a gain after which training stops.
        random_state: Seed of initialization and batches; results are reproducible bit by bit.

    Attributes:
        model_: Fitted `MOGPAR`.
        classes_: All classes, sorted.
        outputs_: All outputs, sorted; [0] if `fit` is called without `output`.
        output_classes_: Indices into `classes_` of the classes of each output.
        elbo_: Bound for all rows after training (3.23), in nats.
        n_iter_: Number of steps.
        n_features_in_, feature_names_in_: Standard attributes of scikit-learn.
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
        """Fit to inputs (n_samples, n_features) and classes (n_samples,).

        Args:
            X: Inputs, finite numbers.
            y: Classes.
            output: Output of each row (n_samples,); None for a single output.

        Raises:
            ValueError: Values are not finite, or an output has rows of only one class.
        """
        x, y = self._learn(X, y)
        index = self._learn_classes(y).numpy()
        output = np.zeros(len(x), dtype=int) if output is None else column_or_1d(output)
        check_consistent_length(x, output)
        self.outputs_, output_index = np.unique(output, return_inverse=True)
        self.output_classes_ = [
            np.unique(index[output_index == d]) for d in range(len(self.outputs_))
        ]
        single = [d for d, classes in enumerate(self.output_classes_) if len(classes) < 2]
        if single:
            raise BadInput(
                f"Output {self.outputs_[single[0]]!r} has rows of one class only; an output needs "
                "two classes at least."
            )
        label = np.zeros_like(index)
        for d, classes in enumerate(self.output_classes_):
            label[output_index == d] = np.searchsorted(classes, index[output_index == d])
        self._train(torch.tensor(x), torch.tensor(output_index), torch.tensor(label))
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
        """Predict class probabilities (3.35); 0 for classes of other outputs.

        Args:
            X: Inputs (n_samples, n_features).
            output: Output of each row (n_samples,); may be None for a single output.

        Returns:
            Probabilities (n_samples, n_classes), in the order of `classes_`.

        Raises:
            ValueError: An output is unknown, or `output` is missing with several outputs.
        """
        rows = self._rows(X)
        output_index = self._output_index(output, len(rows))
        probabilities = self.model_.probabilities(
            self.model_.kernel.prepare(rows), torch.tensor(output_index)
        )
        p = np.zeros((len(rows), len(self.classes_)))
        for d, classes in enumerate(self.output_classes_):
            rows_of_output = output_index == d
            p[np.ix_(rows_of_output, classes)] = probabilities[
                rows_of_output, : len(classes)
            ].numpy()
        return p

    def predict(self, X: Any, output: Any = None) -> np.ndarray:
        """Predict the most probable class of the output of each row; see `predict_proba`."""
        p = self.predict_proba(X, output)
        labels: np.ndarray = self.classes_[p.argmax(1)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None, output: Any = None) -> float:
        """Return the accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, output), sample_weight=sample_weight))

    def _output_index(self, output: Any, n: int) -> Int[np.ndarray, " n"]:
        """Return the index into `outputs_` for each row."""
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
