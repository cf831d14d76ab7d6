"""Training of MTGPA on averages over supports of every size (Yousefi 2021, chapter 5).

The study chooses kernel and number of latent functions by their evidence, conditions the best model
on all rows, calibrates the scarce task, and reports.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.events import Report
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.model import MTGPA
from scant.predictive.scored import Scored
from scant.problem import Comparison, Problem
from scant.random import restart_generator
from scant.studies.aggregation import maps, models, stored, totals
from scant.studies.aggregation.classes import latent_functions
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.inference import VARIATIONAL, ranks
from scant.studies.aggregation.metadata import input_columns
from scant.studies.aggregation.partners import Average
from scant.studies.aggregation.predictions import FittedAggregation
from scant.studies.aggregation.prepared import Prepared, choose, prepare
from scant.studies.aggregation.problem import problem_of
from scant.studies.aggregation.report import answer_of, write_report
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.base import ArraySpec
from scant.studies.protocol import Step, Tensors
from scant.studies.trained import WHOLE_EVERY, TrainedStudy

MIN_COMPARED_ROWS = 5  # training rows of the scarce task, for tools for one table
EXACT_PATIENCE = 8  # steps of L-BFGS; the setting counts steps of Adam and natural gradients


class Study(TrainedStudy):
    """MTGPA on one table in long form (see the interface `scant.studies.protocol.Study`)."""

    settings: AggregationSettings
    data: Prepared
    model: models.Model
    prepare = staticmethod(prepare)
    average: Average | None = None
    done = False  # whether training has ended
    penalty = 0.0  # nats a row for the hyperparameters of a model that may grow

    def __init__(
        self, settings: AggregationSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        super().__init__(settings, table, device)
        self.restarts, self.stages = len(self.data.kernels), self.data.stages
        if self.data.inference != VARIATIONAL:
            # A gain below one nat in so many L-BFGS steps is no evidence on hyperparameters.
            self.patience = min(self.patience, EXACT_PATIENCE)
            self.tolerance = 1 / len(self.data.learned.y)

    # --- training -------------------------------------------------------------------------------

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        kernel = self.data.kernels[restart]  # the same random draws for each restart
        generator = restart_generator(self.settings.seed, 0)
        self.model = models.build(self.data, kernel, generator, best)
        # A stage adds a function if the previous one raised the score.
        functions = len(ranks(self.data.settings, latent_functions(self.metadata))) + stage
        if stage and restart == 0 and functions == len(self.model.prior.kernels) + 1:
            self.model.grow(self.settings.rank, generator)
        self.trainer = models.trainer(self.model, self.data, generator)
        self.bound, self.n_rows = float("nan"), len(self.data.learned.y)
        if self.stages > 1:
            learned = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
            self.penalty = learned / self.n_rows

    def step(self) -> Step:
        """Take a step. The score of models that may grow is Akaike's (1974): the log evidence less
        a nat for each hyperparameter."""
        step = super().step()
        return step._replace(score=step.score - self.penalty)

    def _whole(self, elbo: float) -> float:
        if not self.settings.batch_size or not isinstance(self.model, MTGPA):
            return elbo
        if self.trainer.steps % WHOLE_EVERY != 1:
            return self.bound
        with torch.no_grad():
            return float(self.model.elbo(self.data.train.data)) / self.n_rows

    def snapshot(self) -> dict[str, np.ndarray]:
        fitted, on_map = self.posterior, self.data.on_map
        return {**fitted.snapshot(), **maps.posterior(fitted, on_map, live=not self.done)}

    def finalize(self, restarts: list[tuple[float, Tensors]]) -> Report:
        scores = [score for score, _ in restarts]
        best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))
        kernels = self.data.kernels
        if self.restarts > 1:
            of_each = ", ".join(f"{k} {score:.3f}" for k, score in zip(kernels, scores))
            self._choose("kernel", kernels[best], f"log evidence a row: {of_each}")
        self.start_restart(best, 0, restarts[best][1])
        if self.stages > 1:
            why = "added while the log evidence, less a nat for each hyperparameter, rose"
            self._choose("n_latent", len(self.model.prior.kernels), why)
        self.model = models.conditioned(self.settings, self.model, self.data.train.data)
        if self.settings.stack and isinstance(self.model, ExactGP):
            self.average = Average.fit(self.model, self.posterior.task(self.posterior.scarce))
        self.done = True
        scored = self.held_scores if len(self.problem.y_test) > 1 else None
        of_run = self.posterior, self.data.train, self.problem, scored
        return self._report(lambda deadline: self._with_map(write_report(*of_run, deadline)))

    def _choose(self, name: str, value: Any, why: str) -> None:
        self.settings = choose(self.settings, self.metadata, name, value, why)

    def _with_map(self, report: Report) -> Report:
        """Add the posterior of a map's polygons, and parts against totals, to a report."""
        arrays = {**report.arrays, **maps.posterior(self.posterior, self.data.on_map)}
        table = totals.of_run(self.posterior, self.data.on_map)
        if table is None:
            return replace(report, arrays={**arrays, "totals": np.empty((len(totals.ARRAY), 0))})
        arrays["totals"] = table[list(totals.ARRAY)].to_numpy(float).T
        return replace(report, arrays=arrays, notes=(*report.notes, totals.sentence(table)))

    # --- the scarce task as a problem -------------------------------------------------------------

    @cached_property
    def problem(self) -> Problem:
        """Training and held-out rows of the scarce task."""
        return problem_of(self.data.train, self.posterior)

    @cached_property
    def held_scores(self) -> Scored:
        """Predictions of the held-out rows and their scores."""
        return self.problem.scored(answer_of(self.posterior, self.data.train))

    def comparison(self, report: Report) -> Comparison | None:
        if len(self.problem.y) < MIN_COMPARED_ROWS or not len(self.problem.y_test):
            return None
        return Comparison(self.problem, self.held_scores.predictive)

    # --- storage, predictions and queries ---------------------------------------------------------

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        return stored.to_tensors(self.posterior)

    @staticmethod
    def restore(
        settings: AggregationSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> FittedAggregation:
        return FittedAggregation(stored.from_tensors(settings, tensors, meta, device))

    @property
    def posterior(self) -> FittedMTGPA:
        """Model at its current parameters."""
        return FittedMTGPA(
            settings=self.settings,
            metadata=self.metadata,
            model=self.model,
            whole=self.data.whole,
            device=self.device,
            average=self.average,
            people=self.data.people,
        )

    @property
    def present(self) -> FittedAggregation:
        """Predictions and queries of the model at its current parameters."""
        return FittedAggregation(self.posterior)

    @property
    def inputs(self) -> list[str]:
        return input_columns(self.metadata)

    @property
    def further(self) -> tuple[ArraySpec, ...]:
        return self.present.further

    def limits(self) -> tuple[str, ...]:
        return self.present.limits()

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        return self.present.predict(table)

    def totals(self, table: pd.DataFrame) -> tuple[pd.DataFrame, str] | None:
        return self.present.totals(table)

    def map(self) -> pd.DataFrame:
        return self.present.map()

    def explore(self, question: str, **query: Any) -> dict[str, np.ndarray]:
        return self.present.explore(question, **query)
