"""The toy's science: stochastic ascent by Adam, with a generator and an optimizer to resume."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

import toy
from scant.deadline import NEVER, Deadline
from scant.errors import BadInput
from scant.events import Metric, Report
from scant.studies.auto import TRAINING_SHARE
from scant.studies.protocol import Step, Tensors
from scant.training import search

if toy.in_worker:
    search.CHECKPOINT_SECONDS = 0.3


class Study:
    """Three parameters climb towards the mean of noisy draws of the table's column y."""

    deadline: Deadline = NEVER
    search_share = TRAINING_SHARE
    scored = True
    results: Callable[[Report], None] | None = None
    earlier = None
    patience: int
    scheduled = False
    reason = ""
    tolerance = 1e-9
    stages = 1

    def __init__(self, settings: Any, table: pd.DataFrame | None, device: torch.device) -> None:
        if settings.refuse:
            raise BadInput("Column 'y' of the table cannot be used; mend it.")
        self.settings, self.device = settings, device
        self.notes: list[str] = ["The toy is a toy."]
        self.metadata: dict[str, Any] = {"axes": ["a", "b", "c"]}
        self.restarts, self.max_steps = settings.restarts, settings.max_steps
        self.stages = settings.stages
        self.patience = settings.patience
        y = np.linspace(-1, 2, 50) if table is None else table["y"].to_numpy(float)
        self.y = torch.as_tensor(y, dtype=torch.float64)
        self.roles = np.full(len(y), "train", dtype=object)
        self.mean = torch.zeros(3, dtype=torch.float64)
        self.held: list[torch.Tensor] = []

    def start_restart(self, restart: int, stage: int, best: Tensors | None) -> None:
        self.generator = torch.Generator().manual_seed(1000 * self.settings.seed + restart)
        start = torch.randn(3, generator=self.generator, dtype=torch.float64)
        if stage > 0 and best is not None:
            start = best["mean"].clone()
        self.mean = start.requires_grad_()
        self.optimizer = torch.optim.Adam([self.mean], lr=0.05)
        self.taken = 0

    def step(self) -> Step:
        self.taken += 1
        if self.settings.delay:
            time.sleep(self.settings.delay)
        if self.taken == self.settings.stuck_at:
            time.sleep(600)
        if self.taken == self.settings.seize_at:
            _seize(self.settings.seize)
        if self.settings.hold:
            self.held.append(torch.ones(self.settings.hold, 2**20 // 8, dtype=torch.float64))
        if self.taken == self.settings.break_at:
            raise ArithmeticError("the toy broke")
        if self.taken == self.settings.nan_at:
            return Step(float("nan"), float("nan"))
        draw = torch.randint(len(self.y), (3,), generator=self.generator)
        loss = ((self.mean - self.y[draw]) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        score = -float(((self.mean.detach() - self.y.mean()) ** 2).mean())
        return Step(-float(loss.detach()), score)

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean.detach().numpy().copy()}

    def parameters(self) -> Tensors:
        return {"mean": self.mean}

    def state(self) -> Tensors:
        adam = self.optimizer.state_dict()["state"].get(0, {})
        return {
            "generator": self.generator.get_state(),
            "taken": torch.tensor(self.taken),
            **{f"adam.{k}": v for k, v in adam.items()},
        }

    def load(self, parameters: Tensors, state: Tensors) -> None:
        with torch.no_grad():
            self.mean.copy_(parameters["mean"])
        self.generator.set_state(state["generator"])
        self.taken = int(state["taken"])
        adam = {k.removeprefix("adam."): v for k, v in state.items() if k.startswith("adam.")}
        whole = self.optimizer.state_dict()
        self.optimizer.load_state_dict({**whole, "state": {0: adam} if adam else {}})

    def finalize(self, kept: list[tuple[float, Tensors]]) -> Report:
        score, best = max(kept, key=lambda pair: pair[0])
        self.mean = best["mean"].detach()
        return Report((Metric("toy", "score", score),), self.snapshot(), ("It ended.",))

    def comparison(self, report: Report) -> None:
        return None

    def fitted(self) -> tuple[Tensors, dict[str, Any]]:
        return {"mean": self.mean}, {"toy": True}

    @classmethod
    def restore(
        cls, settings: Any, tensors: Tensors, meta: dict[str, Any], device: torch.device
    ) -> Study:
        study = cls(settings, None, device)
        study.mean = tensors["mean"]
        return study

    @property
    def inputs(self) -> list[str]:
        return []

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        if "y" not in table:
            raise BadInput("The table has no column 'y'; add it.")
        return table.assign(mean=float(self.mean.mean()))

    def limits(self) -> tuple[str, ...]:
        return ("Predictions come from the toy alone.",)

    def explore(self, question: str, **asked: Any) -> dict[str, np.ndarray]:
        return {"mean": self.mean.numpy() + asked["by"]}


def _seize(seconds: float) -> None:
    """Match expressions, each of which takes twice the time, until one has taken so long.

    Nothing else of this process runs meanwhile: the interpreter is not let go within a match.
    """
    for length in range(16, 64):
        began = time.monotonic()
        re.match("(a+)+$", "a" * length + "b")
        if time.monotonic() - began > seconds:
            return
