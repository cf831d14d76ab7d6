"""The status of a run: one live region for screen readers, and figures beside it."""

from __future__ import annotations

import html
import math
from typing import Any

import param
from panel.custom import JSComponent

from scant.events import TRAINING_ENDED, State
from scant_dashboard.live.run_state import RunState

TONES = {
    State.CONVERGED: "good",
    State.FINISHED: "good",
    State.HIT_LIMIT: "warn",
    State.LEARNED_NOTHING: "bad",
    State.STOPPED: "calm",
    State.PAUSED: "calm",
    State.DIVERGED: "bad",
    State.FAILED: "bad",
}


# A state as the page calls it, where its stored name says too little.
NAMES = {State.HIT_LIMIT: "limit reached"}


class StatusLine(JSComponent):
    """State, reason and progress of the run on show.

    The status region holds the state and a sentence and changes rarely; figures that change with
    every step stand beside it, so that a screen reader is not made to read numbers for a minute.
    A button that was pressed is answered in the browser, by its event `scant-pressed`: the server's
    own answer may have to wait for a page that is being drawn. The browser's tab names the state
    and the study. What comes last in an update is its number (`sent`), so that the browser's answer
    (`drawn`) tells that it keeps up.
    """

    shown = param.Dict(default={})
    page = param.String("")  # the study's title
    sent = param.Integer(0)  # updates of the page, which the browser is asked about once in a while
    drawn = param.Integer(0)  # the last of them that it has drawn

    def still(self) -> str:
        """As markup, for a page without scripts."""
        said = self.shown
        facts = "".join(
            f"<div><dt>{html.escape(str(name))}</dt><dd>{html.escape(str(value))}</dd></div>"
            for name, value in said.get("facts", ())
        )
        return (
            f"<div class='line' data-tone='{said.get('tone', 'calm')}'><div class='said'>"
            "<span class='dot' aria-hidden='true'></span>"
            f"<div role='status'>{html.escape(said.get('text', ''))}</div></div>"
            f"<dl>{facts}</dl><div class='progress' aria-hidden='true'>"
            f"<i style='width:{100 * float(said.get('fraction', 0)):.0f}%'></i></div></div>"
        )

    _esm = """
    export function render({model, el}) {
      const root = document.createElement('div')
      root.className = 'line'
      root.innerHTML = `<div class="said"><span class="dot" aria-hidden="true"></span>
        <div role="status" aria-live="polite" aria-atomic="true"></div></div>
        <dl></dl><div class="progress" aria-hidden="true"><i></i></div>`
      el.append(root)
      const status = root.querySelector('[role=status]')
      const facts = root.querySelector('dl')
      const draw = () => {
        const s = model.shown
        if (model.page) document.title = [s.state, model.page, 'Scant'].filter(Boolean).join(' · ')
        if (s.text !== undefined && status.textContent !== s.text) status.textContent = s.text
        root.dataset.tone = s.tone || 'calm'
        facts.replaceChildren(...(s.facts || []).map(([name, value]) => {
          const pair = document.createElement('div')
          const dt = document.createElement('dt'), dd = document.createElement('dd')
          dt.textContent = name
          dd.textContent = value
          pair.append(dt, dd)
          return pair
        }))
        root.querySelector('i').style.width = `${100 * (s.fraction || 0)}%`
      }
      window.addEventListener('scant-pressed', (press) => { status.textContent = press.detail })
      model.on('shown', draw)
      model.on('sent', () => {
        const number = model.sent
        const answer = () => { model.drawn = number }
        // A page that nobody sees is not drawn, and so has nothing to wait for.
        if (document.hidden) answer()
        else requestAnimationFrame(() => setTimeout(answer))
      })
      draw()
    }
    """


def reading(run: RunState | None) -> dict[str, Any]:
    """What `StatusLine.shown` says of a run."""
    if run is None:
        return {"text": "no run yet: press Train", "tone": "calm", "facts": [], "fraction": 0}
    live = run.state in (State.STARTING, State.RUNNING, State.PAUSING, State.STOPPING)
    return {
        "state": "" if run.recorded else NAMES.get(run.state, run.state.value),
        "text": sentence(run),
        "tone": TONES.get(run.state, "live" if live else "calm"),
        "facts": _facts(run),
        "fraction": 1.0
        if run.state.usable
        else run.step / run.total_steps
        if run.total_steps
        else 0,
    }


def sentence(run: RunState) -> str:
    """State and reason in words; begins with the state."""
    named = NAMES.get(run.state, run.state.value)
    sentence = named + (" (recorded run)" if run.recorded else "")
    if run.state is State.QUEUED:
        if run.place is not None:
            sentence += f", place {run.place}"
        if run.wait is not None:
            sentence += f", starts within about {duration(run.wait)}"
        if run.place is None and not run.reason:
            sentence += ": waiting for a worker"  # the first seconds of a server, mostly
    elif run.state is State.STARTING:
        sentence += ": a worker is preparing the data"
    elif _ended(run):
        sentence += ": training has ended; the report is being made"
    elif run.state in (State.PAUSING, State.STOPPING):
        sentence += f" after step {run.step}"
    if not run.reason:
        return sentence
    reason = run.reason
    if reason[:2].istitle():  # not where it begins with an abbreviation
        reason = reason[0].lower() + reason[1:]
    if reason.startswith(f"{run.state.value} "):  # "paused at its last checkpoint"
        return sentence + reason.removeprefix(run.state.value)
    return f"{sentence}: {reason}"


def _ended(run: RunState) -> bool:
    """Whether a run takes no more steps, though its result is not there yet."""
    return run.state is State.RUNNING and bool(run.notes) and run.notes[-1] == TRAINING_ENDED


def _facts(run: RunState) -> list[list[str]]:
    if not run.total_steps and not run.step:
        return []
    facts = [["step", f"{run.step:,} of {run.total_steps:,}".replace(",", "\u202f")]]
    if math.isfinite(run.pace):
        facts.append(["time per step", duration(run.pace)])
        if run.state is State.RUNNING and not _ended(run):
            facts.append(["time left, at most", duration(run.remaining)])
    if len(run.trace):
        facts.append(["objective", number(run.trace.elbo[-1])])
        best = run.trace.best[-1]
        facts.append(["best score", number(best) if math.isfinite(best) else "none yet"])
    if run.device:
        threads = int(run.metadata.get("threads", 0))
        many = f", {threads} {'thread' if threads == 1 else 'threads'}" if threads else ""
        facts.append(["device", run.device + many])
    return facts


def number(value: float) -> str:
    """Four figures, with a true minus sign."""
    return f"{value:.4g}".replace("-", "\u2212") if math.isfinite(value) else "not finite"


def duration(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
