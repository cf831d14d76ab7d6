"""The training objective, and the score that selects the parameters."""

from __future__ import annotations

import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.events import RangesUpdate, Reset
from jaxtyping import Float

from scant_dashboard.live.decimate import LIMIT, rows
from scant_dashboard.live.run_state import RunState, TraceBuffer
from scant_dashboard.plots.base import NOTHING, Plot, columns, empty, encode, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GREEN,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.template import text
from scant_dashboard.translate import as_number, later, tr

WHAT = later("What is this curve?")
MEANING = later(
    "Training raises the objective: how well the model explains the rows that it learns from, in "
    "nats, the unit of the natural logarithm of a probability. It is the log marginal likelihood, "
    "or a bound beneath it (the ELBO, evidence lower bound) where the likelihood is intractable. "
    "Higher is better on the same data; on other data it has another scale. The score says "
    "which step is kept."
)
UNIT = {"x": [0, 1], "y": [0, 1]}  # the range of an empty plot
FIRST_START = later("Step {step}: {values}.")
RESTARTED = later("Restart {n}, step {step}: {values}.")
RECENT = 200  # number of points from which the scatter of estimates is computed


class ElboPlot(Plot):
    """The curve of the objective, with the score, as a page's trace view.

    The plot follows the newest step until the visitor zooms; the Follow button resumes. Non-finite
    values are marked by triangles; each restart begins a new line.

    Args:
        objective: Name of the objective, with its unit.
        score: Name of the score, with its unit.
        title: The heading.
        noisy: Whether the objective is a minibatch estimate of the score; it is then drawn as
            points around the score's line.
    """

    def __init__(
        self, objective: str, score: str, title: str = later("Objective"), noisy: bool = False
    ) -> None:
        self.objective, self.score, self.noisy = tr(objective), tr(score), noisy
        objective, score = self.objective, self.score
        self._n_sent = 0  # number of trace points sent so far
        self.curve = columns("step", "elbo", "score", name="curve")
        self.news = columns("step", "elbo", "score", name="news")  # filled by the browser only
        self.broken = columns("step", "height")
        self.extent = columns("x", "y", name="extent")
        update_source(self.extent, **UNIT)
        unit = _unit(objective)
        if _unit(score) != unit:
            unit = tr("{unit}; dashed: {score_unit}", unit=unit, score_unit=_unit(score))
        plot = new_figure("objective", tr("step"), unit, height=300)
        # The ranges follow two invisible corners, which exclude the extreme first steps; Bokeh
        # stops following when the visitor zooms.
        corners = plot.scatter("x", "y", source=self.extent, alpha=0)
        plot.x_range = models.DataRange1d(renderers=[corners], range_padding=0.02)
        plot.y_range = models.DataRange1d(renderers=[corners], range_padding=0.08)
        for source in (self.curve, self.news):
            if noisy:
                plot.scatter("step", "elbo", source=source, color=BLUE, size=3.5, alpha=0.75,
                             line_width=0, legend_label=_bare(objective))  # fmt: skip
                plot.line("step", "score", source=source, color=GREEN, line_width=2.5,
                          legend_label=_bare(score))  # fmt: skip
                continue
            plot.line("step", "score", source=source, color=GREEN, line_width=1.5,
                      line_dash=[5, 3], line_alpha=0.9, legend_label=_bare(score))  # fmt: skip
            plot.line("step", "elbo", source=source, color=BLUE, line_width=2.5,
                      legend_label=_bare(objective))  # fmt: skip
        plot.scatter("step", "height", source=self.broken, marker="inverted_triangle", size=14,
                     color=VERMILION)  # fmt: skip
        plot.yaxis.formatter = tick_labels("0,0.[00]")
        place_legend_above(plot, stacked=True)
        super().__init__(title, plot)
        self.follow = pmui.Button(
            label=tr("Follow"), variant="outlined", size="small", visible=False
        )
        self.follow.js_on_click(args={"plot": plot}, code="plot.reset.emit()")
        self.follow.on_click(lambda _: self._on_follow(True))
        plot.on_event(RangesUpdate, lambda _: self._on_follow(False))
        plot.on_event(Reset, lambda _: self._on_follow(True))
        meaning = f"<summary>{tr(WHAT)}</summary><p>{tr(MEANING)}</p>"
        about = text(f"<details class='quiet'>{meaning}</details>")
        self.panel = pn.Column(self.panel, self.follow, about, sizing_mode="stretch_width")

    def update(self, trace: TraceBuffer, first: int) -> None:
        """Show the trace; points `first:` are new, and 0 redraws all."""
        elbo, score = np.asarray(trace.elbo, float), np.asarray(trace.score, float)
        step, restart = np.asarray(trace.step), np.asarray(trace.restart)
        if len(step) == 0:
            self.clear()
            return
        n_points = len(self.curve.data["step"])
        if first == 0 or first != self._n_sent or n_points + len(step) - first > 2 * LIMIT:
            self.curve.data = rows(step, elbo, score, restart, 0)
        elif first < len(step):  # only new points are sent
            fresh = rows(step, elbo, score, restart, first)
            self.curve.stream({name: encode(values) for name, values in fresh.items()})
        self._n_sent = len(step)
        self._mark(step, elbo)
        self._frame(step)
        self._read(step, elbo, score, restart)

    def clear(self, run: RunState | None = None) -> None:
        """Discard the previous run."""
        self._n_sent = 0
        empty(self.curve)
        empty(self.broken)
        update_source(self.extent, **UNIT)
        self.describe(NOTHING)

    def _on_follow(self, follows: bool) -> None:
        self.follow.visible = not follows

    def _mark(self, step: np.ndarray, elbo: np.ndarray) -> None:
        bad = np.flatnonzero(~np.isfinite(elbo))
        if len(bad) == len(self.broken.data["step"]):
            return
        heights = [_last_finite(elbo[: i + 1]) for i in bad]
        update_source(self.broken, step=step[bad], height=heights)

    def _frame(self, step: np.ndarray) -> None:
        low, high = extent(*(np.asarray(self.curve.data[name]) for name in ("elbo", "score")))
        update_source(self.extent, x=[step[0], step[-1]], y=[low, high])

    def _read(
        self, step: np.ndarray, elbo: np.ndarray, score: np.ndarray, restart: np.ndarray
    ) -> None:
        here = restart == restart[-1]
        values = [f"{_bare(self.objective)} {as_number(f'{elbo[-1]:.3f}')}"]
        finite = score[here][np.isfinite(score[here])]
        if len(finite) and self.score != self.objective:
            values.append(f"{_bare(self.score)} {as_number(f'{score[-1]:.3f}')}")
        if len(finite):
            values.append(tr("best {value:.3f}", value=finite.max()))
        progress = RESTARTED if restart[-1] else FIRST_START
        reading = [tr(progress, n=restart[-1] + 1, step=step[-1], values=", ".join(values))]
        if self.noisy and (scatter := _scatter(elbo[here][-RECENT:])) is not None:
            reading.append(
                tr("Estimates scatter by ± {scatter:.2g} from batch to batch.", scatter=scatter)
            )
        bad = np.flatnonzero(~np.isfinite(elbo))
        if len(bad):
            reading.append(tr("The objective was not finite at step {step}.", step=step[bad[0]]))
        self.describe(" ".join(reading))


def extent(elbo: Float[np.ndarray, "n"], score: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """Return the range of y, without the steep rise of a restart's first steps.

    The minimum is at most three times the range of the upper 90% of the values below the maximum.
    """
    both = np.concatenate([elbo, score])
    finite = both[np.isfinite(both)]
    if len(finite) == 0:
        return 0.0, 1.0
    high = finite.max()
    span = high - np.quantile(finite, 0.1)
    low = max(finite.min(), high - 3 * span) if span > 0 else finite.min()
    return float(low), float(high)


def _scatter(values: np.ndarray) -> float | None:
    """Return the noise's standard deviation, from differences of successive values (MAD)."""
    steps = np.diff(values[np.isfinite(values)])
    return float(np.median(np.abs(steps)) / 0.6745 / np.sqrt(2)) if len(steps) >= 10 else None


def _last_finite(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else 0.0


def _bare(label: str) -> str:
    return label.split(" (")[0]


def _unit(label: str) -> str:
    return label.split(" (")[1].rstrip(")") if " (" in label else label
