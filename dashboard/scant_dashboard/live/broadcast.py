"""The newest points of a curve as one message for many browsers.

An update of a session takes Bokeh and Panel some milliseconds, mostly to detect and serialize the
changes, although the result is the same for every session of a run. Therefore, if many sessions
watch a run, they receive only the new points between full updates, in one message serialized once.
The page draws them after the curve (`assets/page.js`) until the next full update includes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.document.events import MessageSentEvent
from bokeh.protocol import Protocol
from bokeh.protocol.message import Message

from scant_dashboard.live.decimate import rows
from scant_dashboard.live.run_state import TraceBuffer

NEWEST = 500  # maximum number of points; the next full update has all


def newest(trace: TraceBuffer, first: int) -> Message[Any]:
    """Return the points of `trace` from `first` on, as a message to any browser."""
    first = max(first, len(trace) - NEWEST)
    columns = rows(trace.step, trace.elbo, trace.score, trace.restart, first)
    message = {name: [_number(v) for v in values] for name, values in columns.items()}
    return Protocol().create("PATCH-DOC", [MessageSentEvent(Document(), "scant_news", message)])


def _number(value: np.floating[Any]) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
