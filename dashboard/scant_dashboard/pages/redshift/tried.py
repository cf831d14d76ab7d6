"""Sizes and shapes of the model that a fit has tried: what each gained, and when."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.studies.redshift.settings import SHAPES
from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.fixed_legend import Key, look
from scant_dashboard.plots.theme import GRAY, models, new_figure

TITLE = "Models tried"
SCORE = "validation score (nats a row)"  # a longer one is cut off while presenting
UNKNOWN = "This run was made before runs kept what they tried."
KINDS = {
    "G": "one shape for all",
    "V": "a shape each",
    "L": "one lengthscale",
    "D": "one lengthscale per feature",
    "C": "a full covariance",
}
FREEDOM = ("one prior precision for all, even noise", "one prior precision for all", "all free")


class TriedPlot(Plot):
    """The stages in which a model has grown: their score, against time and against their size.

    Looks tell the shapes of the basis functions; a ring marks the stage that was kept.
    """

    def __init__(self) -> None:
        time = new_figure(
            "tried-time", "seconds of training until then, reckoned", SCORE, height=340
        )
        size = new_figure("tried-size", "basis functions", SCORE, height=340)
        numbers, names = ("seconds", "m", "score", "stage"), ("shape", "free", "color", "marker")
        self.stages = columns(*numbers)
        self.stages.data = {**self.stages.data, **{name: [] for name in names}}  # no numbers
        self.best = columns("seconds", "score")
        self.kept = columns("seconds", "m", "score")
        time.step("seconds", "score", source=self.best, mode="after", color=GRAY, line_width=1.5)
        tips = [("stage", "@stage{0}"), ("model", "@m{0} @shape"), ("freedom", "@free"),
                ("score", "@score{0.000}"), ("until", "@seconds{0.0} s")]  # fmt: skip
        for plot, x in ((time, "seconds"), (size, "m")):
            plot.scatter(x, "score", source=self.kept, size=18, fill_alpha=0,
                         line_color=GRAY, line_width=2)  # fmt: skip
            dots = plot.scatter(x, "score", source=self.stages, size=9, color="color",
                                marker="marker")  # fmt: skip
            plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        self.key = Key(time, stacked=True)
        super().__init__(TITLE, time, size)

    def show(self, tried: Float[np.ndarray, "t 5"]) -> None:
        """Show the report's array `tried`: size, place of the shape, freedom, score, seconds."""
        if not len(tried):
            self.clear()
            self.alt = UNKNOWN  # the corners of figures without data stay
            return
        m, shape, free, score, seconds = tried.T
        place, known = shape.astype(int), np.isfinite(score)
        looks = [look(k) for k in place]
        update_source(
            self.stages,
            seconds=seconds,
            m=m,
            score=np.where(known, score, np.nan),
            stage=np.arange(1.0, len(tried) + 1),
            shape=np.array([SHAPES[k] for k in place]),
            free=np.array([FREEDOM[int(k)] for k in free]),
            color=np.array([color for color, _, _ in looks]),
            marker=np.array([marker for _, marker, _ in looks]),
        )
        best = np.maximum.accumulate(np.where(known, score, -np.inf))
        told = np.isfinite(best)
        update_source(self.best, seconds=seconds[told], score=best[told])
        kept = [int(np.argmax(best))] if told.any() else []
        update_source(self.kept, seconds=seconds[kept], m=m[kept], score=score[kept])
        self.figures[1].xaxis.ticker = models.FixedTicker(ticks=sorted({int(n) for n in m}))
        self.key.name([s if k in place else "" for k, s in enumerate(SHAPES)])
        grown = tried[-1, 4] > 0
        self.describe(_reading(tried, kept) if grown else _fixed(tried))


def _named(shape: str) -> str:
    """A shape's letters with what they mean."""
    return f"{shape}: {KINDS[shape[1]]}, {KINDS[shape[0]]}"


def _model(stage: Float[np.ndarray, " 5"]) -> str:
    return f"{int(stage[0])} {SHAPES[int(stage[1])]}"


def _fixed(tried: Float[np.ndarray, "t 5"]) -> str:
    """What is to be said of a run whose model did not grow."""
    scores = ", ".join(f"{score:.3f}" for score in tried[:, 3])
    starts = f"{len(tried)} starts" if len(tried) > 1 else "one start"
    return (
        f"The settings fixed the model: {_model(tried[0])}, from {starts}, with validation "
        f"log-likelihood {scores}. With auto, size and shape are found within the time budget."
    )


def _reading(tried: Float[np.ndarray, "t 5"], kept: list[int]) -> str:
    count, seconds = len(tried), tried[-1, 4]
    stages = f"{count} stages" if count > 1 else "One stage"
    text = f"{stages} in {seconds:.1f} s of training, as reckoned. It began with {_model(tried[0])}"
    if not kept:
        return f"{text}; no stage has a score."
    (best,) = kept
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
