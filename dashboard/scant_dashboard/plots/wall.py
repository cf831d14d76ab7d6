"""The runs of a wall: all curves, a dot plot of the scores, and all posterior means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from scant.studies import entry
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.elbo import extent
from scant_dashboard.plots.theme import BLUE, GRAY, VERMILION, models, new_figure
from scant_dashboard.room.wall import Wall, WallRun
from scant_dashboard.room.wall_presets import SAMPLE, SEED, YEAR
from scant_dashboard.translate import later, ntr, tr

TITLE = later("The wall")
STAGES = {
    "waiting": later("waiting"),
    "training": later("training"),
    "done": later("done"),
    "failed": later("failed"),
}
BINS = 20  # of the dot plot, over the range of the scores
MIN_HEIGHT = 5  # dots
THIN = {"color": BLUE, "line_width": 1, "line_alpha": 0.6}
BOLD = {"color": VERMILION, "line_width": 3}


class WallPlot(Plot):
    """The runs of one wall, thin, with the selected one bold; a click on a dot selects its run.

    Args:
        wall: The wall.
        selected: Called after a click.
    """

    def __init__(self, wall: Wall, selected: Callable[[], None]) -> None:
        self.wall = wall
        self.selected = 1  # number of the bold run; the first is the presenter's
        self._on_select = selected
        self._drawn: Sequence[tuple[int, str]] = []  # what each line shows
        study, metric = entry(wall.variation.study), tr(wall.preset.metric)
        self.varies = wall.variation.name not in (SEED, SAMPLE)
        self.lines, self.bold = _rows("xs", "ys"), columns("x", "y")
        self.dots = columns("x", "y", "number", "title", "score", name="wall")
        self.bold_dot = columns("x", "y")
        label = study.score if wall.preset.curve == "score" else study.objective
        curves = new_figure("wall-curves", tr("step"), tr(label), height=380)
        _lines(curves, self.lines, self.bold)
        # As in `ElboPlot`, the range follows two corners, which exclude the steep first steps.
        self.extent = columns("x", "y")
        corners = curves.scatter("x", "y", source=self.extent, alpha=0)
        curves.x_range = models.DataRange1d(renderers=[corners], range_padding=0.02)
        curves.y_range = models.DataRange1d(renderers=[corners], range_padding=0.08)
        axes = (
            (wall.variation.name.replace("_", " "), metric) if self.varies else (metric, tr("runs"))
        )
        dots = new_figure("wall-scores", *axes, height=380, tools="tap")
        dots.scatter("x", "y", source=self.dots, size=12, color=BLUE, alpha=0.75, line_width=0,
                     nonselection_alpha=0.75, nonselection_color=BLUE)  # fmt: skip
        dots.scatter("x", "y", source=self.bold_dot, size=16, color=VERMILION, line_width=0)
        dots.add_tools(
            models.HoverTool(renderers=[dots.renderers[0]],
                             tooltips=[("", "@title"), (metric, "@score{0.000}")])
        )  # fmt: skip
        if not self.varies:
            dots.y_range = models.Range1d(0, MIN_HEIGHT)
            dots.yaxis.ticker = models.BasicTicker(min_interval=1)
        self.dots.selected.on_change("indices", self._on_click)
        figures = [curves, dots]
        self.means, self.bold_mean = _rows("xs", "ys"), columns("x", "y")
        self.truth = columns("x", "y")
        if wall.preset.axes:
            means = new_figure(
                "wall-posteriors", *(tr(label, year=YEAR) for label in wall.preset.axes), height=380
            )
            means.line("x", "y", source=self.truth, color=GRAY, line_width=2.5, line_dash=[6, 4])
            _lines(means, self.means, self.bold_mean)
            figures.append(means)
        self.unfilled = [columns("x", "y") for _ in figures[1:]]  # corners, for the ranges
        for figure, corners in zip(figures[1:], self.unfilled):
            figure.scatter("x", "y", source=corners, alpha=0)
        for figure in figures:
            figure.xaxis.ticker = models.BasicTicker(desired_num_ticks=4)
        super().__init__(TITLE, *figures)
        self.show()

    def show(self) -> None:
        """Show the current state of the wall."""
        runs = self.wall.runs
        done = [run for run in runs if run.score is not None]
        self._draw_curves(runs)
        self._draw_scores(done)
        self._draw_means(done)
        self._draw_selected()
        self._mark_empty_figures()
        self.describe(f"{self._summary(done)} {self._selection()}")

    def _draw_curves(self, runs: Sequence[WallRun]) -> None:
        """Send only the curves that have changed."""
        states = [(len(run.steps) and run.steps[-1], run.stage) for run in runs]
        if len(states) != len(self._drawn):
            self.lines.data = {"xs": [[*r.steps] for r in runs], "ys": [[*r.curve] for r in runs]}
        else:
            changed = [k for k, state in enumerate(states) if state != self._drawn[k]]
            if changed:
                self.lines.patch({
                    "xs": [(k, [*runs[k].steps]) for k in changed],
                    "ys": [(k, [*runs[k].curve]) for k in changed],
                })  # fmt: skip
        self._drawn = states
        steps = [step for run in runs for step in run.steps]
        ends = extent(np.array([v for run in runs for v in run.curve]), np.empty(0))
        update_source(self.extent, x=[0, max(steps, default=1)], y=ends)

    def _draw_scores(self, done: Sequence[WallRun]) -> None:
        numbers = np.array([run.number for run in done], float)
        if len(numbers) == len(self.dots.data["x"]):
            return
        scores = np.array([run.score for run in done], float)
        x, y = scores, stacked(scores)
        if self.varies:
            x, y = np.array([self.wall.variation.value(run.number) for run in done]), scores
        elif len(y):
            self.figures[1].y_range.end = max(MIN_HEIGHT, y.max() + 0.7)
        titles = np.array([self.wall.variation.title(run.number) for run in done], object)
        update_source(self.dots, x=x, y=y, number=numbers, title=titles, score=scores)

    def _draw_means(self, done: Sequence[WallRun]) -> None:
        posteriors = [run.posterior for run in done if run.posterior is not None]
        if len(posteriors) != len(self.means.data["xs"]):
            self.means.data = {
                "xs": [p.x.tolist() for p in posteriors],
                "ys": [p.mean.tolist() for p in posteriors],
            }

    def _draw_selected(self) -> None:
        run = self._selected_run()
        if run is None:
            return
        update_source(self.bold, x=run.steps, y=run.curve)
        at = np.asarray(self.dots.data["number"]) == run.number
        update_source(self.bold_dot, **{c: np.asarray(self.dots.data[c])[at] for c in ("x", "y")})
        if run.posterior is not None:
            update_source(self.bold_mean, x=run.posterior.x, y=run.posterior.mean)
            if len(run.posterior.truth):
                update_source(self.truth, x=run.posterior.x, y=run.posterior.truth)
        else:
            update_source(self.bold_mean, x=[], y=[])

    def _mark_empty_figures(self) -> None:
        """Give figures without data corners, without which Bokeh cannot compute their ranges."""
        filled = (len(self.dots.data["x"]), len(self.means.data["xs"]))
        for corners, n in zip(self.unfilled, filled):
            ends = [] if n else [0.0, 1.0]
            if len(corners.data["x"]) != len(ends):
                update_source(corners, x=ends, y=ends)

    def _on_click(self, attribute: str, old: Sequence[int], new: Sequence[int]) -> None:
        if new:
            self.selected = int(self.dots.data["number"][new[0]])
            self.dots.selected.indices = []  # so that all dots look alike, and can be clicked again
            self.show()
            self._on_select()

    def _selected_run(self) -> WallRun | None:
        return next((run for run in self.wall.runs if run.number == self.selected), None)

    def _summary(self, done: Sequence[WallRun]) -> str:
        runs, metric = self.wall.runs, tr(self.wall.preset.metric)
        failed = sum(run.stage == "failed" for run in runs)
        count = tr("Runs that have ended: {n} of {all}.", n=len(done), all=len(runs))
        if len(done) + failed == len(runs):
            count = ntr("{n} run has ended.", "{n} runs have ended.", len(done))
        parts = [count, tr("{n} failed.", n=failed) if failed else ""]
        scores = np.array([run.score for run in done], float)
        if len(done) >= 2:
            parts.append(tr("{score} from {low:.3g} to {high:.3g}.", score=metric,
                            low=scores.min(), high=scores.max()))  # fmt: skip
        if len(done) >= 4:
            low, high = np.quantile(scores, [0.25, 0.75])
            parts.append(tr("Half of them lie between {low:.3g} and {high:.3g}.", low=low,
                            high=high))  # fmt: skip
        if len(done) >= 2 and self.varies:
            parts.append(self._trend(done))
        return " ".join(filter(None, parts))

    def _trend(self, done: Sequence[WallRun]) -> str:
        """Compare the runs of lower and of higher values of the setting."""
        values = np.array([self.wall.variation.value(run.number) for run in done], float)
        scores = np.array([run.score for run in done], float)
        middle = (self.wall.variation.low + self.wall.variation.high) / 2
        low, high = scores[values < middle], scores[values >= middle]
        if not (len(low) and len(high)):
            return ""
        name = self.wall.variation.name.replace("_", " ")
        return tr(
            "The median is {below:.3g} for {setting} below {middle:g} and {above:.3g} above it.",
            setting=name, middle=middle, below=np.median(low), above=np.median(high),
        )  # fmt: skip

    def _selection(self) -> str:
        run = self._selected_run()
        if run is None:
            return ""
        title = self.wall.variation.title(run.number)
        if run.token == "":
            title = tr("{title}, the presenter's", title=title)
        state = tr(STAGES[run.stage])
        if run.score is not None:
            state = tr("{score} {value:.3g}", score=tr(self.wall.preset.metric), value=run.score)
        sentence = tr("Bold: run {n}, {title}: {state}.", n=run.number, title=title, state=state)
        truth = tr("Dashed: the true values.") if len(self.truth.data["x"]) else ""
        return f"{sentence} {truth}".rstrip()


def stacked(scores: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the height of each dot: its rank, from 1, among those of its bin."""
    if not len(scores):
        return np.empty(0, int)
    width = max(np.ptp(scores) / BINS, 1e-12)
    bins = np.floor((scores - scores.min()) / width).astype(int)
    return np.array([np.sum(bins[: k + 1] == b) for k, b in enumerate(bins)])


def _rows(*names: str) -> Any:
    """Return a source of lines, a list of numbers for each."""
    return models.ColumnDataSource({name: [] for name in names})


def _lines(plot: Any, thin: Any, bold: Any) -> None:
    plot.multi_line("xs", "ys", source=thin, **THIN)
    plot.line("x", "y", source=bold, **BOLD)
