"""A labeling session with its fitted learner, for reports and queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from scant.models.laplace import stopping
from scant.studies.auto import AUTO
from scant.studies.clamp import pictures
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.components import Scaling
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.settings import ClampSettings
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PatchPool
from scant.studies.protocol import Tensors, arrays, part


def advised(
    session: ActiveLearner, changes: Sequence[float], settings: ClampSettings
) -> stopping.Advice:
    """Advice on going on with a session, from the changes of F1 by batch."""
    free = np.setdiff1d(session.askable, session.rows).astype(np.int64)
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
    """A session on a pool, which continues with the labels that a person sends.

    Attributes:
        data: The pool.
        active: The learner with the labels so far.
        predicted_after: Predicted classes by number of labels, of a person's session.
        checked: Labels of `Prepared.checks` that were sent, by row.
    """

    data: Prepared
    active: ActiveLearner
    predicted_after: dict[int, Int[np.ndarray, " n"]] = field(default_factory=dict)
    checked: dict[int, int] = field(default_factory=dict)

    def tensors(self) -> tuple[Tensors, dict[str, Any]]:
        """Tensors and metadata to store (see `scant.studies.protocol.Study.fitted`)."""
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
        if placed := self.data.placed_x:
            tensors["placed.number"] = torch.tensor(list(placed))
            tensors["placed.x"] = torch.stack(list(placed.values()))
        return tensors, {"words": self.data.metadata}

    @classmethod
    def from_tensors(
        cls, settings: ClampSettings, tensors: Tensors, meta: dict[str, Any], device: torch.device
    ) -> FittedClamp:
        """Inverse of `tensors`."""
        metadata = meta["words"]
        chosen = {n: metadata[n] for n in ("expert", "acquisition") if getattr(settings, n) == AUTO}
        settings = type(settings)(**settings.values() | chosen)
        stored = arrays(tensors, "rows.")
        pool = PatchPool(
            metadata["classes"], stored["label"], metadata["pictures"], stored["picture"],
            stored["place"], [], stored["columns"], metadata["columns"],
        )  # fmt: skip
        scaling = Scaling(**arrays(tensors, "rows.scaling."))
        rows = Rows(pool, stored["row"], stored["role"], metadata["features"], scaling, stored["x"])
        data = Prepared(settings, metadata, rows, device, pictures.Mosaics.of(stored))
        if placed := part(tensors, "placed."):
            data.placed_x.update(zip(placed["number"].tolist(), placed["x"].to(data.x)))
        fitted = cls(data, data.session(0, settings.method))
        fitted.active.load(part(tensors, "active."))
        return fitted
