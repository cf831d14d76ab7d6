"""A division of the learned rows into training and validation rows, with a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.models.gpz.input_density import fill, single_gaussian
from scant.models.gpz.model import GPz
from scant.models.gpz.prediction import GPzPrediction
from scant.models.gpz.row_sums import LocalRows, Pattern, RowSums
from scant.models.gpz.training import GPzTrainer
from scant.models.gpz.weights import balanced_weights, normal_weights, normalized_weights
from scant.studies.redshift.components import MIN_COLUMNS, transformed, whole
from scant.studies.redshift.preprocessing import Features
from scant.studies.redshift.settings import RedshiftSettings
from scant.studies.redshift.target import Target

WEIGHTS = {
    "normal": normal_weights,
    "normalized": normalized_weights,
    "balanced": balanced_weights,
}


def completes(features: Features, settings: RedshiftSettings) -> bool:
    """Return True if missing values of many columns are filled before training.

    In a table of 121 columns with 2% of its cells missing, nearly every row has a different gap,
    and integrals over all of them would take too long.
    """
    many_columns = len(features.names) > MIN_COLUMNS and settings.incomplete != "use"
    return many_columns or features.reduced


Place = Callable[[list[Pattern], int], RowSums]


@dataclass(frozen=True)
class Rows:
    """Learned rows: inputs in the coordinates of training, targets in their unit and standardized,
    sample weights, and covariances of noisy inputs."""

    X: Float[Tensor, "n d"]
    z: Float[Tensor, " n"]
    y: Float[Tensor, " n"]
    omega: Float[Tensor, " n"]
    noise: Float[Tensor, "n q q"] | None

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        features: Features,
        T: Float[Tensor, "q d"],
        target: Target,
        settings: RedshiftSettings,
        device: torch.device,
    ) -> Rows:
        """Rows of a table in the coordinates T x; principal components use filled rows."""
        z = torch.tensor(table[settings.target].to_numpy(float))
        noise = features.noise(table)
        if noise is not None:
            noise = (T * noise.to(device).unsqueeze(1)) @ T.T
        x = features.inputs(table)
        x = (whole(x) if completes(features, settings) else x).to(device)
        return cls(
            transformed(x, T),
            z.to(device),
            target.standardize(z).to(device),
            WEIGHTS[settings.weights](z).to(device),
            noise,
        )

    def __getitem__(self, at: Int[Tensor, " k"]) -> Rows:
        noise = None if self.noise is None else self.noise[at]
        return Rows(self.X[at], self.z[at], self.y[at], self.omega[at], noise)


class Fold:
    """Training rows, validation rows, and a model.

    Args:
        rows: All learned rows.
        train: Indices of training rows.
        validation: Indices of rows that are only scored.
        target: Scale of the target.
    """

    def __init__(
        self,
        rows: Rows,
        train: Int[Tensor, " t"],
        validation: Int[Tensor, " v"],
        target: Target,
    ) -> None:
        self.rows, self.target, self.validation = rows, target, validation
        self.train, self.unseen = rows[train], rows[validation]
        self.asked = self.filled(self.unseen.X)
        self.model: GPz
        self.trainer: GPzTrainer

    def filled(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Fill missing inputs by their expectation: a density fit at each step is too slow."""
        return fill(X, single_gaussian(self.train.X)) if bool(X.isnan().any()) else X

    def begin(self, model: GPz, place: Place = LocalRows, max_rows: int | None = None) -> None:
        """Set the model to train, on at most `max_rows` rows."""
        r = (
            self.train
            if max_rows is None
            else self.train[torch.arange(min(max_rows, len(self.train.y)))]
        )
        self.model = model
        self.trainer = GPzTrainer(model, r.X, r.y, r.omega, r.noise, place)

    def predict(self) -> tuple[GPzPrediction, list[str]]:
        """Predict the validation rows by the current parameters; return warnings, too."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            self.model.take_posterior(self.trainer.log_evidence.posterior())
        prediction = self.model.predict(self.asked, self.unseen.noise)
        return prediction, [str(warning.message) for warning in caught]

    def score(self) -> tuple[Float[Tensor, " v"], list[str]]:
        """Log densities of the validation rows, in nats, and warnings."""
        prediction, messages = self.predict()
        return self.target.log_density(self.unseen.z, prediction), messages


def weighted_mean(values: Tensor, weights: Tensor) -> float:
    """Return the weighted mean."""
    return float((weights * values).sum() / weights.sum())
