"""How a study trains its one model: settings, steps, checkpoints, through `Trainer` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from scant.deadline import NEVER, Deadline
from scant.events import Report
from scant.optim.trainer import Trainer
from scant.studies import Settings
from scant.studies.auto import REPORT_SHARE, TRAINING_SHARE
from scant.studies.protocol import Step, Tensors, required

WHOLE_EVERY = 25  # steps between ELBOs of all rows, where a step sees only some


class TrainedStudy:
    """What the studies of one model have in common (see `scant.studies.protocol.Study`).

    `prepare` turns settings, a table and a device into `data`, which has the final settings, the
    metadata, roles and notes; a restored study gets `data` instead. `start_restart` sets `model`,
    `trainer` and `n_rows`; `step` returns the ELBO of a row.
    """

    prepare: Callable[[Any, pd.DataFrame, torch.device], Any]
    data: Any
    roles: np.ndarray
    deadline: Deadline = NEVER
    search_share = TRAINING_SHARE
    scored = True
    results: Callable[[Report], None] | None = None
    earlier: Any = None
    scheduled = False
    reason = ""
    tolerance = 1e-4
    stages = 1
    settings: Settings
    metadata: dict[str, Any]
    model: nn.Module
    trainer: Trainer
    n_rows: float  # by which the ELBO is divided
    bound = float("nan")  # the last ELBO of all rows, nats a row

    def __init__(
        self,
        settings: Any,
        table: pd.DataFrame | None,
        device: torch.device,
        prepared: Any = None,
    ) -> None:
        """A study of a table, or of prepared rows."""
        if prepared is None:
            prepared = type(self).prepare(settings, required(settings.study, table), device)
        self.data = prepared
        self._configure(prepared.settings, device)
        self.metadata, self.roles = prepared.metadata, prepared.roles
        self.notes += prepared.notes

    def _configure(self, settings: Any, device: torch.device) -> None:
        """What holds for a study that is made as for one that is restored."""
        self.settings, self.device = settings, device
        self.notes: list[str] = []
        self.restarts = getattr(settings, "restarts", 1)
        self.max_steps, self.patience = settings.max_steps, settings.patience

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        """See `scant.studies.protocol.Study`."""
        raise NotImplementedError

    def step(self) -> Step:
        """A step of the trainer; at a maximum, as far as can be told, none."""
        if self.trainer.stalled:
            return Step(self.bound, self.bound)
        elbo = self.trainer.step() / self.n_rows
        self._note(self.trainer.notes)
        self.bound = self._whole(elbo)
        return Step(elbo, self.bound)

    def _note(self, notes: list[str]) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def _report(self, write: Callable[[Deadline], Report]) -> Report:
        """The report, which `write` makes with other methods as far as the deadline allows."""
        if self.results is not None:
            self.results(write(Deadline(0.0)))
        return write(self.report_deadline)

    @property
    def report_deadline(self) -> Deadline:
        """Deadline of the report's comparisons; it is past in a fold, where nobody reads them."""
        return self.deadline.share(REPORT_SHARE) if self.scored else Deadline(0.0)

    def _whole(self, elbo: float) -> float:
        """The ELBO of all rows after a step that came to `elbo`, nats a row."""
        return elbo

    def parameters(self) -> Tensors:
        return dict(self.model.state_dict())

    def state(self) -> Tensors:
        bound = torch.tensor(self.bound, dtype=torch.float64)
        return {**self.trainer.state_dict(), "bound": bound}

    def load(self, parameters: Tensors, state: Tensors) -> None:
        self._take(parameters)
        self.bound = float(state["bound"])
        self.trainer.load_state_dict({k: v for k, v in state.items() if k != "bound"})

    def _take(self, parameters: Tensors) -> None:
        self.model.load_state_dict(parameters)

    def _start_from_best(self, restarts: list[tuple[float, Tensors]]) -> float:
        """Set up the model of the best restart; its score."""
        score, best = max(restarts, key=lambda pair: pair[0])
        self.start_restart(0, 0, best)
        return score
