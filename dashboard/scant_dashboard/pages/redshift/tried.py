"""Model sizes and shapes evaluated by a fit: the gain and time of each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.studies.redshift.settings import SHAPES
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.fixed_legend import FixedLegend, group_style
from scant_dashboard.plots.theme import GRAY, models, new_figure

TITLE = "Models tried"
SCORE = "validation score (nats a row)"  # longer labels are cut off in present mode
UNKNOWN = "This run was made before runs kept what they tried."
KINDS = {
    "G": "one shape for all",
    "V": "a shape each",
    "L": "one lengthscale",
    "D": "one lengthscale per feature",
    "C": "a full covariance",
}
FREEDOM = ("one prior precision for all, even noise", "one prior precision for all", "all free")


class SearchHistoryPlot(Plot):
    """The stages of a growing model: validation score against time and against size.

    Color and marker show the shape of the basis functions; a ring marks the selected stage.
    """

    def __init__(self) -> None:
        time = new_figure(
            "tried-time", "seconds of training until then, reckoned", SCORE, height=340
        )
        size = new_figure("tried-size", "basis functions", SCORE, height=340)
        numbers, names = ("seconds", "m", "score", "stage"), ("shape", "free", "color", "marker")
        self.stages = columns(*numbers)
        self.stages.data = {**self.stages.data, **{name: [] for name in names}}  # non-numeric
        self.best = columns("seconds", "score")
        self.selected = columns("seconds", "m", "score")
        time.step("seconds", "score", source=self.best, mode="after", color=GRAY, line_width=1.5)
        tips = [("stage", "@stage{0}"), ("model", "@m{0} @shape"), ("freedom", "@free"),
                ("score", "@score{0.000}"), ("until", "@seconds{0.0} s")]  # fmt: skip
        for plot, x in ((time, "seconds"), (size, "m")):
            plot.scatter(x, "score", source=self.selected, size=18, fill_alpha=0,
                         line_color=GRAY, line_width=2)  # fmt: skip
            dots = plot.scatter(x, "score", source=self.stages, size=9, color="color",
                                marker="marker")  # fmt: skip
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        self.legend = FixedLegend(time, stacked=True)
        super().__init__(TITLE, time, size)

    def show(self, tried: Float[np.ndarray, "t 5"]) -> None:
        """Show the report's array `tried`: size, shape index, freedom, score, seconds."""
        if not len(tried):
            self.clear()
            self.alt = UNKNOWN  # keep the corners of the empty figures
            return
        m, shape, free, score, seconds = tried.T
        shape_index, finite = shape.astype(int), np.isfinite(score)
        styles = [group_style(k) for k in shape_index]
        update_source(
            self.stages,
            seconds=seconds,
            m=m,
            score=np.where(finite, score, np.nan),
            stage=np.arange(1.0, len(tried) + 1),
            shape=np.array([SHAPES[k] for k in shape_index]),
            free=np.array([FREEDOM[int(k)] for k in free]),
            color=np.array([color for color, _, _ in styles]),
            marker=np.array([marker for _, marker, _ in styles]),
        )
        best = np.maximum.accumulate(np.where(finite, score, -np.inf))
        has_best = np.isfinite(best)
        update_source(self.best, seconds=seconds[has_best], score=best[has_best])
        row = [int(np.argmax(best))] if has_best.any() else []
        update_source(self.selected, seconds=seconds[row], m=m[row], score=score[row])
        self.figures[1].xaxis.ticker = models.FixedTicker(ticks=sorted({int(n) for n in m}))
        self.legend.name([s if k in shape_index else "" for k, s in enumerate(SHAPES)])
        grown = tried[-1, 4] > 0
        self.describe(_reading(tried, row) if grown else _fixed(tried))


def _named(shape: str) -> str:
    """Spell out the letters of a shape."""
    return f"{shape}: {KINDS[shape[1]]}, {KINDS[shape[0]]}"


def _model(stage: Float[np.ndarray, " 5"]) -> str:
    return f"{int(stage[0])} {SHAPES[int(stage[1])]}"


def _fixed(tried: Float[np.ndarray, "t 5"]) -> str:
    """Describe a run whose model did not grow."""
    scores = ", ".join(f"{score:.3f}" for score in tried[:, 3])
    starts = f"{len(tried)} starts" if len(tried) > 1 else "one start"
    return (
        f"The settings fixed the model: {_model(tried[0])}, from {starts}, with validation "
        f"log-likelihood {scores}. With auto, size and shape are found within the time budget."
    )


def _reading(tried: Float[np.ndarray, "t 5"], selected: list[int]) -> str:
    count, seconds = len(tried), tried[-1, 4]
    stages = f"{count} stages" if count > 1 else "One stage"
    text = f"{stages} in {seconds:.1f} s of training, as reckoned. It began with {_model(tried[0])}"
    if not selected:
        return f"{text}; no stage has a score."
    (best,) = selected
    if best == 0:
        text += f" (score {tried[0, 3]:.3f}), which was kept"
    else:
        first = f" (score {tried[0, 3]:.3f})" if np.isfinite(tried[0, 3]) else ""
        text += f"{first}; {_model(tried[best])} in stage {best + 1} was kept"
        text += f" (score {tried[best, 3]:.3f})"
    if after := count - 1 - best:
        text += f". {after} later {'stages' if after > 1 else 'stage'} gained nothing"
    elif count == 1:
        text += "; no other was tried"
    shapes = "; ".join(_named(SHAPES[k]) for k in sorted({int(k) for k in tried[:, 1]}))
    return f"{text}. A gain counts less half of its standard error. {shapes}."
