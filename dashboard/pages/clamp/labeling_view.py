"""The clamp page's labeling widget: label the patch that the model asks for, alone or in two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from html import escape
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import panel_material_ui as pmui
from scant.dashboard.controls.download import download
from scant.dashboard.frame.template import text
from scant.dashboard.live.run_state import RunState
from scant.dashboard.pages.clamp.labeling_session import MODEL, OTHERS, Answer, LabelingSession
from scant.dashboard.plots.base import View
from scant.dashboard.study_page.context import PageContext
from scant.dashboard.study_page.widgets import stacked
from scant.events import Report, Snapshot
from scant.html_table import html_table
from scant.store.label_agreement import by_labeler, kappa
from scant.store.records import Label

INVITE = (
    "<p>A simulated expert answers in this run. Take its place to start your own session on the "
    "same patches; it opens in a few seconds.</p>"
)
PREPARING = "The patches are being prepared; labeling starts in a few seconds."
HELP = (
    "<p class='quiet'>Keys: <b>1</b> and <b>2</b> label, <b>s</b> skips, <b>u</b> undoes the last "
    "label. Each label is stored before the next patch appears. Everyone with this page's link can"
    " label; skipped patches return when the page is reloaded.</p>"
)


class LabelingView(View):
    """The labeling widget, and for a run with a simulated expert the way to one.

    It stands among the live views because it is what a session is about, but opens only with
    `Labels.open`, once the model can be asked.

    Args:
        page: The page that it stands on.
        on_answer: Called with the model's answer and the labels that it was told.
    """

    title = "Label"
    figures: tuple[Any, ...] = ()

    def __init__(
        self, page: PageContext, on_answer: Callable[[Answer, Mapping[int, Label]], None]
    ) -> None:
        self._page = page
        self.changed: Callable[[], None] = lambda: None
        self.session = LabelingSession(page, on_answer, self._changed)
        self._run: RunState | None = None
        self.invite = pmui.Button(label="Label these patches yourself", margin=0, visible=False)
        self.invite.on_click(lambda _: self._begin())
        self.prompt = text("")
        self.of = pmui.RadioButtonGroup(options=[MODEL, OTHERS], value=MODEL, size="small",
                                        label="Ask me", margin=0, visible=False)  # fmt: skip
        self.of.param.watch(lambda _: self.session.choose(str(self.of.value)), "value")
        # In a column of its own: the widget's style sheet has it shown whatever `visible` says.
        self.room = pn.Column(
            self.session.widget, sizing_mode="stretch_width", margin=0, visible=False
        )
        self.panel = stacked(self.prompt, self.invite, self.of, self.room)

    @property
    def alt(self) -> str:
        run = self.session.run
        if run is None:
            return ""
        stand = self.session.standing.values()
        counts = [sum(v.label == c for v in stand) for c in run.metadata["classes"]]
        each = ", ".join(f"{n} {c}" for n, c in zip(counts, run.metadata["classes"]))
        skipped = f"; {self.session.skipped} skipped" if self.session.skipped else ""
        advice = self.session.answer.get("advice")
        hint = f" {np.ravel(advice)[0]}" if advice is not None and len(stand) else ""
        many = len(self.session.answer.get("p", ())) or run.metadata["rows"]["pool"]
        return f"{len(stand)} of {many:,} patches labeled: {each}{skipped}.{hint}"

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """A run that still prepares has nothing to label yet."""

    def open(self, run: RunState) -> None:
        """Open the widget: the run can be asked."""
        self.prompt.object = HELP
        self.of.visible = self.room.visible = True
        self.session.open(run)

    def clear(self, run: RunState) -> None:
        """Forget the run shown before; invite to a session where this one needs no person."""
        self.session.close()
        self._run = run
        self.room.visible = self.of.visible = False
        self.of.value = MODEL
        yours = run.record.settings["expert"] == "you"
        self.invite.visible = not yours
        self.prompt.object = f"<p class='quiet'>{PREPARING}</p>" if yours else INVITE

    def _begin(self) -> None:
        """Prepare a session of the visitor's own on the data and settings on show."""
        run = self._run
        assert run is not None, "there is a button only beside a run"
        self.invite.disabled = True
        values = {**run.record.settings, "expert": "you"}

        def opened(new: str) -> None:
            self._page.open(new)
            self._page.address()

        self._page.background(
            self._page.submit(values, run.record.data), opened,
            last=lambda: setattr(self.invite, "disabled", False),
        )  # fmt: skip

    def _changed(self) -> None:
        self.changed()
        self._page.read(at_once=True)


