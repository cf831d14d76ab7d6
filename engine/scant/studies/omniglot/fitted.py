"""A model that has learned from the rows of a table: what reports and answers are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.predictive import CategoricalPredictive
from scant.studies.omniglot import models
from scant.studies.omniglot.prepared import Prepared
from scant.studies.omniglot.stack import Stack


@dataclass(frozen=True)
class FittedOmniglot:
    """A model of prepared rows.

    Attributes:
        data: The rows.
        model: Of their classes.
        temperature: By which functions are divided before the softmax.
        typical: Rows that tell the prior variance of the latent functions, as the kernel takes
            them.
        stack: What its probabilities are averaged with.
    """

    data: Prepared
    model: models.Model
    temperature: float
    typical: Any
    stack: Stack | None = None

    def ask(self, which: Int[np.ndarray, " n"], draws: int | None = None) -> Any:
        """Class probabilities of some of the table's rows (`MOGPARPrediction`)."""
        at = torch.as_tensor(which).to(self.data.device)
        return self.of_features(self.data.x[at], self.data.output[at], draws)

    def predictive(self, which: Int[np.ndarray, " n"]) -> CategoricalPredictive:
        """Classes of some of the table's rows, numbered through all outputs."""
        prediction = self.ask(which)
        p, information = _array(prediction.probability), _array(prediction.information)
        first = self.data.observed.offset[self.data.observed.output[which]]
        return CategoricalPredictive(p, information=information, first=first)

    def of_features(self, x: torch.Tensor, output: torch.Tensor, draws: int | None = None) -> Any:
        """Class probabilities of rows as learned."""
        prepared = self.model.kernel.prepare(x)
        how = {} if draws is None else {"draws": draws}
        told = self.model.predict(prepared, output, temperature=self.temperature, **how)
        return told if self.stack is None else self.stack.mixed(told, x, output)

    def factors(self) -> Float[np.ndarray, "q c r"]:
        """A_q of all classes, scaled by the prior deviation of u_q at typical rows."""
        return _array(models.factors(self.model, self.typical))

    def means(self, which: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n c"]:
        """Posterior means of the functions of all classes of all outputs at some rows."""
        at = torch.as_tensor(which).to(self.data.device)
        return _array(models.means(self.model, self.model.kernel.prepare(self.data.x[at])))

    def response(
        self, x: Float[np.ndarray, " v"], output: int, label: int
    ) -> Float[np.ndarray, "h w"]:
        """What each patch of an image adds to the mean of a class's function, in nats."""
        result = models.response(self.model, torch.tensor(x).to(self.data.device), output, label)
        return np.empty((0, 0)) if result is None else _array(result)


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
