"""Scores of a session by round, and of sessions with random queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.prepared import Prepared
from scant.studies.clamp.settings import METHODS
from scant.studies.protocol import Tensors

OF_LEARNER = ("evidence", "flips", "expected", "change")
BY_ROUND = ("labels", "validation_f1", *OF_LEARNER)


class History:
    """Values of each round by name; for `METHODS` (F1, precision, recall)."""

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {name: [] for name in (*BY_ROUND, *METHODS)}

    def __len__(self) -> int:
        return len(self.values["labels"])

    def record(
        self, data: Prepared, session: ActiveLearner, others: Sequence[ActiveLearner]
    ) -> None:
        """Add the scores of a session, and of others with random queries."""
        rows, validation = data.rows, data.rows.validation
        f1, *_ = rows_of.scores(
            rows.pool.label[validation], session.predicted[validation], rows.sought
        )
        active, random = METHODS
        values: dict[str, Any] = {name: getattr(session, name) for name in OF_LEARNER}
        values |= {"labels": len(session.rows) + data.spent, "validation_f1": f1}
        values |= {active: data.scores(session), random: [data.scores(one) for one in others]}
        for name, value in values.items():
            self.values[name].append(value)

    @property
    def changes(self) -> list[float]:
        """Known changes of F1 by round."""
        return [v for v in self.values["change"] if not np.isnan(v)]

    def score(self, validated: bool) -> float:
        """F1 of the validation rows; without any, agreement with the previous predictions."""
        if validated:
            return float(self.values["validation_f1"][-1])
        return 1 - float(self.values["change"][-1])

    def arrays(self, others: int) -> dict[str, np.ndarray]:
        """Arrays of a snapshot, with `others` sessions with random queries."""
        rounds = len(self)
        active = np.array(self.values[METHODS[0]], dtype=float).reshape(rounds, 3)
        random = np.array(self.values[METHODS[1]], dtype=float).reshape(rounds, others, 3)
        means = random.mean(1) if others else np.full((rounds, 3), np.nan)
        curves = np.stack([active, means])
        return {
            **{name: np.array(self.values[name], dtype=float) for name in BY_ROUND},
            **dict(zip(("f1", "precision", "recall"), np.moveaxis(curves, -1, 0))),
            "f1_random_sd": random[..., 0].std(1) if others else means[:, 0],
        }

    def state(self) -> Tensors:
        return {k: torch.tensor(v, dtype=torch.float64) for k, v in self.values.items()}

    def load(self, state: Tensors) -> None:
        self.values = {name: values.tolist() for name, values in state.items()}
