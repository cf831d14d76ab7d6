"""Clamps: a labeling session with a Gaussian process that asks (Yousefi 2021, chapter 4).

With a simulated expert one round is: answer the batch, learn, score, ask again. Sessions that draw
their patches at random run beside it on the same number of labels. With a person the run prepares
the pool and ends; what is asked next is then a question to the fitted study (`explore("ask")`).
"""

from __future__ import annotations

import time
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
from scant.studies.auto import AUTO, CHOSEN, TRAINING_SHARE
from scant.studies.clamp import pictures
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.entry import CNN, COMPARED, METHODS, QUEUE, ROLES, ClampSettings
from scant.studies.clamp.fitted import TOLERANCE, FittedClamp, Prepared, advised
from scant.studies.clamp.splits import Rows
from scant.studies.clamp.table import PatchPool
from scant.studies.predicted_table import by_levels
from scant.studies.protocol import Step, Tensors, arrays, part, required, roles
from scant.studies.split import marks
from scant.tables.images.pixels import pixels

TURN = 0.25  # seconds at most that a simulated expert who takes his time keeps the run waiting
HISTORY = ("labels", "validation_f1", "evidence", "flips", "expected", "change")


class Study:
    """One labeling session on one pool (see `scant.studies.protocol.Study` for how it is
    driven)."""

    deadline: Deadline = NEVER
    search_share = TRAINING_SHARE
    scored = True
    earlier = None
    restarts = 1
    stages = 1
    tolerance = TOLERANCE

    def __init__(
        self, settings: ClampSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("clamp", table)
        names = settings.names_of_classes()
        pool = PatchPool.of(table, positive=settings.positive_class, named=names)
        settings, chosen = rows_of.settled(settings, pool)
        rows = rows_of.prepare(settings, pool, marks(table))
        self._set_data(Prepared(settings, metadata_of(settings, rows), rows, None, device))
        if chosen:
            self.metadata[CHOSEN] = {name: list(choice) for name, choice in chosen.items()}
        self.notes += rows_of.notes(settings, rows, len(table))
        own = {word: rows.row[rows.role == i] for i, word in enumerate(ROLES)}
        self.roles = roles(len(table), **own)
        if settings.expert == "you":
            self.notes.append("Waiting for your labels: the first patches are drawn at random.")

    def _set_data(self, data: Prepared) -> None:
        s = data.settings
        self.data, self.metadata, self.settings, self.device = data, data.metadata, s, data.device
        self.notes: list[str] = []
        self.present = FittedClamp(data, data.session(0, s.method))
        self.random: list[ActiveLearner] = []
        self.measured: dict[str, list[Any]] = {name: [] for name in (*HISTORY, *METHODS)}
        self.chunk = s.batch_size
        self.scheduled = s.expert == "you"  # a person's session has one step, and then waits
        if s.expert == "you":
            self.max_steps = 1
            return
        if s.pace:
            self.chunk = max(1, min(s.batch_size, int(s.pace * TURN)))
        batches = -(-max(0, self.most - len(data.first)) // s.batch_size)
        self.max_steps = 1 + batches * -(-s.batch_size // self.chunk)

    @property
    def active(self) -> ActiveLearner:
        """The session of the settings; others run beside it."""
        return self.present.active

    @property
    def most(self) -> int:
        """Labels that the session may learn from."""
        return min(self.settings.budget - self.data.spent, len(self.data.rows.answerable))

    @property
    def patience(self) -> int:
        """1 where the session is to end: nothing is left to ask, or the advice is to stop."""
        if self.settings.expert == "you" or not self.measured["labels"]:
            return 0
        return int(self.exhausted or (self.settings.patience > 0 and self.advice().stop))

    @property
    def exhausted(self) -> bool:
        """Whether no patch lies in the band of a strict acquisition, before the budget is used."""
        session = self.active
        strict = session.method == STRICT and bool(session.rows)
        return strict and not session.pending and len(session.rows) < self.most

    @property
    def reason(self) -> str:
        """Why the session is over, for now or by the advice."""
        if self.settings.expert == "you":
            return "The pool is prepared; it waits for your labels."
        if self.exhausted:
            return f"No patch is left with p within {self.settings.delta:g} of 0.5."
        result = self.advice()
        return result.text if result.stop else ""

    # --- rounds ---------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.present.active = self.data.session(0, s.method)
        repeats = 0 if s.expert == "you" else s.repeats
        self.random = [self.data.session(r, "random") for r in range(repeats)]
        self.measured = {name: [] for name in (*HISTORY, *METHODS)}

    def step(self) -> Step:
        s = self.settings
        if s.expert == "you":
            return self._prepared()
        if not self.active.rows:
            return self._round(self.data.first.tolist())
        now = self.active.pending[: self.chunk]
        if s.pace:
            time.sleep(len(now) / s.pace)
        if len(now) == len(self.active.pending):
            return self._round(now)
        self._answer(self.active, now)
        self.active.pending = self.active.pending[len(now) :]
        return Step(self.active.evidence, self._score())

    def _score(self) -> float:
        """F1 of the validation rows; without any, of the predictions by those before them."""
        if len(self.data.rows.validation):
            return float(self.measured["validation_f1"][-1])
        return 1 - float(self.measured["change"][-1])

    def _prepared(self) -> Step:
        """For a person: what labels there are, and that it is their turn."""
        session = self.active
        if len(self.data.first):
            self._answer(session, self.data.first.tolist())
            session.fit()
            self._measure()
        return Step(session.evidence if session.rows else 0.0, float("nan"))

    def _answer(self, session: ActiveLearner, which: list[int]) -> None:
        session.answer(which, [int(c) for c in self.data.rows.pool.label[which]])

    def _round(self, answered: list[int]) -> Step:
        """Learn from the labels that came, score, and ask again; the random sessions alike."""
        s, session = self.settings, self.active
        self._answer(session, answered)
        session.fit()
        count = len(session.rows)
        session.ask(min(s.batch_size, self.most - count))
        for other in self.random:
            assert other.order is not None
            first = other.order[max(len(other.rows), 0) : count].tolist()
            self._answer(other, first)
            if len(set(other.labels)) > 1:
                other.fit()
        self._measure()
        return Step(session.evidence, self._score())

    def _measure(self) -> None:
        rows, session, result = self.data.rows, self.active, self.measured
        at = rows.validation
        result["labels"].append(len(session.rows) + self.data.spent)
        result["validation_f1"].append(
            rows_of.scores(rows.pool.label[at], session.predicted[at], rows.sought)[0]
        )
        for name in HISTORY[2:]:
            result[name].append(getattr(session, name))
        own = self.data.scores(session)
        result[METHODS[0]].append(own)
        result[METHODS[1]].append([self.data.scores(other) for other in self.random])

    def advice(self) -> stopping.Advice:
        """Whether to go on, by the rounds so far."""
        changes = [v for v in self.measured["change"] if not np.isnan(v)]
        return advised(self.active, changes, self.settings)

    # --- what the loop keeps --------------------------------------------------------------------

    def parameters(self) -> Tensors:
        """Everything: a session that goes on, or is shown, needs all of its labels."""
        kept = {f"active.{k}": v for k, v in self.active.state().items()}
        for r, session in enumerate(self.random):
            kept |= {f"random{r}.{k}": v for k, v in session.state().items()}
        for name, values in self.measured.items():
            kept[f"measured.{name}"] = torch.tensor(values, dtype=torch.float64)
        return kept

    def state(self) -> Tensors:
        return {}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self.active.load(part(parameters, "active."))
        for r, session in enumerate(self.random):
            session.load(part(parameters, f"random{r}."))
        self.measured = {k: v.tolist() for k, v in part(parameters, "measured.").items()}

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that a page shows of the session as it is (see the catalog)."""
        result, session, rows = self.measured, self.active, self.data.rows
        rounds = len(result["labels"])
        own = np.array(result[METHODS[0]], dtype=float).reshape(rounds, 3)
        others = np.array(result[METHODS[1]], dtype=float).reshape(rounds, len(self.random), 3)
        means = others.mean(1) if others.shape[1] else np.full((rounds, 3), np.nan)
        both = np.stack([own, means])
        queue = np.array(session.pending[:QUEUE], dtype=np.int64)
        p = session.p.cpu().numpy()
        arrays = {name: np.array(result[name], dtype=float) for name in HISTORY}
        xy = np.zeros((len(rows.x), 2))
        xy[:, : min(2, rows.x.shape[1])] = rows.x[:, :2]
        return {
            **arrays,
            "f1": both[..., 0],
            "precision": both[..., 1],
            "recall": both[..., 2],
            "f1_random_sd": others[..., 0].std(1) if others.shape[1] else means[:, 0],
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

        # The session as it stands, and not the round of the best score: no label is thrown away.
        if not self.measured["labels"] and self.settings.expert != "you":
            self.start_restart(0, 0, None)
            self.load(max(restarts, key=lambda pair: pair[0])[1], {})
        text = () if self.settings.expert == "you" else (self.reason or self.advice().text,)
        return write_report(self.present, self.snapshot(), self.measured, text)

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
        study = cls.__new__(cls)
        metadata = meta["words"]
        was = {n: metadata[n] for n in ("expert", "acquisition") if getattr(settings, n) == AUTO}
        settings = type(settings)(**settings.values() | was)
        kept = arrays(tensors, "rows.")
        pool = PatchPool(
            metadata["classes"], kept["label"], metadata["pictures"], kept["picture"],
            kept["place"], [], kept["columns"], metadata["columns"],
        )  # fmt: skip
        names = rows_of.Scaling._fields
        scaling = rows_of.Scaling(**{name: kept[f"scaling.{name}"] for name in names})
        rows = Rows(pool, kept["row"], kept["role"], metadata["features"], scaling, kept["x"])
        study._set_data(Prepared(settings, metadata, rows, pictures.Mosaics.of(kept), device))
        own = part(tensors, "active.")
        study.active.load(own)
        return study

    @property
    def inputs(self) -> list[str]:
        return list(self.data.rows.pool.features) if self.data.rows.given == "columns" else []

    def limits(self) -> tuple[str, ...]:
        """The methods that predict, then limits of these (`scant.events.Report.limits`)."""
        several = "Each class has its own classifier against the rest; their p are normalized."
        more = [several] if len(self.metadata["classes"]) > 2 else []
        return (sentence({"the GP classifier": 1.0}), *more)

    @by_levels
    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the class that each row is taken for, and its probability.

        The class is called `label`, or `predicted` where the table has labels.

        Raises:
            BadInput: A column is absent, or images are; nothing has been labeled.
        """
        from scant.studies.clamp.explore import predictions

        return predictions(self.data, self.active, table)

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answers "ask", "patch" and "picture" (see the catalog)."""
        from scant.studies.clamp.explore import answer

        return answer(self.present, question, query)


def metadata_of(settings: ClampSettings, rows: Rows) -> dict[str, Any]:
    """What labels the arrays on a page (`events.Started`)."""
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
        "size": list(pixels(pool.images[0]).shape[:2]) if pool.images else [],
        "expert": settings.expert,
        "rows": {"pool": roles[0], "validation": roles[1], "test": roles[2]},
    }
