"""Genes: outputs measured in replicas, some of them missing (Ma 2023, chapter 5).

The study trains one model, or the members of a stack one after another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.events import Report
from scant.models.replicated.stack import Stack
from scant.problem import Comparison
from scant.random import restart_generator
from scant.studies.auto import AVERAGE_SHARE
from scant.studies.genes import explore, models, stacking
from scant.studies.genes.fitted import FittedReplicas, columns
from scant.studies.genes.models import Model
from scant.studies.genes.prepared import Prepared, prepare
from scant.studies.genes.problem import answer_of, problem_of
from scant.studies.genes.report import write_report
from scant.studies.genes.settings import MODELS, GenesSettings
from scant.studies.genes.table import Replicas, of
from scant.studies.learned_region import LearnedRegion
from scant.studies.predicted_table import checked, interval_columns, with_columns, words
from scant.studies.protocol import Tensors, arrays, part, required
from scant.studies.trained import WHOLE_EVERY, TrainedStudy

STACK_PATIENCE = 6  # steps of L-BFGS; the setting counts steps of Adam and natural gradients


class Study(TrainedStudy):
    """One model of replicas on one table (see the interface
    `scant.studies.protocol.Study`)."""

    settings: GenesSettings
    model: Model

    def __init__(
        self,
        settings: GenesSettings,
        table: pd.DataFrame | None,
        device: torch.device,
        prepared: Prepared | None = None,
    ) -> None:
        """Study of a table, or of prepared rows."""
        rows = prepared or prepare(settings, required("genes", table), device)
        self._configure(settings, device)
        self.metadata, self.roles, self.parts = rows.metadata, rows.roles, rows.parts
        self.observed, self.train, self.test = rows.observed, rows.train, rows.test
        self.replicas, self.scale, self.data = rows.replicas, rows.scale, rows.data
        self.notes += rows.notes
        moderated = self.metadata.get("moderated", False)
        self.members = stacking.members(settings, self.data.n_outputs, len(self.data.y), moderated)
        self.restarts = len(self.members)
        if settings.model == "stack":  # L-BFGS, with few and long steps
            self.patience = min(self.patience, STACK_PATIENCE)

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.members[restart]
        self.generator = restart_generator(s.seed, restart)
        model = models.build(s.model, self.data, s, self.generator)
        self.model = models.steadied(model) if self.metadata.get("moderated") else model
        self.trainer = models.trainer(self.model, self.data, s, self.generator)
        self.bound, self.n_rows = float("nan"), len(self.data.y)
        self._note([*getattr(self.model, "notes", ()), *self.trainer.notes])
        if best is not None:
            self._take(best)

    def _whole(self, elbo: float) -> float:
        if not self.settings.batch_size:
            return elbo
        if self.trainer.steps % WHOLE_EVERY != 1:
            return self.bound
        assert not isinstance(self.model, Stack), "a stack is made of models that are trained"
        with torch.no_grad():
            return float(self.model.elbo()) / self.n_rows

    def snapshot(self) -> dict[str, np.ndarray]:
        return self.posterior.snapshot()

    # --- afterwards -----------------------------------------------------------------------------

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        if self.settings.model != "stack":
            score = self._start_from_best(restarts)
            return self._report(partial(write_report, self.posterior, score, {}))
        scores, trained = [score for score, _ in restarts], []
        for restart, (_, best) in enumerate(restarts):  # fewer than planned if time was short
            self.start_restart(restart, 0, best)
            trained.append(self.model)
        if self.earlier is not None and len(self.earlier.model.members) == len(trained):
            self.model = stack = Stack(trained, self.earlier.model.weights)
        else:
            deadline = self.deadline.share(AVERAGE_SHARE)
            self.model = stack = stacking.stacked(self.posterior, trained, deadline)
        weights = stack.weights
        self.metadata["stack"] = weights.tolist()
        trained_by_name = {s.model: (m, v) for s, m, v in zip(self.members, trained, scores)}
        score = float(weights @ weights.new_tensor(scores))
        return self._report(partial(write_report, self.posterior, score, trained_by_name))

    def comparison(self, report: Report) -> Comparison | None:
        members = getattr(self.model, "members", ())
        model_by_name = {MODELS.get(s.model, ""): model for s, model in zip(self.members, members)}
        model_by_name.pop("", None)
        fitted = self.posterior
        others = {
            name: answer_of(fitted, replace(fitted, model=model).on_test_rows())
            for name, model in model_by_name.items()
        }
        own = answer_of(fitted, fitted.on_test_rows())
        return Comparison(problem_of(fitted), own, others)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        for name in ("output", "replica", "x", "y", "sample"):
            tensors[f"rows.{name}"] = torch.tensor(getattr(self.observed, name))
        tensors["rows.learnt"] = torch.as_tensor(self.train)
        tensors["rows.test"] = torch.as_tensor(self.test)
        return tensors, {"words": self.metadata, "samples": list(self.observed.samples)}

    @classmethod
    def restore(
        cls,
        settings: GenesSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        metadata, stored = meta["words"], arrays(tensors, "rows.")
        train, test = stored.pop("learnt"), stored.pop("test")
        outputs, replicas = metadata["outputs"], metadata["replicas"]
        observed = Replicas(outputs, replicas, meta["samples"], **stored, test=test)
        rows = Prepared.of(settings, metadata, observed, train, test, device)
        study = cls(settings, None, device, rows)
        weights = metadata.get("stack", [])
        members = []
        for restart in range(max(1, len(weights))):
            study.start_restart(restart, 0, None)
            members.append(study.model)
        if weights:
            study.model = Stack(members, weights).to(device)
        study._take(part(tensors, "model."))
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def posterior(self) -> FittedReplicas:
        """The model and its rows, for report and queries."""
        return FittedReplicas(
            self.settings, self.model, self.observed, self.train, self.test, self.scale, self.data
        )

    @cached_property
    def region(self) -> LearnedRegion:
        """Region of the training inputs of all outputs."""
        return LearnedRegion(self.observed.x[self.train, None])

    @property
    def inputs(self) -> list[str]:
        return ["x"]

    def limits(self) -> tuple[str, ...]:
        """Methods that predict, then their limits (`scant.events.Report.limits`)."""
        return stacking.limits(self.model, self.members)

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add the columns of the catalog to the table.

        A replica without training rows is predicted as a new one of its output.

        Raises:
            BadInput: A column is absent, or an output is unknown.
        """
        query = of(
            checked(table, self.inputs).drop(columns=["y", "test"], errors="ignore"),
            outputs=self.observed.outputs,
            replicas=self.replicas,
            **words(table),
        )
        predictive = self.posterior.predictive(query.output, query.replica, query.x)
        mean, std, std_y = columns(predictive)
        return with_columns(
            table,
            {
                **{"mean": mean, "std": std, "std_y": std_y, "std_model": std},
                "std_noise": np.sqrt(predictive.noise_variance),
                **interval_columns(predictive.quantile),
                "outside": self.region.outside(query.x[:, None]).astype(np.int64),
            },
        )

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        """Answer "curves", "hide" and "new" (see the catalog)."""
        return explore.answer(self.posterior, question, query)
