"""The views that a study's page file supplies: its contract with `study_page.page`.

`scant_dashboard/pages/<study>.py` has one function, `views(page: PageContext) -> PageViews`, called
once per browser session, before the first paint. It builds that session's own plots (Panel and
Bokeh objects are never shared between sessions). The frame calls the views on the session's
document, one batch at a time inside `pn.io.hold`, so that a view may write to its data sources
directly.

The order of calls after a run is opened (a demonstration, a link, a new Train, a replay):

1. `clear(run)` on every view: discard the previous run; `run` is a `live.RunState`.
2. `trace.update(trace, first)` with `first == 0`, and `update(snapshot, metadata)` on the live
   views, if there is a snapshot yet. Later calls bring only news: points `first:` of the trace,
   the latest snapshot. `first == 0` again means: start over (a resumed run has voided points, or
   a replay was rewound).
3. `result.update(report, metadata)` and `explore.open(run)` once the run has ended with a usable
   model. The frame shows both only then.

Views that do not apply to a run (`PageViews.hides`) are kept off the page; of these calls they
receive only `clear`.

`restyle(dark)` is called when the visitor switches between light and dark, and once before the
first paint if dark. Methods that a view does not need (`restyle`, `say`, `alt`…) may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from panel.viewable import Viewable

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState, TraceBuffer

Metadata = Mapping[str, Any]


class View(Protocol):
    """Interface common to all views, which live in `scant_dashboard.plots` and the page files."""

    title: str  # heading above the figure, rendered by the frame as h3
    alt: str  # text alternative in one sentence; the frame shows it as the caption
    panel: Viewable  # the layout, created once, without heading and caption

    def clear(self, run: RunState) -> None:
        """Discard the previous run; `run` is the next one."""

    def restyle(self, dark: bool) -> None:
        """Switch between dark and light."""

    def say(self) -> None:
        """Put `alt` on the figures; called when the caption changes."""


class TraceView(View, Protocol):
    """The objective's curve."""

    def update(self, trace: TraceBuffer, first: int) -> None:
        """Points `first:` are new; `first == 0` means start over."""


class LiveView(View, Protocol):
    """Shows the current posterior."""

    def update(self, snapshot: Snapshot, metadata: Metadata) -> None:
        """Show this snapshot; `metadata` are those of `events.Started`."""


class ResultView(View, Protocol):
    """Shows the result of a run."""

    def update(self, report: Report, metadata: Metadata) -> None:
        """Show this report."""


class ExploreView(View, Protocol):
    """Queries the fitted model on demand; see `PageContext.ask`."""

    def open(self, run: RunState) -> None:
        """Enable queries: the run has ended with a usable model."""


@dataclass
class PageViews:
    """All that is particular to one study's page.

    Attributes:
        story: Markdown under the page's heading, without a heading of its own. Its first paragraph,
            a list of three lines (what is scarce, what the model does, where to look), is always
            visible; the rest is behind *Read on*.
        equations: Markdown with LaTeX, after the story.
        trace: The objective's curve.
        live: Views shown from the first snapshot on, in this order, two per row on wide screens.
        main: Titles of the live views that are placed beside the curve, of which one applies to a
            run; by default the first.
        full_width: Titles of the views that take a whole row.
        result: Views shown once there is a report.
        explore: Views shown once there is a usable model.
        steps: First steps of present mode: (title of a view, text to show). The other views follow
            in order.
        hides: Returns the titles of the views that do not apply to a run, for studies with several
            kinds of runs.
    """

    story: str
    trace: TraceView
    live: Sequence[LiveView] = ()
    result: Sequence[ResultView] = ()
    explore: Sequence[ExploreView] = ()
    equations: str = ""
    main: frozenset[str] = frozenset()
    full_width: frozenset[str] = frozenset()
    steps: Sequence[tuple[str, str]] = field(default_factory=tuple)
    hides: Callable[[RunState], Container[str]] = lambda run: ()

    def every(self) -> list[Any]:
        """Return all views, from top to bottom."""
        return [self.trace, *self.live, *self.result, *self.explore]

    def applicable(self, run: RunState, views: Sequence[Any] | None = None) -> list[Any]:
        """Return the views (by default all) that apply to this run."""
        hidden = self.hides(run)
        return [v for v in (self.every() if views is None else views) if v.title not in hidden]
