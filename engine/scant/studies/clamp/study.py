"""Clamps: active labeling sessions with a Gaussian process (Yousefi 2021, chapter 4).

With a simulated expert, a round answers the batch, fits, scores and queries again. Sessions with
random queries run beside it on the same number of labels. With a person, the run prepares the pool
and ends; further queries go to the fitted study (`explore("ask")`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.deadline import NEVER, Deadline
from scant.ensemble import sentence
from scant.events import Report
from scant.models.laplace import stopping
from scant.models.laplace.acquisition import STRICT
from scant.problem import Comparison
from scant.studies.auto import TRAINING_SHARE
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.fitted import FittedClamp, advised
from scant.studies.clamp.history import History
from scant.studies.clamp.prepared import prepare
from scant.studies.clamp.settings import QUEUE, VALIDATION_F1, ClampSettings
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Step, Tensors, part, required

TOLERANCE = 0.005  # F1: minimum gain of a round
TURN = 0.25  # seconds at most that a slow simulated expert keeps the run waiting


class Study:
    """One labeling session on one pool (see the interface
    `scant.studies.protocol.Study`)."""

    deadline: Deadline = NEVER
    search_share = TRAINING_SHARE
    scored = True
    results: Callable[[Report], None] | None = None  # a session always shows all of its results
    earlier = None
    restarts = 1
    stages = 1
    tolerance = TOLERANCE

    def __init__(
        self,
        settings: ClampSettings,
        table: pd.DataFrame | None,
        device: torch.device,
        present: FittedClamp | None = None,
    ) -> None:
        """Session on a table, or a restored one (`present`)."""
        if present is None:
            data = prepare(settings, required("clamp", table), device)
            present = FittedClamp(data, data.session(0, data.settings.method))
        self.present, self.data, self.device = present, present.data, device
        self.settings = s = self.data.settings
        self.metadata, self.roles = self.data.metadata, self.data.roles
        self.notes = list(self.data.notes)
        self.random: list[ActiveLearner] = []
        self.history = History()
        self.chunk = s.batch_size
        self.scheduled = True  # it ends with its budget; with a person, after one step
        if s.expert == "you":
            self.max_steps = 1
            return
        if s.pace:
            self.chunk = max(1, min(s.batch_size, int(s.pace * TURN)))
        batches = -(-max(0, self.most - len(self.data.first)) // s.batch_size)
        self.max_steps = 1 + batches * -(-s.batch_size // self.chunk)

    @property
    def active(self) -> ActiveLearner:
        """Learner with the acquisition function of the settings."""
        return self.present.active

    @property
    def most(self) -> int:
        """Maximum number of labels that the session learns from."""
        return min(self.settings.budget - self.data.spent, len(self.data.rows.answerable))

    @property
    def patience(self) -> int:
        """1 if the session should end: nothing is left to query, or the advice is to stop."""
        if self.settings.expert == "you" or not len(self.history):
            return 0
        return int(self.exhausted or (self.settings.patience > 0 and self.settled))

    @property
    def settled(self) -> bool:
        """True if the session may end, by the setting `stop_rule` over `patience` batches."""
        if self.settings.stop_rule != VALIDATION_F1:
            return self.advice().stop
        f1, window = self.history.values["validation_f1"], self.settings.patience
        return len(f1) > window > 0 and max(f1[-window:]) <= max(f1[:-window])

    @property
    def exhausted(self) -> bool:
        """True if no patch lies in the band of a strict acquisition, before the budget is used."""
        session = self.active
        strict = session.method == STRICT and bool(session.rows)
        return strict and not session.pending and len(session.rows) < self.most

    @property
    def reason(self) -> str:
        """Reason why the session is over."""
        spent = 0 < self.most <= len(self.active.rows)
        return self._ended or (f"All {self.most:,} labels of the budget are used." if spent else "")

    @property
    def _ended(self) -> str:
        """Reason why the session is over, with labels left in its budget; empty if it is not."""
        if self.settings.expert == "you":
            return "The pool is prepared; it waits for your labels."
        if self.exhausted:
            return f"No row is left with p within {self.settings.delta:g} of 0.5."
        if not self.settled:
            return ""
        if self.settings.stop_rule == VALIDATION_F1:
            return f"The validation F1 has not risen in {self.settings.patience:,} batches."
        return self.advice().text

    # --- rounds ---------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.present.active = self.data.session(0, s.method)
        repeats = 0 if s.expert == "you" else s.repeats
        self.random = [self.data.session(r, "random") for r in range(repeats)]
        self.history = History()

    def step(self) -> Step:
        s = self.settings
        if s.expert == "you":
            return self._begin()
        if not self.active.rows:
            return self._round(self.data.first.tolist())
        answered = self.active.pending[: self.chunk]
        if s.pace:
            time.sleep(len(answered) / s.pace)
        if len(answered) == len(self.active.pending):
            return self._round(answered)
        self._answer(self.active, answered)
        self.active.pending = self.active.pending[len(answered) :]
        return self._scored_step()

    def _begin(self) -> Step:
        """Fit to the labels in the table, before those of the person."""
        session = self.active
        if len(self.data.first):
            self._answer(session, self.data.first.tolist())
            session.fit()
            self.history.record(self.data, session, self.random)
        return Step(session.evidence if session.rows else 0.0, float("nan"))

    def _answer(self, session: ActiveLearner, rows: list[int]) -> None:
        session.answer(rows, [int(c) for c in self.data.rows.pool.label[rows]])

    def _round(self, answered: list[int]) -> Step:
        """Fit to new labels, score, and query again; random sessions likewise."""
        s, session = self.settings, self.active
        self._answer(session, answered)
        session.fit()
        count = len(session.rows)
        # When the budget is spent, the queue has the rows of further labels.
        session.ask(min(s.batch_size, self.most - count) or s.batch_size)
        for other in self.random:
            assert other.order is not None
            rows = other.order[max(len(other.rows), 0) : count].tolist()
            self._answer(other, rows)
            if len(set(other.labels)) > 1:
                other.fit()
        self.history.record(self.data, session, self.random)
        return self._scored_step()

    def _scored_step(self) -> Step:
        validated = len(self.data.rows.validation) > 0
        return Step(self.active.evidence, self.history.score(validated))

    def advice(self) -> stopping.Advice:
        """Advice on going on, from the rounds so far."""
        return advised(self.active, self.history.changes, self.settings)

    # --- state for the training loop ------------------------------------------------------------

    def parameters(self) -> Tensors:
        """All labels and scores, so that a session can continue."""
        tensors = {f"active.{k}": v for k, v in self.active.state().items()}
        for r, session in enumerate(self.random):
            tensors |= {f"random{r}.{k}": v for k, v in session.state().items()}
        return tensors | {f"measured.{k}": v for k, v in self.history.state().items()}

    def state(self) -> Tensors:
        return {}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self.active.load(part(parameters, "active."))
        for r, session in enumerate(self.random):
            session.load(part(parameters, f"random{r}."))
        self.history.load(part(parameters, "measured."))

    def snapshot(self) -> dict[str, np.ndarray]:
        """Arrays of the catalog entry for the current session."""
        session, rows = self.active, self.data.rows
        queue = np.array(session.pending[:QUEUE], dtype=np.int64)
        p = session.p.cpu().numpy()
        xy = np.zeros((len(rows.x), 2))
        xy[:, : min(2, rows.x.shape[1])] = rows.x[:, :2]
        return {
            **self.history.arrays(len(self.random)),
            "pool_xy": xy,
            "pool_p": p,
            "role": rows.role,
            "row": rows.row,
            "truth": rows.pool.label,
            "asked": np.array(session.rows, dtype=np.int64),
            "asked_label": np.array(session.labels, dtype=np.int64),
            "queue": queue,
            "queue_p": p[queue],
            "predicted": session.predicted,
        }

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        from scant.studies.clamp.report import write_report

        # The last round, not the one of the best score, so that no label is lost.
        if not len(self.history) and self.settings.expert != "you":
            self.start_restart(0, 0, None)
            self.load(max(restarts, key=lambda pair: pair[0])[1], {})
        text = () if self.settings.expert == "you" else (self._ended or self.advice().text,)
        return write_report(self.present, self.snapshot(), self.history.values, text)

    def comparison(self, report: Report) -> Comparison | None:
        from scant.studies.clamp.problem import comparison

        return comparison(self.present, report)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        return self.present.tensors()

    @classmethod
    def restore(
        cls,
        settings: ClampSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        present = FittedClamp.from_tensors(settings, tensors, meta, device)
        return cls(present.data.settings, None, device, present)

    # --- questions ------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        return list(self.data.rows.pool.features) if self.data.rows.given == "columns" else []

    def limits(self) -> tuple[str, ...]:
        """Methods that predict, then their limits (`scant.events.Report.limits`)."""
        several = (
            "Each class has its own classifier against the rest; their probabilities are "
            "normalized."
        )
        more = [several] if len(self.metadata["classes"]) > 2 else []
        return (sentence({"the GP classifier": 1.0}), *more)

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add the predicted class of each row, and its probability, to the table.

        The class is called `label`, or `predicted` where the table has labels.

        Raises:
            BadInput: A column or images are absent, or nothing is labeled.
        """
        from scant.studies.clamp.explore import predictions

        return predictions(self.data, self.active, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer "ask", "patch" and "picture" (see the catalog)."""
        from scant.studies.clamp.explore import answer

        return answer(self.present, question, query)
