"""A table prepared for training: split, principal components, network features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from scant.random import restart_generator
from scant.studies.learned_region import LearnedRegion
from scant.studies.mitosis import models
from scant.studies.mitosis import splits as rows
from scant.studies.mitosis.cost import DGPLVM_MAX_ROWS, MODELED, MOST_KNOWN, MOST_MODELED
from scant.studies.mitosis.entry import OTHERS, STRIP
from scant.studies.mitosis.preprocessing import Columns
from scant.studies.mitosis.settings import (
    EARLY,
    LATENT,
    MODELS,
    ON_PIXELS,
    OURS,
    PRIORS,
    MitosisSettings,
)
from scant.studies.mitosis.sight import Sight, wanted
from scant.studies.mitosis.splits import Split
from scant.studies.mitosis.table import LabeledImages
from scant.studies.protocol import roles
from scant.studies.split import marks, with_groups

PICTURED = 50  # held-out rows of each class whose images are stored


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Settings of the run.
        metadata: Metadata of the run (`splits.metadata_of`).
        label: Classes of the rows, the rare one 0.
        z: Standardized pixels, features or their principal components; NaN where missing.
        split: Training, validation and test rows.
        columns: Transformation from the table's columns to `z`, and back.
        image: Height and width of images; None: rows are features.
        places: Positions of the rows in the table.
        pictured: Rows whose images are stored.
        images: The stored images.
        shares: Class frequencies in the table.
        device: Device of the models.
        sight: Transformation from images to network features; None: classifiers get `z` alone.
        network: Network features of the rows.
        joined: Number of network features in the latent variable model.
        group: Group of each row; None: there are none, or the study is restored.
        notes: Notes on the table.
        roles: Role of each row of the table (`protocol.roles`).
    """

    settings: MitosisSettings
    metadata: dict[str, Any]
    label: Int[np.ndarray, " n"]
    z: Float[np.ndarray, "n k"]
    split: Split
    columns: Columns
    image: tuple[int, int] | None
    places: Int[np.ndarray, " n"]
    pictured: Int[np.ndarray, " m"]
    images: Float[np.ndarray, "m d"]
    shares: Float[np.ndarray, " c"]
    device: torch.device
    sight: Sight | None = None
    network: Float[np.ndarray, "n e"] | None = None
    joined: int = 0
    group: Int[np.ndarray, " n"] | None = None
    notes: Sequence[str] = ()
    roles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @property
    def seen(self) -> Float[np.ndarray, "n _"]:
        """Inputs of the classifiers: `z` and network features."""
        return self.z if self.network is None else np.hstack([self.z, self.network])

    @property
    def widths(self) -> list[int]:
        """Numbers of columns of `z` and of the network features."""
        return [part.shape[1] for part in (self.z, self.network) if part is not None]

    @property
    def width(self) -> int:
        """Number of leading columns of `seen` in the latent variable model."""
        return self.z.shape[1] + self.joined

    def without_network(self) -> Prepared:
        """Return the rows without network features."""
        return replace(self, network=None, sight=None, joined=0)

    def look(self, x: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m _"]:
        """Inputs of the classifiers for rows in the table's units."""
        z = self.columns.forward(x)
        return z if self.sight is None else np.hstack([z, self.sight.forward(x)])

    @property
    def n_classes(self) -> int:
        return len(self.metadata["classes"])

    @property
    def train(self) -> Int[np.ndarray, " l"]:
        """Training rows of the latent variable model."""
        split = self.split
        return split.learnt if split.modeled is None else split.modeled

    @cached_property
    def known(self) -> Int[np.ndarray, " k"]:
        """Training and validation rows."""
        return np.union1d(self.split.learnt, self.split.validation).astype(int)

    @property
    def test(self) -> Int[np.ndarray, " t"]:
        return self.split.test

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the training rows."""
        return LearnedRegion(self.z[self.split.learnt])

    def given(self, selected: Int[np.ndarray, " m"], name: str = "") -> torch.Tensor:
        """Inputs of a latent variable model; missing values are filled for DGPLVM."""
        z = self.seen[selected, : self.width]
        if (name or self.settings.model) == "dgplvm":
            z = self.filled(z)
        return torch.tensor(z, dtype=torch.float64).to(self.device)

    def filled(self, z: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
        """Fill missing values with means of the training rows."""
        means = np.nanmean(self.seen[self.train, : z.shape[1]], axis=0)
        return np.where(np.isfinite(z), z, means)

    def drawn(self, z: Float[np.ndarray, "m k"]) -> np.ndarray:
        """Rows in the table's units: images in discrete gray levels, or features."""
        x = self.columns.back(z[:, : self.z.shape[1]])
        if self.image is None:
            return x
        shades = np.round(np.clip(x, 0, 1) * rows.SHADES) / rows.SHADES
        return shades.reshape(len(z), *self.image)

    def picture(self, row: int) -> np.ndarray:
        """A row in the table's units; the stored image if there is one."""
        position = int(np.searchsorted(self.pictured, row))
        if (
            self.image is not None
            and position < len(self.pictured)
            and self.pictured[position] == row
        ):
            return self.images[position].reshape(self.image)
        return self.drawn(self.filled(self.z[[row]]))[0]

    def prior(self, train: Int[np.ndarray, " m"]) -> Float[np.ndarray, " c"]:
        """Prior class probabilities by the settings."""
        if self.settings.prior == PRIORS[2]:
            return np.full(self.n_classes, 1 / self.n_classes)
        if self.settings.prior == PRIORS[1]:
            return self.shares
        selected = self.split.learnt if train is self.train else train
        return np.bincount(self.label[selected], minlength=self.n_classes) / len(selected)

    def build(self, restart: int) -> models.Model:
        """Build the latent variable model of a restart, at its starting values."""
        s, x = self.settings, self.given(self.train).cpu()
        label, generator = torch.tensor(self.label[self.train]), restart_generator(s.seed, restart)
        return models.build(s, s.model, x, label, self.n_classes, generator).to(self.device)


def prepare(settings: MitosisSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Split a table and transform its rows.

    Raises:
        BadInput: The table does not fit the settings.
    """
    s = settings
    cells, places = rows.chosen(s, LabeledImages.of(with_groups(table, s.split_by)))
    size = rows.shape(s, cells)
    x, image = rows.model_inputs(s, cells, size)
    split, notes = rows.split(s, cells, marks(table)[places])
    if s.model == "dgplvm" and len(split.learnt) > DGPLVM_MAX_ROWS:
        notes.append(f"DGPLVM learns from {DGPLVM_MAX_ROWS:,} of {len(split.learnt):,} rows.")
        subset = rows.some(np.random.default_rng(s.seed), cells, split.learnt, DGPLVM_MAX_ROWS)
        split = replace(split, learnt=subset)
    if s.classifier != LATENT and len(split.learnt) > MOST_MODELED:
        notes.append(
            f"The latent variable model learns from {MOST_MODELED:,} of {len(split.learnt):,} "
            f"rows, the GP classifier from {MOST_KNOWN:,} at most."
        )
        subset = rows.some(np.random.default_rng(s.seed), cells, split.learnt, MOST_MODELED)
        split = replace(split, modeled=subset)
    parts = {"train": split.learnt, "validation": split.validation, "test": split.test}
    columns = Columns.of(x[split.learnt], s.n_components, image is not None)
    z, sight, network = columns.forward(x), None, None
    uses_network, on_network = wanted(s, image)
    if uses_network and image:
        sight, network = Sight.of(x, z, image, split.learnt, s.features == EARLY)
    stored = pictured(cells.label, split, len(cells.classes)) if image else split.test[:0]
    return Prepared(
        settings=s,
        metadata=rows.metadata_of(s, cells, image, split, _methods(s, network is not None)),
        label=cells.label,
        z=z,
        split=split,
        columns=columns,
        image=image,
        places=places,
        pictured=stored,
        images=np.nan_to_num(x[stored]) if image else np.empty((0, 0)),
        shares=np.bincount(cells.label) / len(cells),
        device=device,
        sight=sight,
        network=network,
        joined=0 if network is None else min(MODELED, network.shape[1]),
        group=cells.group if cells.groups else None,
        notes=[*notes, *on_network, *rows.notes(cells, size, image, split, columns)],
        roles=roles(len(table), **{role: places[at] for role, at in parts.items()}),
    )


def _methods(s: MitosisSettings, network: bool) -> list[str]:
    """Names of the methods in the report, the run's first.

    With network features, methods on pixels alone are included.
    """
    methods = [MODELS[s.model]] if s.classifier == LATENT else [OURS, MODELS[s.model]]
    if s.baselines and s.classifier == LATENT:
        methods += [name for model, name in MODELS.items() if model != s.model]
    if s.baselines:
        methods += OTHERS
    if s.baselines and network:
        methods += [name + ON_PIXELS for name in methods if name != OURS]
    return methods


def pictured(label: Int[np.ndarray, " n"], split: Split, n_classes: int) -> Int[np.ndarray, " m"]:
    """Rows whose images are stored: training rows on display, and some held-out rows."""
    strip = split.learnt[rows.shown(label[split.learnt], STRIP * n_classes)]
    test_rows = [split.test[label[split.test] == c][:PICTURED] for c in range(n_classes)]
    return np.unique(np.concatenate([strip, *test_rows]))
