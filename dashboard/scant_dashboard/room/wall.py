"""State of a wall: everyone in a room trains one run, and the presenter's screen shows all of them.

In memory only, for a single thread. The wall has a queue of its own, from which `wall_runner`
takes runs as workers become free. A run waits for its phone: while the phone's page is closed, the
others are trained first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from scant.errors import NotAllowed
from scant.events import Event, Finished, Progress, Report, Started
from scant_dashboard.limits.client import Busy
from scant_dashboard.room.wall_presets import PRESETS, Posterior, Variation
from scant_dashboard.translate import later, tr

RUNS = 150  # maximum number of runs of a wall
WAITING = 60  # maximum number of runs in its queue: some 5 minutes on two cores
POINTS = 80  # maximum number of points of a curve
PRESENTER = ""  # token of the presenter, whose page counts as open
GONE = later("The wall was taken down; nothing of it is kept.")

Stage = Literal["waiting", "training", "done", "failed"]


@dataclass
class WallRun:
    """One run of the wall.

    Attributes:
        number: Number from 1, in order of joining.
        token: The phone that started it.
        stage: Its stage.
        run: Id in the run service; "" before and after.
        reason: Sentence on why it failed.
        steps: Steps of the curve.
        curve: Values of the curve.
        total: Maximum number of steps; 0 before the start.
        score: The score; None before the end.
        posterior: The posterior mean; None before the end, and for studies without one.
    """

    number: int
    token: str
    stage: Stage = "waiting"
    run: str = ""
    reason: str = ""
    steps: list[int] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    total: int = 0
    score: float | None = None
    posterior: Posterior | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, step: int, value: float) -> None:
        """Add a point to the curve; of a long curve, every other point is dropped."""
        if not np.isfinite(value) or (self.steps and step <= self.steps[-1]):
            return
        self.steps.append(int(step))
        self.curve.append(float(value))
        if len(self.steps) > POINTS:
            del self.steps[1:-1:2], self.curve[1:-1:2]

    def cut(self, step: int) -> None:
        """Remove the points after a step, from which the run is trained again."""
        kept = sum(s <= step for s in self.steps)
        del self.steps[kept:], self.curve[kept:]


class Wall:
    """All runs of a wall.

    Attributes:
        variation: What varies from run to run.
        preset: What all runs have in common.
        runs: The runs, in order of joining.
        closed: Whether the wall was taken down.
        changed: Called with the token of the phone whose run has changed; None for all.
        wake: Called when a run may be started, or the wall was taken down.
    """

    def __init__(self, variation: Variation) -> None:
        self.variation = variation
        self.preset = PRESETS[variation.study]
        self.runs: list[WallRun] = []
        self.closed = False
        self.changed: Callable[[str | None], None] = lambda token: None
        self.wake: Callable[[], None] = lambda: None

    def join(self, token: str) -> WallRun:
        """Queue a run for a phone; a phone that has one gets no second.

        Raises:
            Busy: The wall or its queue is full.
            NotAllowed: The wall was taken down.
        """
        if self.closed:
            raise NotAllowed(tr(GONE))
        own = self.of(token)
        if own is not None:
            return own
        if len(self.runs) >= RUNS:
            message = tr("This wall has {n} runs, its limit; look at the screen.", n=RUNS)
            raise Busy(message, seconds=600)
        if len(self._waiting()) >= WAITING:
            message = tr("{n} runs are waiting, the limit; press again in a minute.", n=WAITING)
            raise Busy(message, seconds=60)
        made = WallRun(len(self.runs) + 1, token)
        self.runs.append(made)
        self._notify(None)
        return made

    def of(self, token: str) -> WallRun | None:
        """Return the run of a phone."""
        return next((run for run in self.runs if run.token == token), None)

    def training(self) -> list[WallRun]:
        """Return the runs on workers, or on their way there."""
        return [run for run in self.runs if run.stage == "training"]

    def take(self, present: Callable[[str], bool]) -> WallRun | None:
        """Return the first waiting run whose phone is present, and mark it as training."""
        for run in [] if self.closed else self._waiting():
            if present(run.token):
                run.stage = "training"
                self._notify(None)
                return run
        return None

    def ahead(self, token: str, present: Callable[[str], bool]) -> int:
        """Return the number of runs that are trained before a phone's waiting run."""
        own = self.of(token)
        if own is None or own.stage != "waiting":
            return 0
        return sum(run.number < own.number and present(run.token) for run in self._waiting())

    def apply(self, run_id: str, events: Sequence[Event]) -> None:
        """Apply published events of a run; those of other runs are ignored."""
        run = next((run for run in self.training() if run.run == run_id), None)
        if run is None:
            return
        for event in events:
            match event:
                case Started():
                    run.total, run.metadata = event.total_steps, dict(event.metadata)
                    run.cut(event.step)
                case Progress():
                    run.add(event.step, getattr(event, self.preset.curve))
                case Finished(state, reason, report):
                    if state.usable:
                        self._finish(run, report)
                    else:
                        self.fail(run, reason)
        if run.stage == "training":
            self._notify(run.token)

    def fail(self, run: WallRun, reason: str) -> None:
        """End a run without a result."""
        run.stage, run.reason = "failed", reason
        self._notify(None)

    def close(self) -> None:
        """Take the wall down, and discard its runs once they are cancelled."""
        self.closed = True
        self._notify(None)

    def phone_state(self, token: str, present: Callable[[str], bool]) -> dict[str, Any]:
        """Return the state for a phone: what the wall is, and the phone's own run."""
        run = self.of(token)
        own = None if run is None else {
            "title": self.variation.title(run.number), "stage": run.stage, "reason": tr(run.reason),
            "ahead": self.ahead(token, present), "steps": run.steps, "total": run.total,
            "curve": [float(f"{v:.4g}") for v in run.curve],
            "score": None if run.score is None else tr(
                "{score} {value:.3g}", score=tr(self.preset.metric), value=run.score
            ),
        }  # fmt: skip
        return {"about": tr(self.preset.about), "runs": len(self.runs), "own": own}

    def _finish(self, run: WallRun, report: Report) -> None:
        scores = [
            m.value for m in report.metrics if m.source == "run" and m.name == self.preset.metric
        ]
        if not scores or not np.isfinite(scores[0]):
            self.fail(run, later("The run has no score."))
            return
        if self.preset.posterior is not None:
            run.posterior = self.preset.posterior(report, run.metadata)
        run.score, run.stage, run.metadata = float(scores[0]), "done", {}
        self._notify(None)

    def _waiting(self) -> list[WallRun]:
        return [run for run in self.runs if run.stage == "waiting"]

    def _notify(self, token: str | None) -> None:
        self.changed(token)
        if token is None:
            self.wake()
