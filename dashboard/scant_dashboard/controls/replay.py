"""Replay of a finished run from its stored events, marked as a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document

from scant.events import Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.template import text
from scant_dashboard.translate import tr

FRAME = 200  # milliseconds
SECONDS = 10.0  # duration of a replay, whatever the length of the run


class Replay:
    """A button that opens a player over the run's steps.

    `show(step, snapshot, first)` is called on the document with the run's state at `step`: the
    snapshot if it has changed (None: unchanged), and the number `first` of curve points already
    drawn. `show(None, None, 0)` returns to the end of the run.
    """

    def __init__(
        self, doc: Document, show: Callable[[int | None, Snapshot | None, int], None]
    ) -> None:
        self._doc, self._show = doc, show
        self._run: RunState | None = None
        self._snapshots: Sequence[Snapshot] = ()
        self._n_shown, self._at = 0, -1
        self._timer: Any = None
        self.playing = False
        self._start = _button(tr("Replay"), self._begin, "text")
        self._toggle = _button(tr("Pause replay"), self._toggle_play, "outlined")
        self._leave = _button(tr("End replay"), self._end, "text")
        self._slider = pmui.IntSlider(
            label=tr("Step of the recording"),
            start=0,
            end=1,
            sizing_mode="stretch_width",
            min_width=200,
            margin=(0, 12),
            styles={"flex": "1 1 200px"},
        )
        self._slider.param.watch(lambda event: self._seek(event.new), "value")
        self._scrubber = pn.FlexBox(
            text(f"<span class='recorded'>{tr('Recorded')}</span>", sizing_mode=None),
            self._toggle, self._slider, self._leave,
            align_items="center", gap="8px", margin=0,
            sizing_mode="stretch_width", visible=False,
        )  # fmt: skip
        self.panel = pn.Column(
            self._start, self._scrubber, margin=0, sizing_mode="stretch_width", visible=False,
            css_classes=["replay"],
        )  # fmt: skip

    @property
    def moving(self) -> bool:
        """Whether the replay is playing."""
        return self._timer is not None

    def offer(self, run: RunState, load: Callable[[], Sequence[Snapshot]]) -> None:
        """Offer to replay a finished run; `load` reads its snapshots on demand."""
        self._run, self._load = run, load
        self.panel.visible = len(run.trace) > 1

    def close(self) -> None:
        """Withdraw the offer because another run is shown."""
        self.pause()
        self._unfold(False)
        self.panel.visible = False

    def _begin(self) -> None:
        run = self._run
        if run is None:
            return
        self._snapshots = self._load()
        self._n_shown, self._at = 0, -1
        first = int(run.trace.step[0])
        self._slider.param.update(start=first, end=run.step, value=first)
        self._unfold(True)
        self._seek(first)
        self._play()

    def _end(self) -> None:
        self.pause()
        self._unfold(False)
        self._show(None, None, 0)

    def _unfold(self, playing: bool) -> None:
        self.playing = playing
        self.panel.css_classes = ["replay", "playing"] if playing else ["replay"]
        self._start.visible, self._scrubber.visible = not playing, playing

    def _toggle_play(self) -> None:
        if self._timer is None:
            if self._slider.value >= self._slider.end:
                self._slider.value = self._slider.start
            self._play()
        else:
            self.pause()
            self._seek(self._slider.value)

    def _play(self) -> None:
        self._timer = self._doc.add_periodic_callback(self._frame, FRAME)
        self._toggle.label = tr("Pause replay")

    def pause(self) -> None:
        """Pause the replay."""
        if self._timer is not None:
            self._doc.remove_periodic_callback(self._timer)
            self._timer = None
        self._toggle.label = tr("Resume replay")

    def _frame(self) -> None:
        stride = (self._slider.end - self._slider.start) * FRAME / 1000 / SECONDS
        step = min(self._slider.end, self._slider.value + max(1, round(stride)))
        if step == self._slider.end:
            self.pause()
        self._slider.value = step

    def _seek(self, step: int) -> None:
        run = self._run
        if run is None or not self.playing:
            return
        points = int(np.searchsorted(run.trace.step, step, side="right"))
        earlier = [i for i, s in enumerate(self._snapshots) if s.step <= step]
        at = earlier[-1] if earlier else 0
        snapshot = self._snapshots[at] if self._snapshots and at != self._at else None
        first = self._n_shown if points >= self._n_shown else 0
        self._n_shown, self._at = points, at
        with pn.io.hold(self._doc):
            self._show(step, snapshot, first)


def _button(label: str, act: Callable[[], None], variant: str) -> pmui.Button:
    return pmui.Button(
        label=label,
        on_click=lambda _: act(),
        variant=variant,
        size="small",
        margin=0,
        sx={"whiteSpace": "nowrap"} | ({"ml": "-5px", "minWidth": 0} if variant == "text" else {}),
    )
