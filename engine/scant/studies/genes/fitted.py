"""A model of replicas and its rows, for curves, report and queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from scant.errors import BadInput
from scant.models.replicated.data import Data, ReplicatedPrediction, Scale
from scant.models.replicated.stack import Stack
from scant.predictive import MixturePredictive
from scant.studies.genes import preprocessing as rows
from scant.studies.genes.models import Model
from scant.studies.genes.settings import GenesSettings
from scant.studies.genes.table import NEW, Replicas
from scant.studies.protocol import to_numpy
from scant.tables.column_matching import listed

MOST_OUTPUTS = 60  # of the matrix of correlations sent to the page


@dataclass(frozen=True)
class FittedReplicas:
    """A model with the rows that it was trained on; use `replace` for another model.

    Reports and queries use this class, so that they do not depend on the training.

    Attributes:
        settings: Settings of the run.
        model: Model at its current parameters.
        observed: All rows of the table.
        train: Mask of the training rows.
        test: Mask of the held-out rows.
        scale: Transformation from the table's units to the model's, and back.
        data: Training rows in the model's form.
    """

    settings: GenesSettings
    model: Model
    observed: Replicas
    train: Bool[np.ndarray, " n"]
    test: Bool[np.ndarray, " n"]
    scale: Scale
    data: Data

    def output(self, name: str) -> int:
        """Index of an output.

        Raises:
            BadInput: The model has no such output.
        """
        if name not in self.observed.outputs:
            raise BadInput(
                f"There is no output {name!r}; the outputs are {listed(self.observed.outputs)}."
            )
        return self.observed.outputs.index(name)

    @property
    def grid(self) -> Float[np.ndarray, " g"]:
        """Inputs of the curves, in the table's unit."""
        return np.linspace(self.observed.x.min(), self.observed.x.max(), rows.GRID)

    @property
    def units(self) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
        """Units of the scores (`preprocessing.units`)."""
        return rows.units(self.settings, self.observed, self.train)

    @property
    def shown(self) -> list[int]:
        """Outputs in a snapshot."""
        return rows.shown(self.observed, self.test)

    def predictive(
        self, output: np.ndarray, replica: np.ndarray, x: np.ndarray
    ) -> MixturePredictive:
        """Predict new measurements in the output's unit; mix the members of a stack.

        Args:
            output: Index of the output.
            replica: Index within the output's replicas; `NEW` for a new one.
            x: Inputs in the table's unit.
        """
        d, r, x_scaled = self._index(output), self._index(replica), self._scaled(x)
        stack = self.model if isinstance(self.model, Stack) else Stack([self.model], [1.0])
        predictions = [self._gaussian(m.predict(d, r, x_scaled), d) for m in stack.members]
        return MixturePredictive.mixed(predictions, to_numpy(stack.weights))

    def ask(
        self, output: np.ndarray, replica: np.ndarray, x: np.ndarray
    ) -> Float[np.ndarray, "3 n"]:
        """Mean of f, deviation of f, deviation of a new measurement (see `predictive`)."""
        if not len(x):
            return np.empty((3, 0))
        return columns(self.predictive(output, replica, x))

    def on_test_rows(self) -> MixturePredictive:
        """Predict the held-out rows."""
        observed, test = self.observed, self.test
        return self.predictive(observed.output[test], observed.replica[test], observed.x[test])

    def new(self, output: int) -> Float[np.ndarray, "3 g"]:
        """Curve of a replica without measurements (see `ask`)."""
        grid = self.grid
        return self.ask(np.full(len(grid), output), np.full(len(grid), NEW), grid)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Arrays of the catalog entry during training."""
        return {**self.curves(self.shown), **self.levels(self.shown)}

    def curves(self, outputs: list[int]) -> dict[str, np.ndarray]:
        """Posterior of every replica of some outputs, and of the outputs' shared curves.

        Arrays are padded with NaN for outputs with fewer replicas than others.
        """
        grid = self.grid
        n_replicas = max((len(self.observed.replicas[d]) for d in outputs), default=0)
        result = np.full((3, len(outputs), n_replicas, len(grid)), np.nan)
        pairs = [
            (i, d, r) for i, d in enumerate(outputs) for r in range(len(self.observed.replicas[d]))
        ]
        if pairs:
            index, d, r = (np.repeat(column, len(grid)) for column in np.array(pairs).T)
            moments = self.ask(d, r, np.tile(grid, len(pairs)))
            result[:, index, r, np.tile(np.arange(len(grid)), len(pairs))] = moments
        shared = self._shared(outputs)
        return {
            "grid": grid,
            **dict(zip(("mean", "std_f", "std_y"), result)),
            "shared_mean": shared[0],
            "shared_std": shared[1],
        }

    def levels(self, outputs: list[int]) -> dict[str, np.ndarray]:
        """Latent positions and correlation of the outputs, and prior variance shares by level."""
        positions = self.model.latent()
        latent, spread = (np.empty((0, 0)),) * 2 if positions is None else map(to_numpy, positions)
        K = to_numpy(self.model.outputs_covariance()[:MOST_OUTPUTS, :MOST_OUTPUTS])
        scale = np.sqrt(np.maximum(np.diag(K), 1e-300))
        share = to_numpy(self.model.levels(self._index(outputs)))
        return {
            "latent": latent,
            "latent_std": spread,
            "K": K / scale / scale[:, None],
            "share": share / share.sum(1, keepdims=True),
        }

    def _shared(self, outputs: list[int]) -> Float[np.ndarray, "3 s g"]:
        shape = (3, len(outputs), rows.GRID)
        d = self._index(outputs).repeat_interleave(rows.GRID)
        result = self.model.shared(d, self._scaled(np.tile(self.grid, len(outputs))))
        if result is None:
            return np.full(shape, np.nan)
        mean, variance = result
        prediction = ReplicatedPrediction(mean, variance, torch.zeros_like(mean))
        return columns(self._gaussian(prediction, d)).reshape(shape)

    def _gaussian(
        self, prediction: ReplicatedPrediction, output: torch.Tensor
    ) -> MixturePredictive:
        """Convert a prediction of standardized rows to the outputs' units."""
        mean, variance, noise = map(to_numpy, self.scale.restore(output, prediction))
        return MixturePredictive.gaussian(mean, variance + noise, noise)

    def _index(self, values: list[int] | np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.int64).to(self.data.y.device)

    def _scaled(self, x: np.ndarray) -> torch.Tensor:
        inputs = torch.tensor(x, dtype=torch.float64).to(self.data.y.device)
        return (inputs - self.scale.x_centre) / self.scale.x_width


def columns(prediction: MixturePredictive) -> Float[np.ndarray, "3 n"]:
    """Mean of f, deviation of f, deviation of a new measurement."""
    return np.stack([prediction.mean, np.sqrt(prediction.model_variance), prediction.std])
