"""Table prepared for a labeling session: pool, roles of its rows, start rows, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from scant.studies.auto import CHOSEN
from scant.studies.clamp import pictures
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner, Linear, start_of
from scant.studies.clamp.placed import PlacedPatches
from scant.studies.clamp.settings import CNN, COMPARED, METHODS, ROLES, ClampSettings
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PatchPool
from scant.studies.learned_region import LearnedRegion
from scant.studies.protocol import roles
from scant.studies.query import whole
from scant.studies.split import marks
from scant.tables.images.features import features
from scant.tables.images.pixels import pixels


@dataclass(frozen=True)
class Prepared:
    """Split and preprocessed table.

    Attributes:
        settings: Settings of the run, with choices in place of `auto`.
        metadata: Metadata of the run.
        rows: The pool and the roles of its rows.
        device: Device of the models.
        stored: Pictures of a restored session; None: made on first use.
        notes: Notes on the table.
        roles: Role of each row of the table (`protocol.roles`).
        placed_x: Components of placed patches, by their numbers; see `add_placed`.
    """

    settings: ClampSettings
    metadata: dict[str, Any]
    rows: Rows
    device: torch.device
    stored: pictures.Mosaics | None = None
    notes: Sequence[str] = ()
    roles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))
    placed_x: dict[int, Float[torch.Tensor, " q"]] = field(default_factory=dict)

    @cached_property
    def x(self) -> Float[torch.Tensor, "n q"]:
        return torch.as_tensor(self.rows.x, dtype=torch.float64).to(self.device)

    @property
    def spent(self) -> int:
        """Number of labels of the budget used for validation."""
        return len(self.rows.validation) if self.settings.count_validation else 0

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the whole pool, since labels are few."""
        return LearnedRegion(self.rows.x)

    @cached_property
    def shown(self) -> pictures.Mosaics:
        """Pictures of the pool, made on first use."""
        if self.stored is not None:
            return self.stored
        return pictures.mosaics(self.rows.pool, self.settings.picture_width)

    @cached_property
    def placed(self) -> PlacedPatches:
        """Numbers and boxes of the patches that a person can place in the pictures."""
        pool = self.rows.pool
        return PlacedPatches(pool.picture, pool.place, bool(self.metadata.get("placed")))

    def add_placed(self, images: Mapping[int, bytes]) -> None:
        """Compute the components of placed patches from their image files."""
        if images:
            x = features(list(images.values()), self.rows.given)
            z = torch.as_tensor(self.rows.scaling.transform(x)).to(self.x)
            self.placed_x.update(zip(images, z))

    def read_row(self, value: Any, name: str) -> int:
        """A row of the pool, or the number of a placed patch.

        Args:
            value: Value that was sent.
            name: Its name for the message.

        Raises:
            BadInput: It is no whole number, or there is no such patch.
        """
        row = whole(value, name, 0, self.placed.last)
        self.placed.box(row)
        return row

    def mosaic_box(self, row: int) -> tuple[int, Float[np.ndarray, " 4"]]:
        """Picture of a row or placed patch among the mosaics, and its box there, in pixels.

        The box is left, top, right and bottom.
        """
        mosaics = self.shown
        if row < len(mosaics.picture):
            return int(mosaics.picture[row]), mosaics.boxes[row]
        picture, box = self.placed.picture_of(row), self.placed.box(row)
        first = int(np.flatnonzero(mosaics.picture == picture)[0])
        corners, size = mosaics.boxes[first], self.rows.pool.place[first, 2:4]
        scale = (corners[2:] - corners[:2]) / size
        return picture, np.concatenate([box[:2], box[:2] + box[2:]]) * np.tile(scale, 2)

    @cached_property
    def first(self) -> Int[np.ndarray, " s"]:
        """Rows whose labels a session has from the start.

        A person's session begins with the labels in the table, unless the table labels all rows.
        """
        s, rows = self.settings, self.rows
        if s.expert != "you":
            answers = rows.answerable
            return start_of(rows.pool.label, answers, s.start, s.seed, 0, rows.sought)[0]
        all_labeled = len(rows.answerable) == len(rows.askable)
        return np.empty(0, dtype=np.int64) if all_labeled else rows.answerable

    def session(self, repeat: int, method: str) -> ActiveLearner:
        """A new session with the start rows of a repeat."""
        s, rows = self.settings, self.rows
        person = s.expert == "you"
        askable = np.setdiff1d(rows.askable, self.checks) if person else rows.answerable
        order = None
        if not person:
            _, order = start_of(rows.pool.label, askable, s.start, s.seed, repeat, rows.sought)
        seed = 1_000_003 * s.seed + repeat
        names = rows.pool.classes
        return ActiveLearner(s, self.x, askable, seed, method, order, names, self.placed_x)

    @cached_property
    def checks(self) -> Int[np.ndarray, " c"]:
        """Rows of a person's session that estimate its F1, in the order of the queries.

        They are a random sample of the pool and are not learned from.
        """
        s, rows = self.settings, self.rows
        if s.expert != "you":
            return np.empty(0, dtype=np.int64)
        order = np.random.default_rng([s.seed, 64]).permutation(rows.askable)
        order = order[~np.isin(order, self.first)]
        return order[: round(s.check_share * len(order))]

    def scores(self, session: ActiveLearner | Linear) -> tuple[float, float, float]:
        """F1, precision and recall of a session on the held-out rows."""
        at = self.rows.scored
        return rows_of.scores(self.rows.pool.label[at], session.predicted[at], self.rows.sought)


def prepare(settings: ClampSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Split a table and compute its features.

    Raises:
        BadInput: The table does not fit the settings.
    """
    names = settings.names_of_classes()
    pool = PatchPool.of(table, positive=settings.positive_class, named=names)
    settings, chosen = rows_of.settled(settings, pool)
    rows = rows_of.prepare(settings, pool, marks(table))
    metadata = metadata_of(settings, rows)
    if chosen:
        metadata[CHOSEN] = {name: list(choice) for name, choice in chosen.items()}
    notes = rows_of.notes(settings, rows, len(table))
    if settings.expert == "you":
        notes.append("Waiting for your labels: the first rows are drawn at random.")
    of_roles = {role: rows.row[rows.role == i] for i, role in enumerate(ROLES)}
    role = roles(len(table), **of_roles)
    return Prepared(settings, metadata, rows, device, notes=notes, roles=role)


def metadata_of(settings: ClampSettings, rows: Rows) -> dict[str, Any]:
    """Metadata of a run (`events.Started`)."""
    pool = rows.pool
    roles = np.bincount(rows.role, minlength=3).tolist()
    return {
        "classes": list(pool.classes),
        "positive": rows.sought,
        "methods": list(METHODS),
        "compared": [*COMPARED, *([CNN] if settings.network and pool.images else [])],
        "acquisition": settings.method,
        "pictures": list(pool.pictures),
        "features": rows.given,
        "columns": list(pool.features) if rows.given == "columns" else [],
        "images": bool(pool.images),
        "placed": rows.given != "columns" and pictures.are_placed(pool),
        "size": list(pixels(pool.images[0]).shape[:2]) if pool.images else [],
        "expert": settings.expert,
        "rows": {"pool": roles[0], "validation": roles[1], "test": roles[2]},
    }
