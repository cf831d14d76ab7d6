"""Model sizes and shapes evaluated by a fit: the gain and time of each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.studies.redshift.settings import SHAPES
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.fixed_legend import FixedLegend, group_style
from scant_dashboard.plots.theme import GRAY, models, new_figure
from scant_dashboard.translate import later, ntr, tr

TITLE = later("Models tried")
SCORE = later("validation score (nats a row)")  # longer labels are cut off in present mode
UNKNOWN = later("An earlier version made this run; it does not list the models tried.")
KINDS = {
    "G": later("one shape for all"),
    "V": later("a shape each"),
    "L": later("one lengthscale"),
    "D": later("one lengthscale per feature"),
    "C": later("a full covariance"),
}
FREEDOM = (
    later("one prior precision for all, even noise"), later("one prior precision for all"),
    later("all free"),
)  # fmt: skip


class SearchHistoryPlot(Plot):
    """The stages of a growing model: validation score against time and against size.

    Color and marker show the shape of the basis functions; a ring marks the selected stage.
    """

    def __init__(self) -> None:
        seconds, score = tr("estimated seconds of training until then"), tr(SCORE)
        time = new_figure("tried-time", seconds, score, height=340)
        size = new_figure("tried-size", tr("basis functions"), score, height=340)
        numbers, names = ("seconds", "m", "score", "stage"), ("shape", "free", "color", "marker")
        self.stages = columns(*numbers)
        self.stages.data = {**self.stages.data, **{name: [] for name in names}}  # non-numeric
        self.best = columns("seconds", "score")
        self.selected = columns("seconds", "m", "score")
        time.step("seconds", "score", source=self.best, mode="after", color=GRAY, line_width=1.5)
        tips = [(tr("stage"), "@stage{0}"), (tr("model"), "@m{0} @shape"),
                (tr("freedom"), "@free"), (tr("score"), "@score{0.000}"),
                (tr("until"), "@seconds{0.0} s")]  # fmt: skip
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
            self.alt = tr(UNKNOWN)  # keep the corners of the empty figures
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
            free=np.array([tr(FREEDOM[int(k)]) for k in free]),
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
    return f"{shape}: {tr(KINDS[shape[1]])}, {tr(KINDS[shape[0]])}"


def _model(stage: Float[np.ndarray, " 5"]) -> str:
    return f"{int(stage[0])} {SHAPES[int(stage[1])]}"


def _fixed(tried: Float[np.ndarray, "t 5"]) -> str:
    """Describe a run whose model did not grow."""
    scores = ", ".join(tr("{score:.3f}", score=score) for score in tried[:, 3])
    return ntr(
        "The settings fixed the model: {model}, from one start, with validation log-likelihood "
        "{scores}. With auto, size and shape are found within the time budget.",
        "The settings fixed the model: {model}, from {n} starts, with validation log-likelihood "
        "{scores}. With auto, size and shape are found within the time budget.",
        len(tried), model=_model(tried[0]), scores=scores,
    )  # fmt: skip


def _reading(tried: Float[np.ndarray, "t 5"], selected: list[int]) -> str:
    count = len(tried)
    text = [ntr("One stage in an estimated {seconds:.1f} s of training.",
                "{n} stages in an estimated {seconds:.1f} s of training.", count,
                seconds=tried[-1, 4])]  # fmt: skip
    begun, began_at = _model(tried[0]), tried[0, 3]
    if not selected:
        return (
            f"{text[0]} {tr('The search began with {model}; no stage has a score.', model=begun)}"
        )
    (best,) = selected
    after = count - 1 - best
    if best == 0 and count == 1:
        text.append(tr("The search began with {model} (score {score:.3f}), which was kept; no "
                       "other was tried.", model=begun, score=began_at))  # fmt: skip
    elif best == 0:
        text.append(tr("The search began with {model} (score {score:.3f}), which was kept.",
                       model=begun, score=began_at))  # fmt: skip
    else:
        if np.isfinite(began_at):
            begun = tr("{model} (score {score:.3f})", model=begun, score=began_at)
        text.append(tr("The search began with {model}; {best} in stage {stage} was kept (score "
                       "{score:.3f}).", model=begun, best=_model(tried[best]), stage=best + 1,
                       score=tried[best, 3]))  # fmt: skip
    if after:
        text.append(ntr("{n} later stage gained nothing.", "{n} later stages gained nothing.",
                        after))  # fmt: skip
    shapes = "; ".join(_named(SHAPES[k]) for k in sorted({int(k) for k in tried[:, 1]}))
    text.append(tr("Each gain is reduced by half of its standard error. {shapes}.", shapes=shapes))
    return " ".join(text)
