"""GPz regressor (Almosallam 2017, chapters 3-5)."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, overload

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_scalar
from torch import Tensor

from scant.errors import BadInput
from scant.models.gpz.input_density import fill, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.training import GPzTrainer
from scant.sklearn.base import ScantEstimator, one_of

MIN_VALIDATION_ROWS = 10


class GPzRegressor(RegressorMixin, ScantEstimator):
    """Sparse GP regression with basis functions, input-dependent noise and missing values.

    `scant.models.gpz.model.GPz` (Almosallam 2017, chapters 3-5) on standardized X and y, trained by
    maximization of the log evidence (3.36) with L-BFGS. NaN in X is a missing value, in training
    (5.86) and prediction (5.22-5.40).

    Args:
        n_basis: Number of basis functions, m; at most the number of rows. A step costs O(n m^2).
        covariance: Covariance of the basis functions (below 4.38). "G" for a global one, "V" for
            one per basis function; "L" for one lengthscale, "D" for one per feature, "C" for a full
            covariance. "GL" or "GD" are appropriate for few rows.
        heteroscedastic: True for input-dependent noise (3.3).
        joint_mean: True to include a linear mean function (3.27).
        input_density: Mixture model of the inputs to predict with missing values (5.22-5.34):
            "data" for a fit by EM, "basis" for the locations of the basis functions as published,
            None for no prediction with missing values and a faster fit.
        standardize: True to scale X to mean 0 and variance 1; y is always scaled.
        validation_fraction: Fraction of random rows whose log density selects the parameters among
            the steps; the posterior of the weights then uses all rows. The log evidence is
            unbounded, and full covariances of many features overfit it. With 0, or fewer than ten
            rows, the log evidence is used.
        max_iter: Maximum number of L-BFGS steps.
        tol: Minimum gain of the score in nats per row.
        n_iter_no_change: Number of steps without such a gain after which training stops.
        random_state: Seed of the k-means initialization; results are reproducible bit by bit.

    Attributes:
        model_: Fitted `GPz` for standardized values.
        elbo_: Log evidence of the training rows for the selected parameters, in nats, for y in its
            original unit.
        n_iter_: Number of steps.
        x_scaler_, y_scaler_: `StandardScaler` of X (or None) and y.
        n_features_in_, feature_names_in_: Standard attributes of scikit-learn.
    """

    _missing = True

    def __init__(
        self,
        n_basis: int = 25,
        covariance: str = "VC",
        *,
        heteroscedastic: bool = True,
        joint_mean: bool = True,
        input_density: str | None = "data",
        standardize: bool = True,
        validation_fraction: float = 0.2,
        max_iter: int = 240,
        tol: float = 1e-3,
        n_iter_no_change: int = 25,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_basis = n_basis
        self.covariance = covariance
        self.heteroscedastic = heteroscedastic
        self.joint_mean = joint_mean
        self.input_density = input_density
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GPzRegressor:
        """Fit to inputs (n_samples, n_features), NaN for missing values, and targets (n_samples,).

        Raises:
            ValueError: Values are infinite, a feature has no value, or a parameter is invalid.
        """
        x, y = self._learn(X, y, y_numeric=True)
        density = one_of(self.input_density, "input_density", ("data", "basis", None))
        self.y_scaler_ = StandardScaler().fit(y[:, None])
        inputs = self._scale_to(x)
        targets = torch.tensor(self.y_scaler_.transform(y[:, None])[:, 0])
        n, d = inputs.shape
        model = GPz(d, min(self.n_basis, n), self.covariance, self.heteroscedastic, self.joint_mean)
        generator = self._generator()
        validation, train = self._split(n, generator)
        x_train, y_train = inputs[train], targets[train]
        model.init_from_data(x_train, y_train, generator)
        trainer = GPzTrainer(model, x_train, y_train)
        judge = HeldOut(model, trainer, x_train, inputs[validation], targets[validation])
        self.n_iter_, elbo = self._climb(trainer, len(train), judge if len(validation) else None)
        judge.take_back()
        model.fit_posterior(inputs, targets, mixture=density)
        self.model_ = model
        self.elbo_ = elbo - len(train) * float(np.log(self.y_scaler_.scale_[0]))
        return self

    def _split(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return indices of validation and training rows."""
        check_scalar(
            self.validation_fraction,
            "validation_fraction",
            (int, float),
            min_val=0,
            max_val=1,
            include_boundaries="left",
        )
        count = int(self.validation_fraction * n)
        if count < MIN_VALIDATION_ROWS:
            return torch.arange(0), torch.arange(n)
        order = torch.randperm(n, generator=generator)
        return order[:count], order[count:]

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self, X: Any, return_std: bool = False
    ) -> Float[np.ndarray, " n"] | tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Predict the mean of each row.

        Args:
            X: Inputs (n_samples, n_features), NaN for missing values.
            return_std: True to return the predictive standard deviation with noise (5.19), too.

        Returns:
            Means (n_samples,) in the unit of y, or means and standard deviations.
        """
        prediction = self.moments(X)
        mean = prediction.mean.numpy()
        return (mean, prediction.variance.sqrt().numpy()) if return_std else mean

    def moments(self, X: Any) -> GPzPrediction:
        """Predict the mean and the variances of model, noise and inputs in the unit of y."""
        rows = self._rows(X)
        if self.input_density is None and bool(rows.isnan().any()):
            raise BadInput(
                "A row has a missing value, and parameter 'input_density' was None when the model "
                "was fitted; set it to 'data' and fit again."
            )
        prediction = self.model_.predict(rows)
        scale, centre = float(self.y_scaler_.scale_[0]), float(self.y_scaler_.mean_[0])
        return GPzPrediction(
            prediction.mean * scale + centre,
            prediction.model_variance * scale**2,
            prediction.noise_variance * scale**2,
            prediction.input_variance * scale**2,
        )


class HeldOut:
    """Mean log density of validation rows, a `scant.sklearn.base.Judge`.

    Missing values are replaced by expectations, which is fast enough for every step.
    """

    def __init__(
        self,
        model: GPz,
        trainer: GPzTrainer,
        learnt: Float[Tensor, "n d"],
        x: Float[Tensor, "k d"],
        y: Float[Tensor, " k"],
    ) -> None:
        self.model, self.trainer, self.y = model, trainer, y
        self.x = fill(x, single_gaussian(learnt)) if bool(x.isnan().any()) else x
        self.best: dict[str, Tensor] = {}

    def score(self) -> float:
        """Return the mean log density of standardized y in nats per row."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # the final posterior repeats the warnings
            self.model.take_posterior(self.trainer.log_evidence.posterior())
        prediction = self.model.predict(self.x)
        squared = (self.y - prediction.mean).square() / prediction.variance
        return float(-0.5 * (squared + (2 * math.pi * prediction.variance).log()).mean())

    def keep(self) -> None:
        """Store the current parameters."""
        self.best = {k: v.clone() for k, v in self.model.state_dict().items()}

    def take_back(self) -> None:
        """Restore the stored parameters, if any."""
        if self.best:
            self.model.load_state_dict(self.best)