class Labels(View):
    """What the labels come to: who gave how many, how far they agree, and the files to keep."""

    title = "The labels"
    figures: tuple[Any, ...] = ()

    def __init__(self, page: PageContext, labeling: LabelingView) -> None:
        self._page, self._labeling = page, labeling
        labeling.changed = self._show
        self.alt = ""
        self.table = text("")
        self.files = [
            download(page, label, name, make, disabled=True)
            for label, name, make in (
                ("Labels", "labels.csv", self.labels_csv),
                ("Predictions for the pool", "pool.csv", self.pool_csv),
                ("Model", "model.safetensors", self._model),
            )
        ]
        self.panel = stacked(self.table, pn.FlexBox(*self.files, gap="10px", margin=0))

    def open(self, run: RunState) -> None:
        """The run can be asked: open the widget."""
        self._labeling.open(run)
        for file in self.files:
            file.disabled = False
        self._show()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self.table.object, self.alt = "", ""
        for file in self.files:
            file.disabled = True

    def _show(self) -> None:
        session = self._labeling.session
        if session.run is None:
            return
        classes = [str(c) for c in session.run.metadata["classes"]]
        people = by_labeler(session.labels)
        rows = [
            (escape(who), [str(sum(v == c for v in own.values())) for c in classes])
            for who, own in people.items()
        ]
        self.table.object = (
            html_table([escape(c) for c in classes], rows, "Labeler")
            if people
            else "<p class='quiet'>None yet.</p>"
        )
        self.alt = agreement(people)

    async def _model(self) -> bytes:
        """The model of the labels that stand; `scant.load` reads it, settings.json beside it."""
        session = self._labeling.session
        assert session.run is not None, "files are available once a run is shown"
        classes = [str(c) for c in session.run.metadata["classes"]]
        labels = [[r, classes.index(v.label)] for r, v in session.standing.items()]
        made = await self._page.service.explore(session.run.id, "model", {"labels": labels})
        return np.asarray(made["file"], np.uint8).tobytes()

    def labels_csv(self) -> str:
        """Every label ever given, in order; `stands` says which count."""
        session = self._labeling.session
        stand, at = session.standing, _places(session.run)
        names = ("row", "label", "labeler", "time", "stands")
        given = [
            (at(v.item), v.label, v.labeler, datetime.fromtimestamp(v.created, UTC).isoformat(),
             stand.get(v.item) is v)
            for v in session.labels
        ]  # fmt: skip
        return _csv(pd.DataFrame(given, columns=list(names)))

    def pool_csv(self) -> str:
        """Every row of the pool with its probability by the labels that stand."""
        session = self._labeling.session
        if session.run is None or not session.answer:
            return "row,given,label,probability\n"
        stand, at = session.standing, _places(session.run)
        classes = [str(c) for c in session.run.metadata["classes"]]
        p = np.asarray(session.answer["p"], float)
        given = [stand[i].label if i in stand else "" for i in range(len(p))]
        table = {
            "row": [at(i) for i in range(len(p))],
            "given": given,
            "label": [classes[int(v > 0.5)] for v in p],
            "probability": np.where(p > 0.5, p, 1 - p),
        }
        return _csv(pd.DataFrame(table))


def agreement(people: Mapping[str, Mapping[int, str]]) -> str:
    """How far the two labelers who have most patches in common agree, in words."""
    if len(people) < 2:
        return ""
    pairs = [(kappa(people[a], people[b]), a, b) for a, b in combinations(people, 2)]
    (both, agreed, beyond), a, b = max(pairs, key=lambda pair: pair[0][0])
    if not both:
        return f"{a} and {b} have not labeled the same patches yet."
    message = f"{a} and {b} both labeled {both} patches and agree on {agreed:.0%}"
    return message + (
        f"; beyond chance, Cohen's kappa is {beyond:.2f}." if isfinite(beyond) else "."
    )


def _places(run: RunState | None) -> Callable[[int], int]:
    """From rows of the pool to rows of the table."""
    if run is None or run.report is None or "row" not in run.report.arrays:
        return lambda row: row
    rows = np.asarray(run.report.arrays["row"], int)
    return lambda row: int(rows[row])


def _csv(table: pd.DataFrame) -> str:
    from scant.tables.csv_safety import safe_for_spreadsheet

    return str(safe_for_spreadsheet(table).to_csv(index=False))
