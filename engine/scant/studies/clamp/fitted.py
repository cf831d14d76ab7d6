"""The pool of a labeling session, and the session that has learned from its labels.

What reports, answers and the methods compared are made from; `Study` makes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from scant.models.laplace import stopping
from scant.studies.clamp import pictures
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner, Linear, start_of
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

    @property
    def spent(self) -> int:
        """Labels of the budget that went to validation."""
        return len(self.rows.validation) if self.settings.count_validation else 0

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
            answers = rows.answerable
            return start_of(rows.pool.label, answers, s.start, s.seed, 0, rows.sought)[0]
        whole = len(rows.answerable) == len(rows.askable)
        return np.empty(0, dtype=np.int64) if whole else rows.answerable

    def session(self, repeat: int, method: str) -> ActiveLearner:
        """Begun with the start rows of that repeat."""
        s, rows = self.settings, self.rows
        person = s.expert == "you"
        askable = np.setdiff1d(rows.askable, self.checks) if person else rows.answerable
        order = None
        if not person:
            _, order = start_of(rows.pool.label, askable, s.start, s.seed, repeat, rows.sought)
        seed = 1_000_003 * s.seed + repeat
        return ActiveLearner(s, self.x, askable, seed, method, order, rows.pool.classes)

    @cached_property
    def checks(self) -> Int[np.ndarray, " c"]:
        """Rows of a person's session whose labels are not learned from, in the order to ask them.

        A random sample of what may be asked about: by it the session's F1 is told.
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


def advised(
    session: ActiveLearner, changes: Sequence[float], settings: ClampSettings
) -> stopping.Advice:
    """Whether a session should go on, by the changes of F1 so far, by batch."""
    asked = set(session.rows)
    free = [row for row in session.askable.tolist() if row not in asked]
    predicted = int((session.predicted[free] == session.classes - 1).sum())
    return stopping.advise(
        changes,
        session.counts,
        predicted,
        flipped=session.flips,
        expected=session.expected,
        rows=len(session.askable),
        labels=len(session.rows),
        batch=settings.batch_size,
        window=settings.patience or stopping.WINDOW,
        sought=session.names[-1],
    )


@dataclass
class FittedClamp:
    """A session on a pool, which goes on with the labels that a person sends.

    Attributes:
        data: The pool.
        active: What has learned from the labels so far.
        heard: Predicted classes by number of labels, of a person's session.
        checked: Labels of `Prepared.checks` that were sent, by row.
    """

    data: Prepared
    active: ActiveLearner
    heard: dict[int, Int[np.ndarray, " n"]] = field(default_factory=dict)
    checked: dict[int, int] = field(default_factory=dict)

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
