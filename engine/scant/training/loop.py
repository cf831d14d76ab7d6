"""The one training loop: optimizer steps in, events out; pause, stop, checkpoints, convergence.

It knows nothing of any model: a study says how to step, what to keep and what to show
(`scant.studies.protocol.Study`). The same loop runs in a notebook, a test, the command line and a
worker.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
from safetensors.torch import load, save

from scant.deadline import PATIENCE, Deadline, Effort
from scant.errors import BadInput
from scant.evaluate.compare import compared
from scant.events import (
    ON_ALL_ROWS,
    TRAINING_ENDED,
    Checkpoint,
    Event,
    Finished,
    Fitted,
    Note,
    Progress,
    Report,
    Snapshot,
    Started,
    State,
)
from scant.learners.cost import SECONDS
from scant.optim.lbfgs import HISTORY
from scant.problem import Comparison
from scant.studies.auto import CHOSEN, listed, read
from scant.studies.protocol import Study, Tensors, blob, clone, part
from scant.training.checkpoint_format import FORMAT, OTHER_VERSION, header, of_other_version
from scant.training.control import Control
from scant.training.everything import REFIT_SHARE, REFIT_TRAINING_SHARE, refitted
from scant.training.folds import Folds, pooled

SNAPSHOT_SECONDS = 0.4  # a posterior that visibly moves; more often only costs training time
CHECKPOINT_SECONDS = 5.0  # what a killed worker loses at most
# Bytes of a checkpoint. A larger one lacks the optimizer's history, and one that is larger even so
# is made as much more rarely, so that no run writes more than this in `CHECKPOINT_SECONDS`.
MOST_CHECKPOINT = 64 << 20
FOLD_SHARE = 0.5  # of the fit's time: expected of a fold, whose report has no other methods
SLOWED = (
    "This machine is slow or busy with other programs: the fit was ended after "
    f"{PATIENCE:.0f} times its time budget, with less learned than planned."
)
NOT_BITWISE = (
    "The checkpoint lacks the optimizer's history, which is too large to be stored; the run goes "
    "on from the same parameters, but not bit for bit as without the interruption."
)


@dataclass
class Position:
    """Where the loop stands: all of it that a checkpoint must carry besides tensors."""

    step: int = 0
    restart: int = 0
    stage: int = 0  # of this restart
    since_start: int = 0  # steps in this restart
    since_best: int = 0
    best: float = -math.inf
    anchor: float = -math.inf  # the score that the next one must beat by the tolerance to count
    seconds: float = 0.0
    effort: float = 0.0  # seconds by the deadline's clock


def train(
    study: Study,
    control: Control | None = None,
    checkpoint: bytes | None = None,
    clock: Callable[[], float] = time.monotonic,
    own: bool = False,
    again: Callable[[], Study] | None = None,
    budget: float = math.inf,
    folds: Folds | None = None,
    effort: Effort | None = None,
) -> Iterator[Event]:
    """Train a study, saying what happens; the last event is `Finished`.

    Args:
        study: Made from its settings and table; left fitted unless the run diverged at once.
        control: Read at every step.
        checkpoint: The blob of a `Checkpoint` of the same study, settings and table. On a CPU the
            run then ends bit by bit where an uninterrupted one ends.
        clock: Seconds, by which snapshots and checkpoints are taken.
        own: Whether the table is the user's own: it then has rivals and no published figures.
        again: Makes the study of a second fit, on everything, once the first has its report.
        budget: Seconds that all of it may take, from search to rivals and a second fit.
        folds: Makes the studies of further folds, where an own table is small (`folds`).
        effort: Seconds by which the budget is; None: `clock`.
    """
    control = control or Control()
    scored = Deadline(budget * (1 - REFIT_SHARE if again else 1), effort or clock)
    loop = _Loop(study, scored, clock, own, again, folds=folds)
    if checkpoint is not None:
        loop.resume(checkpoint)
    total = study.restarts * study.max_steps * (2 if again else 1)
    metadata = {**study.metadata, "threads": torch.get_num_threads()}
    yield Started(study.device.type, total, loop.at.step, metadata)
    for text in study.notes:
        yield Note(text)
    yield from loop.run(control)


class _Loop:
    def __init__(
        self,
        study: Study,
        deadline: Deadline,
        clock: Callable[[], float],
        own: bool = False,
        again: Callable[[], Study] | None = None,
        scored: bool = True,
        folds: Folds | None = None,
    ) -> None:
        self.folds = folds
        self.deadline, self.clock = deadline, clock
        self.study, self.own, self.scored = study, own, scored
        study.deadline, study.scored = deadline, scored
        self.budget = study.search_share * deadline.left
        self.control = Control()
        self.again = again
        self.at = Position()
        self.kept: list[tuple[float, Tensors]] = []  # best of each restart, the present one last
        self.endings: list[State] = []
        self.begun = False
        self.pause_of_checkpoints = CHECKPOINT_SECONDS

    def run(self, control: Control) -> Iterator[Event]:
        study, at, self.control = self.study, self.at, control
        started, begun = self.clock() - at.seconds, self.deadline.clock() - at.effort
        shown = saved = self.clock()
        shown -= SNAPSHOT_SECONDS
        while at.restart < study.restarts and not self.out_of_time():
            control.heeded = control.wish in ("pause", "stop")
            if control.wish == "pause":
                yield self.checkpoint()
                yield Finished(State.PAUSED, f"After step {at.step}; resume goes on from there.")
                return
            if control.wish == "stop":
                reason = f"After step {at.step}, as requested; the best step is kept."
                yield from self.finalize(State.STOPPED, reason)
                return
            if not self.begun:
                study.start_restart(at.restart, at.stage, self.best_here())
                self.begun = True
            sent = len(study.notes)
            elbo, score = study.step()
            now = self.clock()
            at.seconds, at.effort = now - started, self.deadline.clock() - begun
            self.judge(elbo, score)
            yield Progress(at.step, elbo, at.seconds, at.best, score, at.restart)
            for text in study.notes[sent:]:
                yield Note(text)
            if not math.isfinite(elbo):
                yield from self.diverge(elbo)
                return
            ending = self.ending()
            if ending or self.out_of_time() or now - shown >= SNAPSHOT_SECONDS:
                yield Snapshot(at.step, study.snapshot())
                shown = self.clock()
            if ending:
                self.move_on(ending)
            if now - saved >= self.pause_of_checkpoints:
                yield self.checkpoint()
                saved = self.clock()
        control.heeded = True  # no step follows; a stop is heeded where `finalize` asks for it
        for event in self.finalize(*self.verdict()):
            match event:
                case Finished(state=state) if self.again and state not in (
                    State.PAUSED,
                    State.STOPPED,
                ):
                    yield from self.on_everything(self.again(), control, event)
                case _:
                    yield event

    def on_everything(self, study: Study, control: Control, end: Finished) -> Iterator[Event]:
        """A second fit, by a study that holds nothing out; the first one ended as `end` says.

        A checkpoint of it is one of the first fit's end, from where its report is made anew.
        """
        yield self.checkpoint()
        yield Note(ON_ALL_ROWS)
        budget = self.deadline.seconds / (1 - REFIT_SHARE)
        seconds = max(REFIT_SHARE * budget, budget - self.deadline.used)
        study.earlier = self.study
        loop = _Loop(study, self.anew(seconds), self.clock, scored=False)
        loop.budget = REFIT_TRAINING_SHARE * seconds
        events, at = loop.run(control), self.at
        rows = int(study.metadata["rows"]["training"])
        for event in refitted(events, rows, at.step, len(self.kept), at.seconds, end.report):
            match event:
                case Finished(state=State.PAUSED):
                    yield self.checkpoint()
                    yield event
                case Finished(state=State.STOPPED):
                    yield replace(event, reason="In the fit on all rows, as requested.")
                case Finished():
                    yield replace(event, state=end.state, reason=end.reason)
                case _:
                    yield event

    def judge(self, elbo: float, score: float) -> None:
        """Count the step; keep the parameters where the score is the restart's best."""
        at = self.at
        at.step += 1
        at.since_start += 1
        at.since_best += 1
        if not math.isfinite(elbo):
            return
        score = score if math.isfinite(score) else -math.inf
        if score > at.best or self.best_here() is None:
            at.best = score
            best = (score, clone(self.study.parameters()))
            if len(self.kept) > at.restart:
                self.kept[at.restart] = best
            else:
                self.kept.append(best)
        if score > at.anchor + self.study.tolerance:
            at.anchor, at.since_best = score, 0

    def out_of_time(self) -> bool:
        return self.at.step > 0 and self.at.effort >= self.budget

    def rest(self, part: float) -> Deadline:
        """For further folds or rivals: this part of the time left; of a fit without an end, as long
        as it has taken."""
        if math.isfinite(self.deadline.seconds):
            return self.deadline.share(part)
        return self.anew(max(self.deadline.used, SECONDS))

    def anew(self, seconds: float) -> Deadline:
        """A deadline by the same clock."""
        return Deadline(seconds, self.deadline.clock)

    def ending(self) -> State | None:
        study, at = self.study, self.at
        if study.patience and at.since_best >= study.patience:
            return State.CONVERGED
        if at.since_start < study.max_steps * (at.stage + 1) // study.stages:
            return None
        return State.FINISHED if study.scheduled else State.HIT_LIMIT

    def move_on(self, ending: State) -> None:
        """From the end of a stage to the next one, or to the next restart."""
        at = self.at
        self.begun = False
        at.since_best = 0
        if at.stage + 1 < self.study.stages and self.best_here() is not None:
            at.stage += 1
            return
        at.stage = 0
        self.endings.append(ending)
        at.restart += 1
        at.since_start = 0
        at.best = at.anchor = -math.inf

    def best_here(self) -> Tensors | None:
        """The best parameters of the present restart, if it has any yet."""
        return self.kept[self.at.restart][1] if len(self.kept) > self.at.restart else None

    def verdict(self) -> tuple[State, str]:
        study = self.study
        if self.at.restart < study.restarts:
            more = f" of restart {self.at.restart + 1}" if study.restarts > 1 else ""
            return State.HIT_LIMIT, (
                f"The time budget is used, after {self.budget:.0f} s of training in step "
                f"{self.at.since_start}{more}; the best step is kept. A larger 'time_budget' may "
                "fit better."
            )
        if study.scheduled and self.at.step == study.restarts * study.max_steps:
            return State.FINISHED, study.reason or (
                f"All {study.max_steps} steps of the learning-rate schedule are done; a higher "
                "limit lowers the rate more slowly and may fit better."
            )
        if study.reason:
            return State.CONVERGED, study.reason
        if all(e is State.CONVERGED for e in self.endings):
            return State.CONVERGED, (
                f"The score has not risen by more than {study.tolerance:g} "
                f"in {study.patience} steps."
            )
        return State.HIT_LIMIT, (
            f"Not converged after {study.max_steps} steps; the best step is kept. A higher limit "
            "may fit better."
        )

    def diverge(self, elbo: float) -> Iterator[Event]:
        remedy = (
            f"The objective became {elbo} at step {self.at.step}. Try fewer basis functions or "
            "inducing points, a lower learning rate, or look for extreme values in the data."
        )
        if self.kept:
            yield from self.finalize(State.DIVERGED, remedy + " The last good parameters are kept.")
        else:
            yield Finished(State.DIVERGED, remedy)

    def finalize(self, state: State, reason: str) -> Iterator[Event]:
        if not self.kept:
            yield Finished(state, "No step was taken, so there is no model.", Report())
            return
        study = self.study
        rivals = self.own and getattr(study.settings, "baselines", True)
        if self.scored and rivals:  # before the report, which may take longer than training
            yield Note(TRAINING_ENDED)
        report = replace(study.finalize(self.kept), limits=study.limits())
        if self.scored:
            comparison = study.comparison(report)
            if rivals and comparison is not None and self.folds is not None:
                comparison = self.crossed(comparison, state)
            report = compared(
                report,
                comparison,
                self.at.seconds,
                own=self.own,
                rivals=rivals,
                seed=study.settings.seed,
                deadline=self.rest(1.0),
                halted=partial(self.halted, state),
            )
            if skipped := self.deadline.skipped:
                text = f"Left out, to keep to the time budget: {', '.join(skipped)}."
                report = replace(report, notes=(*report.notes, text))
            over = bool(skipped) or self.out_of_time()
            if over and isinstance(self.deadline.clock, Effort) and self.deadline.clock.slowed:
                report = replace(report, notes=(*report.notes, SLOWED))
            if rivals and self.control.wish == "pause" and state is not State.DIVERGED:
                yield self.checkpoint()
                reason = "Paused while general tools were fitted; resume makes the result."
                yield Finished(State.PAUSED, reason)
                return
        if self.control.wish == "stop" and state not in (State.STOPPED, State.DIVERGED):
            state, reason = State.STOPPED, "After the last step of training, as requested."
        if chosen := listed(read(study.metadata)):
            report = replace(report, notes=(chosen, *report.notes))
        done = state in (State.CONVERGED, State.FINISHED)
        if done and report.verdict is not None and report.verdict.nothing:
            nothing = report.verdict.nothing
            state, reason = State.LEARNED_NOTHING, nothing[0].upper() + nothing[1:]
        yield Snapshot(self.at.step, self.study.snapshot())
        tensors, meta = study.fitted()
        if CHOSEN in study.metadata:
            meta = {**meta, CHOSEN: study.metadata[CHOSEN]}
        yield Fitted(blob(tensors, meta))
        yield Finished(state, reason, report)

    def crossed(self, comparison: Comparison, state: State) -> Comparison:
        """The problem with those of further folds, for which half of the time left is used."""
        assert self.folds is not None
        found, expected = [comparison], FOLD_SHARE * self.deadline.used
        for study in self.rest(0.5).units(self.folds(), expected=expected):
            if self.halted(state):
                break
            loop = _Loop(study, self.anew(self.deadline.left), self.clock, scored=False)
            [end] = deque(loop.run(self.control), maxlen=1)
            assert isinstance(end, Finished), "the last event says how training ended"
            made = study.comparison(end.report) if end.report.metrics else None
            if made is not None and not self.halted(state):
                found.append(made)
        return pooled(found) if len(found) > 1 else comparison

    def halted(self, state: State) -> bool:
        """Whether an end was asked for after training ended as `state`, by whatever it was."""
        wish = self.control.wish
        return wish in ("pause", "abandon") or (wish == "stop" and state is not State.STOPPED)

    def checkpoint(self) -> Checkpoint:
        tensors: Tensors = {}
        if self.begun:
            tensors |= {f"parameters.{k}": v for k, v in self.study.parameters().items()}
            tensors |= {f"state.{k}": v for k, v in self.study.state().items()}
        for r, (_, best) in enumerate(self.kept):
            tensors |= {f"kept.{r}.{k}": v for k, v in best.items()}
        size, bitwise = _bytes(tensors), True
        if size > MOST_CHECKPOINT:
            tensors = {k: v for k, v in tensors.items() if k.rsplit(".", 1)[-1] not in HISTORY}
            bitwise, size = _bytes(tensors) == size, _bytes(tensors)
        self.pause_of_checkpoints = CHECKPOINT_SECONDS * max(1.0, size / MOST_CHECKPOINT)
        stood = {
            "format": FORMAT,
            "at": asdict(self.at),
            "scores": [score for score, _ in self.kept],
            "endings": self.endings,
            "begun": self.begun,
            "bitwise": bitwise,
        }
        blob = save(clone(tensors), metadata={"loop": json.dumps(stood)})
        return Checkpoint(self.at.step, blob)

    def resume(self, blob: bytes) -> None:
        if of_other_version(blob):
            raise BadInput(OTHER_VERSION)
        stood = header(blob, "loop")
        if not stood.get("bitwise", True):
            self.study.notes.append(NOT_BITWISE)
        tensors = load(blob)
        self.at = Position(**stood["at"])
        self.deadline.begun -= self.at.effort
        self.endings = [State(e) for e in stood["endings"]]
        self.kept = [(s, part(tensors, f"kept.{r}.")) for r, s in enumerate(stood["scores"])]
        self.begun = stood["begun"]
        if self.begun:
            self.study.start_restart(self.at.restart, self.at.stage, self.best_here())
            self.study.load(part(tensors, "parameters."), part(tensors, "state."))


def _bytes(tensors: Tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def choose_device(device: str = "auto") -> torch.device:
    """The device that `device` ("auto", "cpu", "cuda") comes to on this machine.

    Raises:
        BadInput: CUDA was asked for and there is none.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("There is no CUDA device here; ask for device cpu, or auto.")
    return torch.device(device)
