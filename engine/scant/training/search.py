"""Search of a study for its best parameters: restarts, stages, steps, and their checkpoints."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from safetensors.torch import load, save

from scant.errors import BadInput
from scant.events import Checkpoint, State
from scant.optim.ascent import Convergence
from scant.optim.lbfgs import HISTORY
from scant.studies.protocol import Step, Study, Tensors, clone, part
from scant.training.checkpoint_format import FORMAT, OTHER_VERSION, header, of_other_version

CHECKPOINT_SECONDS = 5.0  # a killed worker loses at most this much work
# Larger checkpoints omit the optimizer's history. If they are still larger, they become rarer in
# proportion, so that no run writes more than this in `CHECKPOINT_SECONDS`.
MAX_CHECKPOINT_BYTES = 64 << 20
NOT_BITWISE = (
    "The checkpoint lacks the optimizer's history, which is too large to be stored; the run goes "
    "on from the same parameters, but its results may differ slightly from those without the "
    "interruption."
)


@dataclass
class Position(Convergence):
    """Counters of a search, stored in checkpoints besides tensors."""

    step: int = 0
    restart: int = 0
    stage: int = 0  # of this restart
    since_start: int = 0  # steps in this restart
    best: float = -math.inf
    seconds: float = 0.0
    effort: float = 0.0  # seconds by the deadline's clock


class Search:
    """Restarts of a study, each in stages that end by the stopping rule or at a step limit.

    Args:
        study: The study to train.
        budget: Maximum seconds of the steps, by the deadline's clock.

    Attributes:
        at: Position.
        best: Best score and parameters of each restart, the current one last.
        checkpoint_interval: Seconds between checkpoints.
    """

    def __init__(self, study: Study, budget: float) -> None:
        self.study, self.budget = study, budget
        self.at = Position()
        self.best: list[tuple[float, Tensors]] = []
        self.checkpoint_interval = CHECKPOINT_SECONDS
        self._endings: list[State] = []
        self._begun = False  # True if the study is set up for the current stage

    @property
    def over(self) -> bool:
        """True after the last restart, or once the budget is used."""
        return self.at.restart >= self.study.restarts or self.out_of_time

    @property
    def out_of_time(self) -> bool:
        """True once the budget is used; a search takes at least one step."""
        return self.at.step > 0 and self.at.effort >= self.budget

    def begin(self) -> None:
        """Set up the study for the current stage, unless already done."""
        if not self._begun:
            self.study.start_restart(self.at.restart, self.at.stage, self._best_here)
            self._begun = True

    def step(self) -> Step:
        """Take a step, and keep the parameters if their score is the restart's best."""
        study, at = self.study, self.at
        self.begin()
        elbo, score = step = study.step()
        at.step += 1
        at.since_start += 1
        if math.isfinite(elbo):
            score = score if math.isfinite(score) else -math.inf
            if score > at.best or self._best_here is None:
                at.best = score
                self.best[at.restart :] = [(score, clone(study.parameters()))]
            at.gains(score, study.tolerance)
        return step

    def ending(self) -> State | None:
        """Return the final state of the current stage; None if it continues."""
        study, at = self.study, self.at
        if at.reached(study.patience):
            return State.CONVERGED
        if at.since_start < study.max_steps * (at.stage + 1) // study.stages:
            return None
        return State.FINISHED if study.scheduled else State.HIT_LIMIT

    def advance(self, ending: State) -> None:
        """Go from the end of a stage to the next one, or to the next restart."""
        at = self.at
        self._begun = False
        at.since_best = 0
        if at.stage + 1 < self.study.stages and self._best_here is not None:
            at.stage += 1
            return
        at.stage = 0
        self._endings.append(ending)
        at.restart += 1
        at.since_start = 0
        at.best = at.anchor = -math.inf

    @property
    def _best_here(self) -> Tensors | None:
        """Best parameters of the current restart, if any."""
        return self.best[self.at.restart][1] if len(self.best) > self.at.restart else None

    def verdict(self) -> tuple[State, str]:
        """Return the final state of a search and the reason as a sentence."""
        study = self.study
        if self.at.restart < study.restarts:
            suffix = f" of restart {self.at.restart + 1}" if study.restarts > 1 else ""
            return State.HIT_LIMIT, (
                f"The time budget is used, after {self.budget:.0f} s of training in step "
                f"{self.at.since_start}{suffix}; the best step is kept. A larger 'time_budget' may "
                "fit better."
            )
        if study.scheduled and self.at.step == study.restarts * study.max_steps:
            return State.FINISHED, study.reason or (
                f"All {study.max_steps} steps of the learning-rate schedule are done; a higher "
                "limit lowers the rate more slowly and may fit better."
            )
        if study.reason:
            return State.CONVERGED, study.reason
        if all(e is State.CONVERGED for e in self._endings):
            return State.CONVERGED, (
                f"The score has not risen by more than {study.tolerance:g} "
                f"in {study.patience} steps."
            )
        return State.HIT_LIMIT, (
            f"Not converged after {study.max_steps} steps; the best step is kept. A higher limit "
            "may fit better."
        )

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint from which a search of the same study resumes bit by bit."""
        tensors: Tensors = {}
        if self._begun:
            tensors |= {f"parameters.{k}": v for k, v in self.study.parameters().items()}
            tensors |= {f"state.{k}": v for k, v in self.study.state().items()}
        for r, (_, best) in enumerate(self.best):
            tensors |= {f"kept.{r}.{k}": v for k, v in best.items()}
        size, bitwise = _bytes(tensors), True
        if size > MAX_CHECKPOINT_BYTES:
            tensors = {k: v for k, v in tensors.items() if k.rsplit(".", 1)[-1] not in HISTORY}
            bitwise, size = _bytes(tensors) == size, _bytes(tensors)
        self.checkpoint_interval = CHECKPOINT_SECONDS * max(1.0, size / MAX_CHECKPOINT_BYTES)
        position = {
            "format": FORMAT,
            "at": asdict(self.at),
            "scores": [score for score, _ in self.best],
            "endings": self._endings,
            "begun": self._begun,
            "bitwise": bitwise,
        }
        blob = save(clone(tensors), metadata={"loop": json.dumps(position)})
        return Checkpoint(self.at.step, blob)

    def resume(self, blob: bytes) -> None:
        """Resume from a checkpoint.

        Raises:
            BadInput: The checkpoint is of another version of Scant.
        """
        if of_other_version(blob):
            raise BadInput(OTHER_VERSION)
        position = header(blob, "loop")
        if not position.get("bitwise", True):
            self.study.notes.append(NOT_BITWISE)
        tensors = load(blob)
        self.at = Position(**position["at"])
        self._endings = [State(e) for e in position["endings"]]
        self.best = [(s, part(tensors, f"kept.{r}.")) for r, s in enumerate(position["scores"])]
        self._begun = position["begun"]
        if self._begun:
            self.study.start_restart(self.at.restart, self.at.stage, self._best_here)
            self.study.load(part(tensors, "parameters."), part(tensors, "state."))


def _bytes(tensors: Tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
