"""Genes: outputs measured in replicas, some of which were never taken (Ma 2023, chapter 5).

What the study adds to the models: what is hidden and learnt from, scales, one way of training for
all of them, curves of every replica for the picture, and the other models on the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from scant.events import Report
from scant.models.replicated.data import Data, Scale
from scant.random import restart_generator
from scant.studies.genes import models
from scant.studies.genes import preprocessing as rows
from scant.studies.genes.entry import GenesSettings
from scant.studies.genes.explore import answer
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.models import Model
from scant.studies.genes.report import write_report
from scant.studies.genes.table import Replicas, of
from scant.studies.predicted_table import checked
from scant.studies.protocol import Step, Tensors, arrays, part, required
from scant.tables.column_matching import listed

WHOLE_EVERY = 25  # steps between bounds of all outputs, where a step sees only some


class Study:
    """One model of replicas on one table (see `scant.studies.protocol.Study` for how it is
    driven)."""

    scheduled = False
    reason = ""
    tolerance = 1e-4
    stages = 1

    def __init__(
        self, settings: GenesSettings, table: pd.DataFrame | None, device: torch.device
    ) -> None:
        table = required("genes", table)
        seen = of(table)
        learnt, test = rows.split(settings, seen)
        self._follow(settings, seen, learnt, test, device)
        self.metadata = rows.metadata_of(settings, seen, learnt, test)
        self.notes += models.check(settings, self.data)
        bare = [name for d, name in enumerate(seen.outputs) if not learnt[seen.output == d].any()]
        if bare:
            self.notes.append(
                f"No row of {listed(bare)} is learnt from: what is said of it comes from the other "
                "outputs, or from the prior."
            )

    def _follow(
        self,
        settings: GenesSettings,
        seen: Replicas,
        learnt: np.ndarray,
        test: np.ndarray,
        device: torch.device,
    ) -> None:
        self.settings, self.device = settings, device
        self.seen, self.learnt, self.test = seen, learnt, test
        self.notes: list[str] = []
        self.restarts, self.max_steps = settings.restarts, settings.max_steps
        self.patience = settings.patience
        self.replicas = rows.names(seen)
        raw = rows.data_of(seen, learnt, self.replicas, device)
        self.scale = Scale.of(raw)
        self.data: Data = self.scale.standardize(raw)

    # --- training -------------------------------------------------------------------------------

    def begin(self, restart: int, stage: int, best: Tensors | None) -> None:
        s = self.settings
        self.generator = restart_generator(s.seed, restart)
        self.model: Model = models.build(s.model, self.data, s, self.generator)
        self.training = models.trainer(self.model, self.data, s, self.generator)
        self.bound, self.steps = float("nan"), 0
        said = [*getattr(self.model, "notes", ()), *self.training.notes]
        self.notes += [note for note in said if note not in self.notes]
        if best is not None:
            self._take(best)

    def step(self) -> Step:
        if self.training.stalled:  # at a maximum, as far as can be told
            return Step(self.bound, self.bound)
        elbo = self.training.step() / len(self.data.y)
        self.notes += [note for note in self.training.notes if note not in self.notes]
        if not self.settings.batch_size:
            self.bound = elbo
        elif self.steps % WHOLE_EVERY == 0:
            with torch.no_grad():
                self.bound = float(self.model.elbo()) / len(self.data.y)
        self.steps += 1
        return Step(elbo, self.bound)

    def parameters(self) -> Tensors:
        return dict(self.model.state_dict())

    def state(self) -> Tensors:
        at = torch.tensor([self.bound, self.steps], dtype=torch.float64)
        return {**self.training.state(), "at": at}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound, self.steps = float(state["at"][0]), int(state["at"][1])
        self.training.load({k: v for k, v in state.items() if k != "at"})

    def _take(self, parameters: Tensors) -> None:
        self.model.load_state_dict({k: v.to(self.device) for k, v in parameters.items()})

    def snapshot(self) -> dict[str, np.ndarray]:
        return self.posterior.snapshot()

    # --- afterwards -----------------------------------------------------------------------------

    def conclude(self, kept: list[tuple[float, Tensors]]) -> Report:
        score, best = max(kept, key=lambda pair: pair[0])
        self.begin(0, 0, best)
        return write_report(self.posterior, score)

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        for name in ("output", "replica", "x", "y", "sample"):
            tensors[f"rows.{name}"] = torch.tensor(getattr(self.seen, name))
        tensors["rows.learnt"] = torch.as_tensor(self.learnt)
        tensors["rows.test"] = torch.as_tensor(self.test)
        return tensors, {"words": self.metadata, "samples": list(self.seen.samples)}

    @classmethod
    def restore(
        cls,
        settings: GenesSettings,
        tensors: Tensors,
        meta: dict[str, Any],
        device: torch.device,
    ) -> Study:
        study = cls.__new__(cls)
        study.metadata = meta["words"]
        kept = arrays(tensors, "rows.")
        learnt, test = kept.pop("learnt"), kept.pop("test")
        outputs, replicas = study.metadata["outputs"], study.metadata["replicas"]
        seen = Replicas(outputs, replicas, meta["samples"], **kept, test=test)
        study._follow(settings, seen, learnt, test, device)
        own = part(tensors, "model.")
        study.begin(0, 0, own)
        return study

    # --- questions ------------------------------------------------------------------------------

    @property
    def posterior(self) -> FittedReplicas:
        """The model and its rows, as report and answers take them."""
        return FittedReplicas(
            self.settings, self.model, self.seen, self.learnt, self.test, self.scale, self.data
        )

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with `mean`, `std` (of f) and `std_y` (of a new measurement) added.

        A replica that training lacked is predicted as a new one of its output.

        Raises:
            BadInput: A column is absent, or an output that the model has not seen.
        """
        table = checked(table, ["x"])
        asked = of(
            table.drop(columns=["y", "test"], errors="ignore"),
            outputs=self.seen.outputs,
            replicas=self.replicas,
            rows=range(2, len(table) + 2),  # as a spreadsheet counts
        )
        mean, std, std_y = self.posterior.ask(asked.output, asked.replica, asked.x)
        return table.assign(mean=mean, std=std, std_y=std_y)

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        """Answers "curves", "hide" and "new" (see the catalog)."""
        return answer(self.posterior, question, asked)
