"""GPz as a regressor (Almosallam 2017, chapters 3-5)."""

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

LEAST_HELD = 10  # rows: fewer tell nothing about a step


class GPzRegressor(RegressorMixin, ScantEstimator):
    """A sparse GP of basis functions, whose noise depends on the input, with missing values.

    `scant.models.gpz.model.GPz` (Almosallam 2017, chapters 3-5) on standardized X and y; the
    training maximizes its log evidence (3.36) by L-BFGS. A value of X that is NaN counts as
    missing, in training (5.82) and at prediction (5.22-5.40).

    Args:
        n_basis: Basis functions, m; at most one a row. A step costs n m^2.
        covariance: Shape of the basis functions. G: one for all, V: one each; L: one lengthscale,
            D: one a feature, C: a full covariance (below 4.38). Few rows want GL or GD.
        heteroscedastic: Let the noise depend on the input (3.3).
        joint_mean: Learn a linear mean besides (3.27).
        input_density: Mixture that predicts missing values (5.22-5.34). "data": EM moves it to the
            rows; "basis": it lies where the basis functions do, as published; None: none, a shorter
            fit, and rows with missing values cannot be predicted.
        standardize: Scale the columns of X to mean 0 and variance 1; y always is.
        validation_fraction: Share of the rows, drawn at random, whose log density chooses among
            the steps; the weights are then those of all rows. The log evidence has no highest
            point, and a full covariance of many features follows it far past what the rows tell.
            0, or a share of fewer than ten rows: the log evidence alone decides.
        max_iter: Most steps of L-BFGS.
        tol: Gain of what decides, in nats a row, that counts as one.
        n_iter_no_change: Steps without such a gain after which training ends.
        random_state: Seed of the k-means start; the same one gives the same numbers bit by bit.

    Attributes:
        model_: The fitted `GPz`, of standardized values.
        elbo_: Log evidence of the rows trained on, at the step kept, in nats of y as given.
        n_iter_: Steps taken.
        x_scaler_, y_scaler_: `StandardScaler` of X (or None) and y.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.
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
        """Learn from rows (n_samples, n_features), NaN where missing, and targets (n_samples,).

        Raises:
            ValueError: Values that are infinite, a column without a value, an unknown parameter.
        """
        x, y = self._learn(X, y, y_numeric=True)
        density = one_of(self.input_density, "input_density", ("data", "basis", None))
        self.y_scaler_ = StandardScaler().fit(y[:, None])
        inputs = self._scale_to(x)
        targets = torch.tensor(self.y_scaler_.transform(y[:, None])[:, 0])
        n, d = inputs.shape
        model = GPz(d, min(self.n_basis, n), self.covariance, self.heteroscedastic, self.joint_mean)
        generator = self._generator()
        held, learnt = self._split(n, generator)
        x_learnt, y_learnt = inputs[learnt], targets[learnt]
        model.init_from_data(x_learnt, y_learnt, generator)
        trainer = GPzTrainer(model, x_learnt, y_learnt)
        judge = HeldOut(model, trainer, x_learnt, inputs[held], targets[held])
        self.n_iter_, elbo = self._climb(trainer, len(learnt), judge if len(held) else None)
        judge.take_back()
        model.fit_posterior(inputs, targets, mixture=density)
        self.model_ = model
        self.elbo_ = elbo - len(learnt) * float(np.log(self.y_scaler_.scale_[0]))
        return self

    def _split(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Rows held out, and the others."""
        check_scalar(
            self.validation_fraction,
            "validation_fraction",
            (int, float),
            min_val=0,
            max_val=1,
            include_boundaries="left",
        )
        count = int(self.validation_fraction * n)
        if count < LEAST_HELD:
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
        """Predictive mean of each row.

        Args:
            X: Rows (n_samples, n_features), NaN where missing.
            return_std: Give the standard deviation of a new target besides, noise included (5.19).

        Returns:
            Means (n_samples,), in the unit of y; or they and the standard deviations.
        """
        found = self.moments(X)
        mean = found.mean.numpy()
        return (mean, found.variance.sqrt().numpy()) if return_std else mean

    def moments(self, X: Any) -> GPzPrediction:
        """Mean and the three parts of the variance (model, noise, inputs) in the unit of y."""
        rows = self._rows(X)
        if self.input_density is None and bool(rows.isnan().any()):
            raise BadInput(
                "A row has a missing value, and parameter 'input_density' was None when the model "
                "was fitted; set it to 'data' and fit again."
            )
        found = self.model_.predict(rows)
        scale, centre = float(self.y_scaler_.scale_[0]), float(self.y_scaler_.mean_[0])
        return GPzPrediction(
            found.mean * scale + centre,
            found.model_variance * scale**2,
            found.noise_variance * scale**2,
            found.input_variance * scale**2,
        )


class HeldOut:
    """A `scant.sklearn.base.Judge`: the mean log density of rows that GPz was not trained on.

    Their missing values are filled by expectation: a score each step, not a fit.
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
        """Nats a row, of standardized y."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the last posterior says it again
            self.model.take_posterior(self.trainer.log_evidence.posterior())
        found = self.model.predict(self.x)
        away = (self.y - found.mean).square() / found.variance
        return float(-0.5 * (away + (2 * math.pi * found.variance).log()).mean())

    def keep(self) -> None:
        """Remember the parameters."""
        self.best = {k: v.clone() for k, v in self.model.state_dict().items()}

    def take_back(self) -> None:
        """Go back to what was kept, if anything was."""
        if self.best:
            self.model.load_state_dict(self.best)
