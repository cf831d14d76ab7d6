"""A fitted model of the rows of a table, for reports and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.predictive import CategoricalPredictive
from scant.studies.omniglot import models
from scant.studies.omniglot.partners import Average
from scant.studies.omniglot.prepared import Prepared
from scant.studies.protocol import to_numpy


@dataclass(frozen=True)
class FittedOmniglot:
    """A model of prepared rows.

    Attributes:
        data: The rows.
        model: Model of their classes.
        temperature: Divisor of the functions before the softmax.
        typical: Rows, prepared by the kernel, that estimate the prior variance of the latent
            functions.
        average: Average with other classifiers; None: the model alone.
    """

    data: Prepared
    model: models.Model
    temperature: float
    typical: Any
    average: Average | None = None

    def predictive(
        self, which: Int[np.ndarray, " n"], draws: int | None = None
    ) -> CategoricalPredictive:
        """Predict classes of some rows of the table, numbered through all outputs."""
        return self.of_features(
            self.data.observed.x[which], self.data.observed.output[which], draws
        )

    def of_features(
        self, x: Float[np.ndarray, "n v"], output: Int[np.ndarray, " n"], draws: int | None = None
    ) -> CategoricalPredictive:
        """Predict classes of rows with prepared features."""
        device = self.data.device
        prepared = self.model.kernel.prepare(torch.as_tensor(x, dtype=torch.float64).to(device))
        options = {} if draws is None else {"draws": draws}
        at = torch.as_tensor(output).to(device)
        prediction = self.model.predict(prepared, at, temperature=self.temperature, **options)
        p, information = to_numpy(prediction.probability), to_numpy(prediction.information)
        first = self.data.observed.offset[output]
        predictive = CategoricalPredictive(p, information=information, first=first)
        return predictive if self.average is None else self.average.combine(predictive, x, output)

    def factors(self) -> Float[np.ndarray, "q c r"]:
        """A_q of all classes, scaled by the prior deviation of u_q at typical rows."""
        return to_numpy(models.factors(self.model, self.typical))

    def means(self, which: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n c"]:
        """Posterior means of the functions of all classes of all outputs at some rows."""
        at = torch.as_tensor(which).to(self.data.device)
        return to_numpy(models.means(self.model, self.model.kernel.prepare(self.data.x[at])))

    def response(
        self, x: Float[np.ndarray, " v"], output: int, label: int
    ) -> Float[np.ndarray, "h w"]:
        """Part of each patch of an image in the mean of a class's function, in nats."""
        result = models.response(self.model, torch.tensor(x).to(self.data.device), output, label)
        return np.empty((0, 0)) if result is None else to_numpy(result)
