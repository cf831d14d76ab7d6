"""Train, Pause, Resume, Stop, and how the run is doing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
from scant.dashboard.controls.status import StatusLine, reading
from scant.dashboard.frame.template import style
from scant.dashboard.live.run_state import RunState
from scant.dashboard.study_page.widgets import column
from scant.events import State

_BAR = """
:host { display: grid !important; grid-template-columns: auto minmax(0, 1fr);
  gap: 8px 28px; align-items: center; }
:host > * { width: auto !important; }
@media (max-width: 700px) { :host { grid-template-columns: minmax(0, 1fr); } }
"""
GOING = (State.QUEUED, State.STARTING, State.RUNNING)
SAY_EVERY = 1.0  # seconds; forty watchers' servers have better things to do than to count steps


class RunBar:
    """The bar at the top of a study's page.

    The four callbacks are called without arguments, on the session's document.
    """

    def __init__(
        self,
        train: Callable[[], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        self._said_at = 0.0
        self.status = StatusLine(
            shown=reading(None),
            stylesheets=[style("status")],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.buttons = {
            "Train": _button("Train", train, "queued: sending the settings", "contained"),
            "Pause": _button("Pause", pause, "pausing"),
            "Resume": _button("Resume", resume, "queued", "contained"),
            "Stop": _button("Stop", stop, "stopping"),
        }
        buttons = pn.Row(*self.buttons.values(), margin=0, stylesheets=[":host { gap: 10px; }"])
        self.panel = column(buttons, self.status, css=_BAR)
        self.show(None, may_steer=False)

    def show(self, run: RunState | None, may_steer: bool) -> None:
        """Show how `run` stands; who may not steer it is not offered to pause and stop it."""
        self._say(reading(run))
        state = run.state if run is not None and may_steer else None
        self._offer(
            Train=state not in (*GOING, State.PAUSING, State.STOPPING),
            Pause=state in GOING,
            Resume=state is State.PAUSED,
            Stop=state in (*GOING, State.PAUSING, State.PAUSED),
        )

    def _say(self, shown: dict[str, Any]) -> None:
        """Figures that change with every step are shown once a second, a new state at once."""
        same = all(shown[k] == self.status.shown.get(k) for k in ("text", "tone"))
        now = time.monotonic()
        if not same or now - self._said_at >= SAY_EVERY:
            self._said_at = now
            self.status.shown = shown

    def say(self, text: str, tone: str = "live") -> None:
        """Answer a click at once, before the run itself has said anything."""
        self.status.shown = {**self.status.shown, "text": text, "tone": tone}

    def _offer(self, **offered: bool) -> None:
        for name, button in self.buttons.items():
            if button.visible != offered[name]:
                button.visible = offered[name]


def _button(
    label: str, act: Callable[[], None], answer: str, variant: str = "outlined"
) -> pmui.Button:
    """A button that the status line answers at once, and the server as soon as it can."""

    def clicked(_: Any) -> None:
        act()

    button = pmui.Button(
        label=label, on_click=clicked, variant=variant, color="primary", size="medium", margin=0
    )
    message = f"window.dispatchEvent(new CustomEvent('scant-pressed', {{detail: {answer!r}}}))"
    button.js_on_click(code=message)
    return button
