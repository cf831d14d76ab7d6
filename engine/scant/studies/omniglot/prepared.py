"""A table prepared for training: split, images of one size, stroke features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from scant.studies.auto import CHOSEN
from scant.studies.learned_region import LearnedRegion
from scant.studies.omniglot import preprocessing as rows
from scant.studies.omniglot import strokes
from scant.studies.omniglot.settings import HOG, NETWORK, OmniglotSettings
from scant.studies.omniglot.table import Characters, of
from scant.studies.protocol import roles
from scant.studies.split import groups, marks


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Settings of the run, with choices in place of `auto`.
        metadata: Metadata of the run (`preprocessing.metadata_of`).
        observed: The rows with the model's inputs.
        image: Height and width of images; None: rows are features.
        train: Training rows.
        test: Held-out rows.
        places: Positions of the rows in the table; empty for a restored run.
        device: Device of the models.
        notes: Notes on the table.
        roles: Role of each row of the table (`protocol.roles`).
    """

    settings: OmniglotSettings
    metadata: dict[str, Any]
    observed: Characters
    image: tuple[int, int] | None
    train: Int[np.ndarray, " l"]
    test: Int[np.ndarray, " t"]
    places: Int[np.ndarray, " n"]
    device: torch.device
    notes: Sequence[str] = ()
    roles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @cached_property
    def sizes(self) -> Int[np.ndarray, " d"]:
        """Number of classes of each output."""
        return np.array([len(names) for names in self.observed.classes])

    @cached_property
    def x(self) -> Float[torch.Tensor, "n v"]:
        return torch.as_tensor(self.observed.x, dtype=torch.float64).to(self.device)

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the training rows."""
        return LearnedRegion(self.observed.x[self.train])

    @cached_property
    def drawings(self) -> strokes.Drawings | None:
        """Images of training rows with further features; None if only pixels are used."""
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


def prepare(settings: OmniglotSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Split a table and bring its images to one size.

    Raises:
        BadInput: The table does not fit the settings.
    """
    observed = of(table)
    settings, chosen = rows.settled(settings, observed)
    size = rows.shape(settings, observed)
    observed, positions = rows.chosen(settings, observed)
    x, image = rows.model_inputs(settings, observed.x, size)
    names = [f"p{i}" for i in range(x.shape[1])] if image is not None else observed.features
    observed = replace(observed, x=x, features=names)
    group = groups(table, settings.split_by)
    train, test = rows.split(
        settings, observed, marks(table)[positions], None if group is None else group[positions]
    )
    metadata = rows.metadata_of(settings, observed, image, train, test)
    if chosen:
        metadata[CHOSEN] = {name: list(choice) for name, choice in chosen.items()}
    return Prepared(
        settings=settings,
        metadata=metadata,
        observed=observed,
        image=image,
        train=np.flatnonzero(train),
        test=np.flatnonzero(test),
        places=positions,
        device=device,
        notes=rows.notes(settings, observed, size, image, test),
        roles=roles(len(table), train=positions[train], test=positions[test]),
    )
