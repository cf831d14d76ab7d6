"""The views that a study's page file supplies: its contract with `study_page.page`.

`scant_dashboard/pages/<study>.py` has one function, `views(page: PageContext) -> PageViews`, called
once a browser session, before the first paint. It builds that session's own plots (Panel and Bokeh
objects are never shared between sessions) and hands them over; the frame calls them on the
session's document, one batch at a time inside `pn.io.hold`, so that a view may write to its data
sources directly.

The order of calls after a run is opened (a demonstration, a link, a new Train, a replay):

1. `clear(run)` on every view: forget the run shown before; `run` is a `live.RunState`.
2. `trace.update(trace, first)` with `first == 0`, and `update(snapshot, metadata)` on the live
   views, if there are any yet. Later calls bring only what is new: points `first:` of the trace,
   the latest snapshot. `first == 0` again means: start over (a resumed run has voided points, a
   replay rewound).
3. `result.update(report, metadata)` and `explore.open(run)` once the run has ended with a usable
   model. Both are shown by the frame only then.

Views that do not concern a run (`PageViews.hides`) are kept off the page; of the calls above they
hear only `clear`.

`restyle(dark)` is called when the visitor changes between light and dark, and once before the
first paint if dark. What a view does not have (`restyle`, `say`, `alt`…) is left out, it is not an
error.
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
    """Common to all views; each is a small class of `scant_dashboard.plots` or of the page's
    file."""

    title: str  # heading above the figure, set by the frame at the right level (h3)
    alt: str  # the current reading in one sentence; the frame keeps it in the figure's caption
    panel: Viewable  # what is laid out, made once; without a heading and a caption of its own

    def clear(self, run: RunState) -> None:
        """Forget the run shown before; `run` is the one to come."""

    def restyle(self, dark: bool) -> None:
        """Follow the visitor to dark or light."""

    def say(self) -> None:
        """Put `alt` on the figures themselves; called when the caption changes."""


class TraceView(View, Protocol):
    """The objective's curve."""

    def update(self, trace: TraceBuffer, first: int) -> None:
        """Points `first:` are new; `first == 0` means start over."""


class LiveView(View, Protocol):
    """Shows the posterior as it stands."""

    def update(self, snapshot: Snapshot, metadata: Metadata) -> None:
        """Show this snapshot; `metadata` are those of `events.Started`."""


class ResultView(View, Protocol):
    """Shows what a run came to."""

    def update(self, report: Report, metadata: Metadata) -> None:
        """Show this report."""


class ExploreView(View, Protocol):
    """Asks the fitted model on demand; see `PageContext.ask`."""

    def open(self, run: RunState) -> None:
        """The run has ended with a usable model: questions may be asked from now on."""


@dataclass
class PageViews:
    """All that is particular to one study's page.

    Attributes:
        story: Markdown under the page's heading: what is scarce, what the model does about it, what
            to look at. No heading in it; the question of the catalog entry stands above it.
        equations: Markdown with LaTeX, folded away until asked for.
        trace: The objective's curve.
        live: Shown from the first snapshot on, in this order, two a row on wide screens.
        wide: Titles of the views that take a whole row.
        result: Shown once there is a report.
        explore: Shown once there is a usable model.
        above: Stands over the page's heading: links to the pages beside it.
        steps: What the keys of present mode step through: (id of a view's title, what to say).
            Empty: the views in their order.
        hides: Says of a run which titles have nothing to show of it, for a study whose runs are of
            several kinds.
    """

    story: str
    trace: TraceView
    live: Sequence[LiveView] = ()
    result: Sequence[ResultView] = ()
    explore: Sequence[ExploreView] = ()
    equations: str = ""
    wide: frozenset[str] = frozenset()
    above: Viewable | None = None
    steps: Sequence[tuple[str, str]] = field(default_factory=tuple)
    hides: Callable[[RunState], Container[str]] = lambda run: ()

    def every(self) -> list[Any]:
        """All views, from the top of the page down."""
        return [self.trace, *self.live, *self.result, *self.explore]

    def shown(self, run: RunState, views: Sequence[Any] | None = None) -> list[Any]:
        """Those of `views` (without: of all) that concern this run."""
        hidden = self.hides(run)
        return [v for v in (self.every() if views is None else views) if v.title not in hidden]
