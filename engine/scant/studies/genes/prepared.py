"""Table of replicas prepared for training: training and held-out rows, scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int

from scant.models.replicated.data import Data, Scale
from scant.models.replicated.moderation import moderated
from scant.studies.genes import models
from scant.studies.genes import preprocessing as rows
from scant.studies.genes.settings import GenesSettings
from scant.studies.genes.table import Replicas, of
from scant.studies.protocol import roles
from scant.studies.split import groups
from scant.tables.column_matching import listed


@dataclass(frozen=True)
class Prepared:
    """Split and standardized table.

    Attributes:
        metadata: Metadata of the run.
        observed: All rows of the table.
        train: Training rows.
        test: Held-out rows.
        replicas: Names of the replicas of each output (`preprocessing.names`).
        scale: Transformation from the table's units to the model's, and back.
        data: Training rows in the model's units.
        parts: Rows that further folds hold out (`preprocessing.parts`).
        notes: Notes on the table.
        roles: Role of each row of the table (`protocol.roles`).
    """

    metadata: dict[str, Any]
    observed: Replicas
    train: Bool[np.ndarray, " n"]
    test: Bool[np.ndarray, " n"]
    replicas: list[list[str]]
    scale: Scale
    data: Data
    parts: list[Int[np.ndarray, " _"]] | None = None
    notes: Sequence[str] = ()
    roles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @classmethod
    def of(
        cls,
        settings: GenesSettings,
        metadata: dict[str, Any],
        observed: Replicas,
        train: Bool[np.ndarray, " n"],
        test: Bool[np.ndarray, " n"],
        device: torch.device,
        **further: Any,
    ) -> Prepared:
        """Standardize the training rows of a split table."""
        replicas = rows.names(observed)
        data = rows.data_of(observed, train, replicas, device)
        scale = Scale.of(data)
        if metadata.get("moderated"):
            scale = moderated(scale, data)
        return cls(
            metadata, observed, train, test, replicas, scale, scale.standardize(data), **further
        )


def prepare(settings: GenesSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Split a table and standardize its rows.

    Raises:
        BadInput: The table does not fit the settings.
    """
    observed = of(table)
    train, test = rows.split(settings, observed, groups(table, settings.split_by))
    metadata = rows.metadata_of(settings, observed, train, test)
    untrained = [
        name for d, name in enumerate(observed.outputs) if not train[observed.output == d].any()
    ]
    notes = list[str]()
    prepared = Prepared.of(
        settings,
        metadata,
        observed,
        train,
        test,
        device,
        parts=rows.parts(settings, observed, test),
        notes=notes,
        roles=roles(len(observed), train=train, test=test),
    )
    notes += models.check(settings, prepared.data)
    if untrained:
        notes.append(
            f"Outputs without training rows: {listed(untrained)}. Their predictions come from the "
            "other outputs or from the prior."
        )
    return prepared
