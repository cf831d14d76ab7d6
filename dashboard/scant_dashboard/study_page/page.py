"""The frame of every study's page: story, data, form, run bar, figures, exports.

A page file supplies a `views.PageViews` and receives a `context.PageContext`, which document their
contracts. The Keep section calls `scant_dashboard.export` with the run's `live.RunState`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from typing import Any
from urllib.parse import urlencode

import numpy as np
import panel as pn

from scant.errors import BadInput, NotFound
from scant.events import Report, Snapshot, State
from scant.studies import Entry, entry
from scant_dashboard.controls.data_panel import DataPanel
from scant_dashboard.controls.estimate import Estimate
from scant_dashboard.controls.export_panel import ExportPanel
from scant_dashboard.controls.fit_everything import FitEverything
from scant_dashboard.controls.health_banner import HealthBanner
from scant_dashboard.controls.replay import Replay
from scant_dashboard.controls.run_bar import SAY_EVERY, RunBar
from scant_dashboard.controls.run_list import RunList
from scant_dashboard.controls.settings_form import SettingsForm
from scant_dashboard.controls.status import requested
from scant_dashboard.controls.verdict_card import card
from scant_dashboard.engine_text import translated
from scant_dashboard.frame.background import Background, on_document
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.live.hub import Update
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts import lesson
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.study_page.figure import Figure
from scant_dashboard.study_page.layout import Layout
from scant_dashboard.study_page.room_controller import RoomController
from scant_dashboard.template import PageContent
from scant_dashboard.translate import later, tr

# Query parameters that are no settings.
OWN_PARAMETERS = {
    "run", "present", "theme", "lang", "data", "compare", "hash", "file", "live", "room",
    *lesson.PARAMETERS,
}  # fmt: skip

ACKNOWLEDGED_EVERY = 2  # updates per acknowledgment by the browser; less than `hub.AHEAD`


def study_page(visit: SessionContext, name: str) -> PageContent:
    """Build the page of a study from `scant_dashboard.pages.<name>.page.views`."""
    made = StudyPage(visit, entry(name), import_module(f"scant_dashboard.pages.{name}.page").views)
    return PageContent(tr(made.entry.title), [made.panel], study=name)


class StudyPage:
    """One browser session on a study's page; all callbacks run on the session's document.

    Methods for the page's parts are documented in `PageContext` and `ControlsContext`.
    """

    def __init__(
        self, visit: SessionContext, study: Entry, views: Callable[[PageContext], PageViews]
    ) -> None:
        self.visit, self.entry = visit, study
        self.service, self.hub = visit.site.service, visit.site.hub
        self.run: RunState | None = None
        self.may_steer = False  # whether the visitor may pause and stop the current run
        self._numbers = count(1)
        self._read_at = 0.0
        self._turns: dict[str, int] = {}  # numbers of the pending queries
        self._asking = 0
        self._refused = False  # whether the message is that a query failed
        self._say_error = partial(self.say, kind="error")
        self._background = Background(lambda *acts: self.turn(*acts), self._say_error)
        self.background = self._background.start
        self.room = RoomController(self)
        self.guess_first = self.room.guess_first
        self.views = views(self)
        self.lesson = lesson.read(
            visit.query,
            [v.title for v in self.views.every()],
            len(self.steps) + self.present,
            study.presets,
        )
        self.figures = {id(v): self._figure(v) for v in self.views.every()}
        scarcities = [source.scarcity for source in study.sources if source.scarcity]
        self.form = SettingsForm(study.settings, study.presets, scarcities)
        self.data = DataPanel(self)
        self._start = study.start()
        self.data.watch(self._data_chosen)
        self.estimate = Estimate(self)
        extra = {later("Use your own data"): self.data.upload.open,
                  later("Try it on the demonstration"): self._try_demonstration}  # fmt: skip
        self.bar = RunBar(
            self._train, self._pause, self._resume, self._stop,
            extra={} if self.present or self.lesson.hides("Data") else extra, page=tr(study.title),
        )  # fmt: skip
        self.replay = Replay(visit.doc, self.show_recorded)
        self.everything = FitEverything(self)
        self.list = RunList(self)
        self.trouble = HealthBanner(visit.site, visit.doc)
        self.watcher = self.hub.watch(visit.doc, self._show)
        self.bar.status.param.watch(lambda change: self.watcher.acknowledge(change.new), "drawn")
        self.watcher.up = False  # updates before the page is up would be lost
        pn.state.onload(self._on_load)
        self.layout = Layout(self)
        self.panel = self.layout.panel
        for view in self.views.every():
            if hasattr(view, "restyle"):
                visit.on_theme(view.restyle)
        self._open_linked_run()

    @property
    def present(self) -> bool:
        return self.visit.present

    @property
    def dark(self) -> bool:
        """Whether the dark theme is on."""
        return self.visit.dark

    @property
    def guessing(self) -> bool:
        return lesson.on(self.visit.query, "guess")

    @property
    def steps(self) -> list[tuple[str, str]]:
        first = dict(self.views.steps)
        rest = {view.title: "" for view in self.views.every() if view.title not in first}
        return [*first.items(), *rest.items()]

    @property
    def owns_run(self) -> bool:
        return self.run is not None and self.run.record.owner == self.visit.owner != ""

    def say(self, sentence: str, kind: str = "info") -> None:
        self.layout.message(translated(sentence), kind)

    def link(self, **query: Any) -> str:
        parameters: dict[str, Any] = {}
        if self.run is not None:
            parameters |= {"run": self.run.id, **self.run.record.settings}
        if self.run is None or self.run.record.data != "demo":
            parameters["data"] = self.data.value if self.run is None else self.run.record.data
        parameters |= query
        return f"{self.visit.base}{self.entry.name}?" + urlencode(
            {k: v for k, v in parameters.items() if v is not None}
        )

    def ask(
        self,
        question: str,
        then: Callable[[dict[str, np.ndarray]], None],
        last: Callable[[], None] = lambda: None,
        **query: Any,
    ) -> None:
        run = self.run
        if run is None:
            return
        turn = self._turns[question] = next(self._numbers)

        def answered(answer: dict[str, np.ndarray]) -> None:
            if self._refused:  # remove the message that a query failed
                self._refused = False
                self.say("")
            if self.run is run and self._turns.get(question) == turn:
                then(answer)
                self.read(at_once=True)

        def refused(sentence: str) -> None:
            self._refused = True
            self.say(sentence, "error")

        def ended() -> None:
            self._busy(-1)
            last()

        self._busy(1)
        work = self.service.explore(run.id, question, query)
        self.background(work, answered, refused, last=ended)

    def cancel_question(self, question: str) -> None:
        self._turns.pop(question, None)

    @cached_property
    def keep(self) -> ExportPanel:
        """Downloads and links, built once the page is up."""
        made = ExportPanel(self)
        if self.run is not None:
            made.open(self.run)
        return made

    def _update_exports(self) -> None:
        """Update the exports of the current run."""
        if "keep" in self.__dict__ and self.run is not None:
            self.keep.open(self.run)

    def turn(self, *acts: Callable[[], None]) -> None:
        """Call these on the session's document as soon as it is free."""
        on_document(self.visit.doc, self._say_error, *acts)

    async def wait_for_tasks(self) -> None:
        """Wait for all background work, including work started by it."""
        await self._background.wait()

    def open(self, run: str, opening: bool = False) -> None:
        """Open a run, live or finished.

        Args:
            run: Id of the run.
            opening: Whether to show first how it began (`live.hub.Watcher.follow`).

        Raises:
            NotFound: There is no such run, or it belongs to another study's page.
        """
        history = self.hub.history(run)
        if history.record.study != self.entry.name:
            raise NotFound(
                tr(
                    "Run {run} belongs to another page: open /{study}?run={run} for it.",
                    run=run,
                    study=history.record.study,
                )
            )
        self.run = history
        self.may_steer = self.service.may_steer(history.record, self.visit.owner)
        self._turns.clear()
        for view in self.views.every():
            view.clear(history)
        self.data.show(history.record.data)
        self.form.fill(history.record.settings)
        self._update_exports()
        self.replay.close()
        self.layout.reveal(False)
        self.watcher.follow(run, opening)
        self.watcher.flush()
        self.room.opened(run)

    # --- updates from the hub ---

    def _show(self, update: Update) -> None:
        run = update.run
        fresh = self.bar.show(run, self.may_steer)
        applicable = self.views.applicable(run)
        for figure in self.figures.values():
            title = figure.view.title
            figure.panel.visible = figure.view in applicable and not self.lesson.hides(title)
        if self.replay.playing:
            return
        if update.first == 0 or update.first < len(run.trace):
            self.views.trace.update(run.trace, update.first)
        if update.snapshot is not None:
            self._show_snapshot(update.snapshot)
        usable = run.report is not None and bool(run.report.arrays)  # otherwise there is no model
        if update.results is not None:
            self._show_results(run, update.results)
            self.layout.reveal(True, explored=False)
        if update.finished and run.report is not None and usable and run.state.usable:
            self._show_results(run, run.report)
            for explore in self.views.applicable(run, self.views.explore):
                explore.open(run)
            trained = float(run.trace.seconds[-1]) if len(run.trace) else None
            self.layout.show_verdict(card(run.report, trained))
            self.layout.reveal(True)
            self.list.refresh()
        self.everything.show(run)
        if run.state.final:
            self.replay.offer(run, partial(self.service.store.snapshots, run.id))
            self._update_exports()
        self.layout.note(run.notes)
        self.layout.show_limits(run.report.limits if run.report is not None else ())
        # Together with the bar's figures, so that the whole page shows the same step.
        begins = update.snapshot is not None and update.snapshot.step == 0
        if fresh or begins or update.finished or run.state.still:
            self.read(at_once=True)
        if update.number % ACKNOWLEDGED_EVERY == 0:
            self.bar.status.sent = update.number  # last, so that it is drawn after the rest

    def _show_results(self, run: RunState, report: Report) -> None:
        for result in self.views.applicable(run, self.views.result):
            result.update(report, run.metadata)

    def _show_snapshot(self, snapshot: Snapshot) -> None:
        if self.run is not None:
            for view in self.views.applicable(self.run, self.views.live):
                view.update(snapshot, self.run.metadata)

    def show_recorded(self, step: int | None, snapshot: Snapshot | None, first: int) -> None:
        """Show the run as of `step`; None shows its end."""
        run = self.run
        if run is None:
            return
        if step is None:
            self.watcher.follow(run.id)
            self.watcher.flush()
            return
        self.views.trace.update(run.trace.upto(step), first)
        if snapshot is not None:
            self._show_snapshot(snapshot)
        replaying = tr("replaying a recording, step {step} of {total}", step=step, total=run.step)
        self.bar.say(replaying, "calm")
        self.read(at_once=not self.replay.moving)

    def read(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._read_at >= SAY_EVERY:
            self._read_at = now
            for figure in self.figures.values():
                figure.read()

    # --- actions of the visitor ---

    def _open_linked_run(self) -> None:
        """Open the run of the link, or else the demonstration."""
        query = self.visit.query
        settings = {k: v for k, v in query.items() if k not in OWN_PARAMETERS}
        run = query.get("run") or f"demo-{self.entry.name}"
        try:
            self.open(run, opening=query.get("live") == "over")  # Train was pressed a moment ago
        except NotFound as error:
            self.form.fill(self._start)
            self.bar.show(None, may_steer=False)
            if "run" in query or run in self.service.store.damaged:
                self.say(str(error), "error")
        warnings = [*self.lesson.warnings]
        if query.get("data") and "run" not in query:
            self.data.show(query["data"])
        if self.lesson.preset or (settings and "run" not in query):
            start = self.entry.presets.get(self.lesson.preset, self._start)
            warnings += self.form.fill_from_query(settings, start)
        self.layout.warn(warnings)
        if query.get("compare"):
            self.list.tick(query["compare"].split(","))
        if query.get("file"):
            try:
                self.data.upload.bring(query["file"])
            except NotFound as error:
                self.say(str(error), "warning")

    def _on_load(self) -> None:
        self.watcher.up = True
        self.watcher.schedule_update()
        self.service.prefetch_demo(self.entry.name)

    def start_of(self, data: str) -> Mapping[str, Any]:
        """Return the settings from which the form starts for these data.

        A model of a visitor's table predicts other tables, so it is also fitted to all rows.
        """
        if self.entry.offers(data):
            return self.entry.start(data)
        return self.entry.settings.for_predictions

    def _data_chosen(self) -> None:
        """Adapt settings that still have their defaults to the chosen data."""
        start = self.start_of(self.data.value)
        self.form.start_from(self._start, start)
        self._start = start
        sources = self.entry.sources
        own = next((s.scarcity for s in sources if s.name == self.data.value), "")
        self.form.show_scarcity(own)

    def _train(self) -> None:
        if self.visit.site.fault:
            self._say_not_started(self.visit.site.fault)
            return
        try:
            values = self.form.read()
        except BadInput as error:
            self._say_not_started(str(error))
            return
        if missing_data := self.data.missing_data:
            self._say_not_started(missing_data)
            return
        self.say("")
        self.replay.pause()  # it would overwrite the figures of the new run
        self.bar.begin()
        self.background(
            self.submit(values, self.data.value), self._submitted, refused=self._not_started
        )

    def _not_started(self, sentence: str) -> None:
        self.bar.show(self.run, self.may_steer)
        self._say_not_started(sentence)

    def _say_not_started(self, reason: str) -> None:
        self.bar.say(tr("not started: {reason}", reason=translated(reason)), "bad")

    def _try_demonstration(self) -> None:
        """Train the demonstration with its default settings."""
        self.data.try_demonstration()
        self.form.fill(self.entry.start())
        self._train()

    def submit(self, values: Mapping[str, Any], data: str) -> Coroutine[Any, Any, str]:
        """Submit a new run of this study for the visitor; return its id.

        The participants of a lesson share equal runs if the workers are busy.
        """
        visit, shared = self.visit, bool(self.lesson.presenter) and self.entry.offers(data)
        submit = self.service.join if shared else self.service.submit
        return submit(
            self.entry.name, values, data, visit.owner,
            address=visit.address, presenter=self.lesson.presenter,
        )  # fmt: skip

    def train_variant(self, changed: Mapping[str, Any]) -> None:
        before = self.run
        if before is None:
            return

        def submitted(run: str) -> None:
            self._submitted(run)
            self.list.tick([before.id, run])
            self.say(tr("This run trains beside the previous one; the section Runs compares them."))

        self.background(
            self.submit({**before.record.settings, **changed}, before.record.data), submitted
        )

    def _submitted(self, run: str) -> None:
        self.open(run, opening=True)
        self.address()
        self.list.refresh()
        if self.run is not None and not self.owns_run:
            self.say(
                tr("Others in this lesson train with the same settings: you all watch one run.")
            )

    def address(self) -> None:
        if pn.state.location is not None and self.run is not None:
            settings = self.entry.settings.parse(self.run.record.settings)
            parameters = {"run": self.run.id, **self.entry.link(self.run.record.data, settings)}
            parameters |= self.lesson.query()
            if self.present:
                parameters["present"] = "1"
            if self.room.code:
                parameters["room"] = self.room.code
            pn.state.location.search = "?" + urlencode(parameters)

    def _pause(self) -> None:
        self._request(State.PAUSING, "pause")

    def _resume(self) -> None:
        self._request(State.QUEUED, "resume")

    def _stop(self) -> None:
        self._request(State.STOPPING, "stop")

    def _request(self, state: State, verb: str) -> None:
        if self.run is None:
            return
        self.bar.say(requested(state, self.run.step))
        act = getattr(self.service, verb)  # checks permission
        self.background(act(self.run.id, self.visit.owner), lambda _: None, self._not_steered)

    def _not_steered(self, sentence: str) -> None:
        self.bar.show(self.run, self.may_steer)
        self.say(sentence, "error")

    def _busy(self, more: int) -> None:
        self._asking += more
        self.layout.asking(self._asking > 0)

    def _figure(self, view: Any) -> Figure:
        titles = [title for title, _ in self.steps]
        step = titles.index(view.title) if view.title in titles else None
        say = dict(self.steps).get(view.title, "") if self.present else ""
        withheld = partial(self._withheld, view.title)
        moves = view in (self.views.trace, *self.views.live)
        return Figure(view, view.title in self.views.full_width, step, say, moves, withheld)

    def _withheld(self, title: str) -> bool:
        """Whether the caption of a figure answers an open question."""
        training = self.run is not None and not self.run.state.final
        return any(question.withholds(title, training) for question in self.room.questions)
