"""The pool of a labeling session, and the session that has learned from its labels.

What reports, answers and the methods compared are made from; `Study` makes both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scant.studies.clamp import pictures
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner, start_of
from scant.studies.clamp.entry import ClampSettings
from scant.studies.clamp.splits import Rows
from scant.studies.learned_region import LearnedRegion
from scant.studies.protocol import Tensors

TOLERANCE = 0.005  # of F1: how much better a round must be to count


@dataclass(frozen=True)
class Prepared:
    """A table, split and preprocessed.

    Attributes:
        settings: Of the run.
        metadata: What labels the arrays on a page.
        rows: The pool, and what its rows are for.
        kept: Pictures to look at, of a session that was kept; None: not put together yet.
        device: On which models are trained.
    """

    settings: ClampSettings
    metadata: dict[str, Any]
    rows: Rows
    kept: pictures.Mosaics | None
    device: torch.device

    @cached_property
    def x(self) -> Float[torch.Tensor, "n q"]:
        return torch.as_tensor(self.rows.x, dtype=torch.float64).to(self.device)

    @cached_property
    def region(self) -> LearnedRegion:
        """Where the patches of the pool lie: its labels are few."""
        return LearnedRegion(self.rows.x)

    @cached_property
    def shown(self) -> pictures.Mosaics:
        """Pictures to look at; put together when they are first asked for."""
        if self.kept is not None:
            return self.kept
        return pictures.mosaics(self.rows.pool, self.settings.picture_width)

    @cached_property
    def first(self) -> Int[np.ndarray, " s"]:
        """Rows whose labels a session has from the start.

        Of a person's session those that the table says, unless it says all: then it is the answer
        book.
        """
        s, rows = self.settings, self.rows
        if s.expert != "you":
            return start_of(rows.pool.label, rows.answerable, s.start, s.seed, 0)[0]
        whole = len(rows.answerable) == len(rows.askable)
        return np.empty(0, dtype=np.int64) if whole else rows.answerable

    def session(self, repeat: int, method: str) -> ActiveLearner:
        """Begun with the start rows of that repeat."""
        s, rows = self.settings, self.rows
        person = s.expert == "you"
        askable = rows.askable if person else rows.answerable
        order = None
        if not person:
            _, order = start_of(rows.pool.label, askable, s.start, s.seed, repeat)
        seed = 1_000_003 * s.seed + repeat
        return ActiveLearner(s, self.x, askable, seed, method, order)

    def scores(self, session: ActiveLearner) -> tuple[float, float, float]:
        """F1, precision and recall of a session on the held-out rows."""
        at = self.rows.scored
        return rows_of.scores(self.rows.pool.label[at], session.p.cpu().numpy()[at])


@dataclass
class FittedClamp:
    """A session on a pool, which goes on with the labels that a person sends.

    Attributes:
        data: The pool.
        active: What has learned from the labels so far.
        heard: F1 by batch, of a person's session.
    """

    data: Prepared
    active: ActiveLearner
    heard: dict[int, float] = field(default_factory=dict)

    def tensors(self) -> tuple[Tensors, dict[str, Any]]:
        """The session as it is kept (see `scant.studies.protocol.Study.fitted`)."""
        rows, pool = self.data.rows, self.data.rows.pool
        stored: dict[str, np.ndarray] = {
            "x": rows.x,
            "row": rows.row,
            "role": rows.role,
            "label": pool.label,
            "picture": pool.picture,
            "place": pool.place,
            "columns": pool.x if rows.given == "columns" else pool.x[:, :0],
            **{f"scaling.{k}": v for k, v in rows.scaling._asdict().items()},
            **self.data.shown.arrays(),
        }
        tensors = {f"rows.{k}": torch.tensor(v) for k, v in stored.items()}
        tensors |= {f"active.{k}": v for k, v in self.active.state().items()}
        return tensors, {"words": self.data.metadata}
