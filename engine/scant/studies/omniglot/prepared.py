"""The rows of a table as the models of omniglot learn them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.studies.learned_region import LearnedRegion
from scant.studies.omniglot import strokes
from scant.studies.omniglot.settings import HOG, NETWORK, OmniglotSettings
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
    def drawings(self) -> strokes.Drawings | None:
        """Images of training rows, and what is seen in them; None where only pixels are."""
        views = {HOG: [strokes.HOG], NETWORK: list(strokes.VIEWS)}.get(self.settings.features)
        if views is None or self.image is None or min(self.image) < strokes.LEAST:
            return None
        observed = self.observed.take(self.train)
        images = strokes.small(observed.x, self.image)
        return strokes.Drawings.of(
            images, observed.label, observed.output, self.sizes.tolist(), views
        )

    @cached_property
    def output(self) -> Int[torch.Tensor, " n"]:
        return torch.as_tensor(self.observed.output).to(self.device)

    @cached_property
    def label(self) -> Int[torch.Tensor, " n"]:
        return torch.as_tensor(self.observed.label).to(self.device)
