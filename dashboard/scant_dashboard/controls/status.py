"""Status of a run: a live region for screen readers, and numbers next to it."""

from __future__ import annotations

import html
import math
from typing import Any

import param
from panel.custom import JSComponent

from scant.events import State
from scant_dashboard.engine_text import translated
from scant_dashboard.live.run_state import RunState
from scant_dashboard.translate import later, ntr, tr

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


NAMES = {
    State.QUEUED: later("queued"),
    State.STARTING: later("starting"),
    State.RUNNING: later("running"),
    State.PAUSING: later("pausing"),
    State.PAUSED: later("paused"),
    State.STOPPING: later("stopping"),
    State.STOPPED: later("stopped"),
    State.CONVERGED: later("converged"),
    State.FINISHED: later("finished"),
    State.LEARNED_NOTHING: later("learned nothing"),
    State.HIT_LIMIT: later("limit reached"),
    State.DIVERGED: later("diverged"),
    State.FAILED: later("failed"),
}


class StatusLine(JSComponent):
    """State, reason and progress of the current run.

    The status region holds state and reason and changes rarely; figures that change at every step
    stand outside it, so that screen readers do not announce them. A click on a button is
    acknowledged in the browser, by the event `scant-pressed`, because the server may be slow to
    respond. The title of the browser's tab shows the state and the study. The last property of an
    update is its number (`sent`); the browser returns it (`drawn`), which shows that it keeps up.
    """

    shown = param.Dict(default={})
    page = param.String("")  # the study's title, or the name of a run
    sent = param.Integer(0)  # number of the latest update that the browser is to acknowledge
    drawn = param.Integer(0)  # number of the latest update that it has drawn

    def still(self) -> str:
        """Return the static markup for a page without scripts."""
        status = self.shown
        facts = "".join(
            f"<div><dt>{html.escape(str(name))}</dt><dd>{html.escape(str(value))}</dd></div>"
            for name, value in status.get("facts", ())
        )
        return (
            f"<div class='line' data-tone='{status.get('tone', 'calm')}'><div class='said'>"
            "<span class='dot' aria-hidden='true'></span>"
            f"<div role='status'>{html.escape(status.get('text', ''))}</div></div>"
            f"<dl>{facts}</dl><div class='progress' aria-hidden='true'>"
            f"<i style='width:{100 * float(status.get('fraction', 0)):.0f}%'></i></div></div>"
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
      window.addEventListener('scant-pressed', ({detail}) => {
        status.textContent = detail.text
        if (!detail.begins) return // else the numbers are of the run before
        facts.replaceChildren()
        root.querySelector('i').style.width = 0
      })
      model.on('shown', draw)
      model.on('sent', () => {
        const number = model.sent
        // What lies under a static page (takeover.js) nobody has seen yet.
        const answer = () => {
          if (document.getElementById('still')) setTimeout(answer, 50)
          else model.drawn = number
        }
        // Browsers do not draw hidden pages, so there is nothing to wait for.
        if (document.hidden) answer()
        else requestAnimationFrame(() => setTimeout(answer))
      })
      draw()
    }
    """


def reading(run: RunState | None) -> dict[str, Any]:
    """Return the `StatusLine.shown` of a run."""
    if run is None:
        return {"text": tr("no run yet: press Train"), "tone": "calm", "facts": [], "fraction": 0}
    live = run.state in (State.STARTING, State.RUNNING, State.PAUSING, State.STOPPING)
    return {
        "state": "" if run.recorded else tr(NAMES[run.state]),
        "text": sentence(run),
        "tone": TONES.get(run.state, "live" if live else "calm"),
        "facts": _facts(run),
        "fraction": _fraction(run),
    }


def _fraction(run: RunState) -> float:
    """Return the progress of training, or of the phase after it."""
    if run.state.usable:
        return 1.0
    if run.phase is not None:
        return run.phase.done / (run.phase.total or 1)
    return run.step / run.total_steps if run.total_steps else 0.0


def sentence(run: RunState) -> str:
    """Return state and reason as a sentence that begins with the state."""
    named = tr(NAMES[run.state])
    sentence = tr("{state} (recorded run)", state=named) if run.recorded else named
    if run.state is State.QUEUED:
        if run.position is not None:
            sentence = tr("{state}, place {place}", state=sentence, place=run.position)
        if run.wait is not None:
            time = duration(run.wait)
            sentence = tr("{state}, starts within about {time}", state=sentence, time=time)
        if run.position is None and not run.reason:
            sentence = tr("{state}: waiting for a worker", state=sentence)  # as a server starts
    elif run.state is State.STARTING:
        sentence = tr("{state}: a worker is preparing the data", state=sentence)
    elif run.state is State.RUNNING and run.phase is not None:
        phase = ", ".join(map(translated, run.phase.sentence.split(", ")))
        return f"{sentence}: {phase}"
    elif run.state in (State.PAUSING, State.STOPPING):
        sentence = requested(run.state, run.step)
    if not run.reason:
        return sentence
    reason = translated(run.reason)
    if reason == run.reason and reason[:2].istitle():  # English, and not an abbreviation
        reason = reason[0].lower() + reason[1:]
    if reason.startswith(f"{named} "):  # "paused at its last checkpoint"
        return sentence + reason.removeprefix(named)
    return f"{sentence}: {reason}"


def requested(state: State, step: int) -> str:
    """Return the sentence on a run that is to pause or stop, or to go on."""
    if not step or state is State.QUEUED:
        return tr(NAMES[state])
    return tr("{state} after step {step:,}", state=tr(NAMES[state]), step=step)


def _ended(run: RunState) -> bool:
    """Whether training has ended but the result is not available yet."""
    return run.phase is not None or (run.state is State.RUNNING and bool(run.reason))


def _facts(run: RunState) -> list[list[str]]:
    if not run.total_steps and not run.step:
        return []
    steps = tr("{step:,} of {total:,}", step=run.step, total=run.total_steps)
    facts = [[tr("step"), steps]]
    if math.isfinite(run.pace):
        facts.append([tr("time per step"), duration(run.pace)])
        if run.state is State.RUNNING and not _ended(run):
            facts.append([tr("time left, at most"), duration(run.remaining)])
    if len(run.trace):
        facts.append([tr("objective"), number(run.trace.elbo[-1])])
        best = run.trace.best[-1]
        shown = number(best) if math.isfinite(best) else tr("none yet")
        facts.append([tr("best score"), shown])
    if run.device:
        threads = int(run.metadata.get("threads", 0))
        device = run.device
        if threads:
            device = ntr("{device}, {n} thread", "{device}, {n} threads", threads, device=device)
        facts.append([tr("device"), device])
    return facts


def number(value: float) -> str:
    """Format with four significant digits and a true minus sign."""
    if not math.isfinite(value):
        return tr("not finite")
    return tr("{value:.4g}", value=value).replace("-", "\u2212")


def duration(seconds: float) -> str:
    """Format a duration with a suitable unit."""
    if seconds < 0.9995:
        return tr("{n:.0f} ms", n=1000 * seconds)
    if seconds < 9.95:
        return tr("{n:.1f} s", n=seconds)
    if seconds < 99.5:
        return tr("{n:.0f} s", n=seconds)
    if seconds < 5400:
        return tr("{n:.0f} min", n=seconds / 60)
    return tr("{n:.1f} h", n=seconds / 3600)
