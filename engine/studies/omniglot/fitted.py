"""The rows of a table as the models learn them, and a model that has learned from them.

What reports, answers, the temperature and the methods compared are made from; `Study` makes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scant.studies.learned_region import LearnedRegion
from scant.studies.omniglot import models
from scant.studies.omniglot.entry import OmniglotSettings
from scant.studies.omniglot.table import Characters


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Of the run.
        metadata: What labels the arrays on a page (`preprocessing.metadata_of`).
        observed: The rows, as they are learned.
        image: Height and width of images; None: rows are features.
        train: Training rows.
        test: Rows that are held out.
        places: Of the rows in the table; none where a kept run does not know them.
        device: On which models are trained.
    """

    settings: OmniglotSettings
    metadata: dict[str, Any]
    observed: Characters
    image: tuple[int, int] | None
    train: Int[np.ndarray, " l"]
    test: Int[np.ndarray, " t"]
    places: Int[np.ndarray, " n"]
    device: torch.device

    @cached_property
    def sizes(self) -> Int[np.ndarray, " d"]:
        """How many classes each output has."""
        return np.array([len(names) for names in self.observed.classes])

    @cached_property
    def x(self) -> Float[torch.Tensor, "n v"]:
        return torch.as_tensor(self.observed.x, dtype=torch.float64).to(self.device)

    @cached_property
    def region(self) -> LearnedRegion:
        """Where rows were learned from."""
        return LearnedRegion(self.observed.x[self.train])

    @cached_property
    def output(self) -> Int[torch.Tensor, " n"]:
        return torch.as_tensor(self.observed.output).to(self.device)

    @cached_property
    def label(self) -> Int[torch.Tensor, " n"]:
        return torch.as_tensor(self.observed.label).to(self.device)


@dataclass(frozen=True)
class FittedOmniglot:
    """A model of prepared rows.

    Attributes:
        data: The rows.
        model: Of their classes.
        temperature: By which functions are divided before the softmax.
        typical: Rows that tell the prior variance of the latent functions, as the kernel takes
            them.
    """

    data: Prepared
    model: models.Model
    temperature: float
    typical: Any

    def ask(self, which: Int[np.ndarray, " n"], draws: int | None = None) -> Any:
        """Class probabilities of some of the table's rows (`MOGPARPrediction`)."""
        at = torch.as_tensor(which).to(self.data.device)
        return self.of_features(self.data.x[at], self.data.output[at], draws)

    def of_features(self, x: torch.Tensor, output: torch.Tensor, draws: int | None = None) -> Any:
        """Class probabilities of rows as learned."""
        prepared = self.model.kernel.prepare(x)
        how = {} if draws is None else {"draws": draws}
        return self.model.predict(prepared, output, temperature=self.temperature, **how)

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
