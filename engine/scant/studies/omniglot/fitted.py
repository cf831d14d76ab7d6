"""A model that has learned from the rows of a table: what reports and answers are made from."""

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
        model: Of their classes.
        temperature: By which functions are divided before the softmax.
        typical: Rows that tell the prior variance of the latent functions, as the kernel takes
            them.
        average: With which its probabilities are averaged; None: they are its own.
    """

    data: Prepared
    model: models.Model
    temperature: float
    typical: Any
    average: Average | None = None

    def predictive(
        self, which: Int[np.ndarray, " n"], draws: int | None = None
    ) -> CategoricalPredictive:
        """Classes of some of the table's rows, numbered through all outputs."""
        return self.of_features(
            self.data.observed.x[which], self.data.observed.output[which], draws
        )

    def of_features(
        self, x: Float[np.ndarray, "n v"], output: Int[np.ndarray, " n"], draws: int | None = None
    ) -> CategoricalPredictive:
        """Classes of rows as learned."""
        device = self.data.device
        prepared = self.model.kernel.prepare(torch.as_tensor(x, dtype=torch.float64).to(device))
        how = {} if draws is None else {"draws": draws}
        at = torch.as_tensor(output).to(device)
        told = self.model.predict(prepared, at, temperature=self.temperature, **how)
        p, information = to_numpy(told.probability), to_numpy(told.information)
        first = self.data.observed.offset[output]
        own = CategoricalPredictive(p, information=information, first=first)
        return own if self.average is None else self.average.combine(own, x, output)

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
        """What each patch of an image adds to the mean of a class's function, in nats."""
        result = models.response(self.model, torch.tensor(x).to(self.data.device), output, label)
        return np.empty((0, 0)) if result is None else to_numpy(result)
