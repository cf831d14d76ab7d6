"""Buttons Train, Pause, Resume and Stop, with the status of the run."""

from __future__ import annotations

import json
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
from scant_dashboard.translate import later, tr

_BAR = """
:host { display: grid !important; grid-template-columns: auto minmax(0, 1fr);
  gap: 8px 28px; align-items: center; }
:host > * { width: auto !important; }
@media (max-width: 700px) { :host { grid-template-columns: minmax(0, 1fr); } }
"""
GOING = (State.QUEUED, State.STARTING, State.RUNNING)
SENDING = later("queued: sending the settings")
SAY_EVERY = 2.0  # seconds between updates of figures and captions, so that they can be read


class RunBar:
    """The bar at the top of a study's page.

    Callbacks are called without arguments on the session's document.

    Args:
        train: Starts a run.
        pause: Pauses the current run.
        resume: Resumes it.
        stop: Stops it.
        extra: Callbacks of further buttons by label; they are offered together with Train.
        page: The study's title, for the browser's tab; that of an own run has the run's name.
    """

    def __init__(
        self,
        train: Callable[[], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
        stop: Callable[[], None],
        extra: Mapping[str, Callable[[], None]] | None = None,
        page: str = "",
    ) -> None:
        self._updated_at, self._page = 0.0, page
        self.status = StatusLine(
            page=page,
            shown=reading(None),
            stylesheets=[style("status")],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.buttons = {
            "Train": _button(later("Train"), train, SENDING, "contained", begins=True),
            "Pause": _button(later("Pause"), pause, "pausing"),
            "Resume": _button(later("Resume"), resume, "queued", "contained"),
            "Stop": _button(later("Stop"), stop, "stopping"),
        }
        self.extra = {label: _plain_button(label, act) for label, act in (extra or {}).items()}
        buttons = pn.FlexBox(
            *self.buttons.values(), *self.extra.values(), margin=0, gap="8px 10px",
            sizing_mode=None,
        )  # fmt: skip
        self.panel = column(buttons, self.status, name="steered", css=_BAR)
        self.show(None, may_steer=False)

    def show(self, run: RunState | None, may_steer: bool) -> bool:
        """Show the status of `run`, with Pause and Stop only if the visitor may control it.

        Returns:
            Whether the figures were updated, which happens at most every `SAY_EVERY` seconds and at
            changes of state.
        """
        own = run is not None and run.name and not run.recorded
        self.status.page = run.name if own and run is not None else self._page
        fresh = self._update(reading(run))
        state = run.state if run is not None and may_steer else None
        self._show_buttons(
            Train=state not in (*GOING, State.PAUSING, State.STOPPING),
            Pause=state in GOING,
            Resume=state is State.PAUSED,
            Stop=state in (*GOING, State.PAUSING, State.PAUSED),
        )
        return fresh

    def _update(self, status: dict[str, Any]) -> bool:
        same = all(status[k] == self.status.shown.get(k) for k in ("text", "tone"))
        now = time.monotonic()
        if same and now - self._updated_at < SAY_EVERY:
            return False
        self._updated_at = now
        self.status.shown = status
        return True

    def say(self, text: str, tone: str = "live") -> None:
        """Show `text` immediately after a click, before the run responds."""
        self.status.shown = {**self.status.shown, "text": text, "tone": tone}

    def begin(self) -> None:
        """Show that a run was requested, without the numbers of the run before."""
        self.status.shown = {"text": tr(SENDING), "tone": "live", "facts": [], "fraction": 0}

    def _show_buttons(self, **offered: bool) -> None:
        for name, button in self.buttons.items():
            if button.visible != offered[name]:
                button.visible = offered[name]
        for button in self.extra.values():
            if button.visible != offered["Train"]:
                button.visible = offered["Train"]


def _plain_button(label: str, act: Callable[[], None]) -> pmui.Button:
    """A button without an immediate response in the status line."""
    return pmui.Button(
        label=tr(label), on_click=lambda _: act(), variant="outlined", color="primary",
        size="medium", margin=0, sx={"whiteSpace": "nowrap"},
    )  # fmt: skip


def _button(
    label: str,
    act: Callable[[], None],
    answer: str,
    variant: str = "outlined",
    begins: bool = False,
) -> pmui.Button:
    """A button that updates the status line in the browser before the server responds.

    If it `begins` a run, the numbers of the run before are removed.
    """

    def clicked(_: Any) -> None:
        act()

    button = pmui.Button(
        label=tr(label), on_click=clicked, variant=variant, color="primary", size="medium", margin=0
    )
    detail = json.dumps({"text": tr(answer), "begins": begins})
    message = f"window.dispatchEvent(new CustomEvent('scant-pressed', {{detail: {detail}}}))"
    button.js_on_click(code=message)
    return button
