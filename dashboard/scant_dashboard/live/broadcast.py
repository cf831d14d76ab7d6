"""The newest points of a curve that many watch: one message, made once, for all their browsers.

An update of a session costs Bokeh and Panel some milliseconds, most of them for finding out what
has changed and putting it into words, and for forty sessions the words are the same. So between
two full updates a crowd is only told the new points, in a message that goes out as it is; the page
draws them after the curve (`assets/page.js`) until an update has made them part of it.
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

NEWEST = 500  # points at most; more come with the next full update


def newest(trace: TraceBuffer, first: int) -> Message[Any]:
    """The points of `trace` from `first` on, as a message to any browser."""
    first = max(first, len(trace) - NEWEST)
    columns = rows(trace.step, trace.elbo, trace.score, trace.restart, first)
    message = {name: [_number(v) for v in values] for name, values in columns.items()}
    return Protocol().create("PATCH-DOC", [MessageSentEvent(Document(), "scant_news", message)])


def _number(value: np.floating[Any]) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
