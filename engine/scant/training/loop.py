"""The training loop of all studies: steps, events, pause, stop, checkpoints and convergence.

The loop is independent of the model: the study takes the steps and returns its posterior
(`scant.studies.protocol.Study`). Notebooks, tests, the command line and workers use this loop.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from scant.deadline import PATIENCE, Deadline, Effort
from scant.errors import BadInput
from scant.evaluate.compare import compared
from scant.events import (
    ON_ALL_ROWS,
    OPENING,
    TRAINING_ENDED,
    Event,
    Finished,
    Fitted,
    Note,
    Phase,
    Progress,
    Report,
    Results,
    Snapshot,
    Started,
    State,
)
from scant.learners.cost import SECONDS
from scant.problem import Comparison
from scant.studies.auto import CHOSEN, listed, read
from scant.studies.protocol import Study, blob
from scant.training.control import Control
from scant.training.everything import REFIT_SHARE, REFIT_TRAINING_SHARE, refitted
from scant.training.folds import Folds, pooled
from scant.training.search import Search

SNAPSHOT_SECONDS = 0.15  # minimum interval between snapshots, for animation of the posterior
# Minimum interval as a multiple of a snapshot's duration: at most a quarter of the time is spent.
SNAPSHOT_REST = 3.0
OPENING_SECONDS = 1.0  # maximum total duration of the snapshots of `OPENING`
FOLD_SHARE = 0.5  # expected time of a fold, relative to the fit: its report has no other methods
SLOWED = (
    "This machine is slow or busy with other programs: the fit was ended after "
    f"{PATIENCE:.0f} times its time budget, with less learned than planned."
)


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
    """Train a study and yield its events; the last one is `Finished`.

    Args:
        study: Study to train; it is fitted afterwards unless the run diverged at once.
        control: Requests, read at every step.
        checkpoint: The blob of a `Checkpoint` of the same study, settings and table. On a CPU the
            result is then bitwise equal to that of an uninterrupted run.
        clock: Clock in seconds for snapshots and checkpoints.
        own: True for a user's table, whose report has rivals and no published figures.
        again: Creates the study of a second fit, on all rows, after the report of the first.
        budget: Seconds for the whole run, including rivals and the second fit.
        folds: Creates the studies of further folds if a user's table is small (`folds`).
        effort: Clock in seconds for the budget; None: `clock`.
    """
    control = control or Control()
    scored = Deadline(budget * (1 - REFIT_SHARE if again else 1), effort or clock)
    loop = _Loop(study, scored, clock, own, again, folds=folds)
    if checkpoint is not None:
        loop.search.resume(checkpoint)
        scored.begun -= loop.search.at.effort
    total = study.restarts * study.max_steps * (2 if again else 1)
    metadata = {**study.metadata, "threads": torch.get_num_threads()}
    yield Started(study.device.type, total, loop.search.at.step, metadata)
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
        self.search = Search(study, study.search_share * deadline.left)
        self.control = Control()
        self.again = again
        self.shot_seconds = self.opening_seconds = 0.0  # of the last snapshot; of the first ones

    def run(self, control: Control) -> Iterator[Event]:
        self.control, study, search, at = control, self.study, self.search, self.search.at
        start, effort_start = self.clock() - at.seconds, self.deadline.clock() - at.effort
        last_snapshot = last_checkpoint = self.clock()
        while not search.over:
            control.heeded = control.wish in ("pause", "stop")
            if control.wish == "pause":
                yield search.checkpoint()
                yield Finished(State.PAUSED, f"After step {at.step}; resume goes on from there.")
                return
            if control.wish == "stop":
                reason = f"After step {at.step}, as requested; the best step is kept."
                yield from self.finalize(State.STOPPED, reason)
                return
            sent = len(study.notes)
            if at.step == 0 and self.scored:
                search.begin()
                yield self.snapshot()
            elbo, score = search.step()
            now = self.clock()
            at.seconds, at.effort = now - start, self.deadline.clock() - effort_start
            yield Progress(at.step, elbo, at.seconds, at.best, score, at.restart)
            for text in study.notes[sent:]:
                yield Note(text)
            if not math.isfinite(elbo):
                yield from self.diverge(elbo)
                return
            ending = search.ending()
            interval = max(SNAPSHOT_SECONDS, SNAPSHOT_REST * self.shot_seconds)
            snapshot_due = now - last_snapshot >= interval or self.opens
            if ending or search.out_of_time or snapshot_due:
                yield self.snapshot()
                last_snapshot = self.clock()
            if ending:
                search.advance(ending)
            if now - last_checkpoint >= search.checkpoint_interval:
                yield search.checkpoint()
                last_checkpoint = self.clock()
        control.heeded = True  # no step follows; `finalize` handles later requests to stop
        for event in self.finalize(*search.verdict()):
            match event:
                case Finished(state=state) if self.again and state not in (
                    State.PAUSED,
                    State.STOPPED,
                ):
                    yield from self.on_everything(self.again(), control, event)
                case _:
                    yield event

    @property
    def opens(self) -> bool:
        """True after a step whose snapshot shows the beginning of training."""
        quick = self.opening_seconds < OPENING_SECONDS
        return self.scored and quick and self.search.at.step in OPENING

    def snapshot(self) -> Snapshot:
        """Return the posterior and measure the duration."""
        step, start = self.search.at.step, self.clock()
        snapshot = Snapshot(step, self.study.snapshot())
        self.shot_seconds = self.clock() - start
        if step <= OPENING[-1]:
            self.opening_seconds += self.shot_seconds
        return snapshot

    def on_everything(self, study: Study, control: Control, end: Finished) -> Iterator[Event]:
        """Fit a study without held-out rows; the first fit has ended with `end`.

        Checkpoints are of the end of the first fit; its report is repeated after resumption.
        """
        yield self.search.checkpoint()
        yield Note(ON_ALL_ROWS)
        yield Phase("fitting to all rows")
        budget = self.deadline.seconds / (1 - REFIT_SHARE)
        seconds = max(REFIT_SHARE * budget, budget - self.deadline.used)
        study.earlier = self.study
        loop = _Loop(study, self._deadline(seconds), self.clock, scored=False)
        loop.search.budget = REFIT_TRAINING_SHARE * seconds
        events, at, best = loop.run(control), self.search.at, self.search.best
        rows = int(study.metadata["rows"]["training"])
        for event in refitted(events, rows, at.step, len(best), at.seconds, end.report):
            match event:
                case Finished(state=State.PAUSED):
                    yield self.search.checkpoint()
                    yield event
                case Finished(state=State.STOPPED):
                    yield replace(event, reason="In the fit on all rows, as requested.")
                case Finished():
                    yield replace(event, state=end.state, reason=end.reason)
                case _:
                    yield event

    def rest(self, part: float) -> Deadline:
        """Return the deadline of further folds or rivals: this share of the remaining time.

        Without a time budget they may take as long as the fit.
        """
        if math.isfinite(self.deadline.seconds):
            return self.deadline.share(part)
        deadline = self._deadline(max(self.deadline.used, SECONDS))
        deadline.watch = self.deadline.watch
        return deadline

    def _deadline(self, seconds: float) -> Deadline:
        """Return a deadline with the same clock."""
        return Deadline(seconds, self.deadline.clock)

    def diverge(self, elbo: float) -> Iterator[Event]:
        remedy = (
            f"The objective became {elbo} at step {self.search.at.step}. Try fewer basis functions "
            "or inducing points, a lower learning rate, or look for extreme values in the data."
        )
        if self.search.best:
            yield from self.finalize(State.DIVERGED, remedy + " The last good parameters are kept.")
        else:
            yield Finished(State.DIVERGED, remedy)

    def finalize(self, state: State, reason: str) -> Iterator[Event]:
        if not self.search.best:
            yield Finished(state, "No step was taken, so there is no model.", Report())
            return
        study = self.study
        rivals = self.own and getattr(study.settings, "baselines", True)
        if self.scored:  # before the report, which may take longer than training
            if rivals:
                yield Note(TRAINING_ENDED)
            yield Phase("making the report")
            tell = self.control.tell
            if tell is not None:
                self.deadline.watch = lambda *phase: tell(Phase(*phase))
                study.results = lambda report: tell(Results(self.without_others(report)))
        report = replace(study.finalize(self.search.best), limits=study.limits())
        if self.scored:
            comparison = study.comparison(report)
            if rivals and comparison is not None and self.folds is not None:
                comparison = self.crossed(comparison, state)
            report = compared(
                report,
                comparison,
                self.search.at.seconds,
                own=self.own,
                rivals=rivals,
                seed=study.settings.seed,
                deadline=self.rest(1.0),
                halted=partial(self.halted, state),
            )
            if skipped := self.deadline.skipped:
                text = f"Left out, to keep to the time budget: {', '.join(skipped)}."
                report = replace(report, notes=(*report.notes, text))
            out_of_time = bool(skipped) or self.search.out_of_time
            if (
                out_of_time
                and isinstance(self.deadline.clock, Effort)
                and self.deadline.clock.slowed
            ):
                report = replace(report, notes=(*report.notes, SLOWED))
            if rivals and self.control.wish == "pause" and state is not State.DIVERGED:
                yield self.search.checkpoint()
                reason = "Paused while general tools were fitted; resume completes the report."
                yield Finished(State.PAUSED, reason)
                return
        if self.control.wish == "stop" and state not in (State.STOPPED, State.DIVERGED):
            state, reason = State.STOPPED, "After the last step of training, as requested."
        if chosen := listed(read(study.metadata)):
            report = replace(report, notes=(chosen, *report.notes))
        completed = state in (State.CONVERGED, State.FINISHED)
        if completed and report.verdict is not None and report.verdict.nothing:
            nothing = report.verdict.nothing
            state, reason = State.LEARNED_NOTHING, nothing[0].upper() + nothing[1:]
        yield Snapshot(self.search.at.step, self.study.snapshot())
        tensors, meta = study.fitted()
        if CHOSEN in study.metadata:
            meta = {**meta, CHOSEN: study.metadata[CHOSEN]}
        yield Fitted(blob(tensors, meta))
        yield Finished(state, reason, report)

    def without_others(self, report: Report) -> Report:
        """Return the report before other methods are fitted."""
        report = replace(report, limits=self.study.limits())
        return compared(report, None, self.search.at.seconds, own=self.own, rivals=False)

    def crossed(self, comparison: Comparison, state: State) -> Comparison:
        """Pool the comparison with those of further folds, within half of the remaining time."""
        assert self.folds is not None
        comparisons, expected = [comparison], FOLD_SHARE * self.deadline.used
        for study in self.rest(0.5).units(self.folds(), expected=expected):
            if self.halted(state):
                break
            loop = _Loop(study, self._deadline(self.deadline.left), self.clock, scored=False)
            [end] = deque(loop.run(self.control), maxlen=1)
            assert isinstance(end, Finished), "the last event says how training ended"
            comparison_of_fold = study.comparison(end.report) if end.report.metrics else None
            if comparison_of_fold is not None and not self.halted(state):
                comparisons.append(comparison_of_fold)
        return pooled(comparisons) if len(comparisons) > 1 else comparison

    def halted(self, state: State) -> bool:
        """Return True if the run shall end, after training has ended as `state`."""
        wish = self.control.wish
        return wish in ("pause", "abandon") or (wish == "stop" and state is not State.STOPPED)


def choose_device(device: str = "auto") -> torch.device:
    """Return the PyTorch device for "auto", "cpu" or "cuda" on this machine.

    Raises:
        BadInput: CUDA was requested but is not available.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("There is no CUDA device here; ask for device cpu, or auto.")
    return torch.device(device)
