"""Train, Pause, Resume, Stop, and how the run is doing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui

from scant.events import State
from scant_dashboard.controls.status import StatusLine, reading
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import style

_BAR = """
:host { display: grid !important; grid-template-columns: auto minmax(0, 1fr);
  gap: 8px 28px; align-items: center; }
:host > * { width: auto !important; }
@media (max-width: 700px) { :host { grid-template-columns: minmax(0, 1fr); } }
"""
GOING = (State.QUEUED, State.STARTING, State.RUNNING)
SAY_EVERY = 2.0  # seconds, so that figures can be read; captions change with them


class RunBar:
    """The bar at the top of a study's page.

    Args:
        train: Called without arguments, on the session's document, as are the other three.
        pause: Pauses the run on show.
        resume: Lets it go on.
        stop: Ends it.
        beside: Further buttons by their labels, offered where Train is.
        page: The study's title, for the browser's tab.
    """

    def __init__(
        self,
        train: Callable[[], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
        stop: Callable[[], None],
        beside: Mapping[str, Callable[[], None]] | None = None,
        page: str = "",
    ) -> None:
        self._said_at = 0.0
        self.status = StatusLine(
            page=page,
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
        self.beside = {label: _plain(label, act) for label, act in (beside or {}).items()}
        buttons = pn.FlexBox(
            *self.buttons.values(), *self.beside.values(), margin=0, gap="8px 10px",
            sizing_mode=None,
        )  # fmt: skip
        self.panel = column(buttons, self.status, name="steered", css=_BAR)
        self.show(None, may_steer=False)

    def show(self, run: RunState | None, may_steer: bool) -> bool:
        """Show how `run` stands; who may not steer it is not offered to pause and stop it.

        Returns:
            Whether its figures are shown as they are now: once in a while, and at a new state.
        """
        fresh = self._say(reading(run))
        state = run.state if run is not None and may_steer else None
        self._offer(
            Train=state not in (*GOING, State.PAUSING, State.STOPPING),
            Pause=state in GOING,
            Resume=state is State.PAUSED,
            Stop=state in (*GOING, State.PAUSING, State.PAUSED),
        )
        return fresh

    def _say(self, shown: dict[str, Any]) -> bool:
        same = all(shown[k] == self.status.shown.get(k) for k in ("text", "tone"))
        now = time.monotonic()
        if same and now - self._said_at < SAY_EVERY:
            return False
        self._said_at = now
        self.status.shown = shown
        return True

    def say(self, text: str, tone: str = "live") -> None:
        """Answer a click at once, before the run itself has said anything."""
        self.status.shown = {**self.status.shown, "text": text, "tone": tone}

    def _offer(self, **offered: bool) -> None:
        for name, button in self.buttons.items():
            if button.visible != offered[name]:
                button.visible = offered[name]
        for button in self.beside.values():
            if button.visible != offered["Train"]:
                button.visible = offered["Train"]


def _plain(label: str, act: Callable[[], None]) -> pmui.Button:
    """A button that needs no answer in the status line."""
    return pmui.Button(label=label, on_click=lambda _: act(), variant="outlined", color="primary",
                       size="medium", margin=0, sx={"whiteSpace": "nowrap"})  # fmt: skip


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
