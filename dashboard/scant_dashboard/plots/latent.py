"""Latent positions of outputs or of rows: means with ellipses in a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.fixed_legend import FixedLegend, group_style
from scant_dashboard.plots.theme import BLUE, GRAY, Figure, models, new_figure
from scant_dashboard.translate import later, tr

NAMED = 40  # maximum number of outputs with names, which would otherwise overlap
# Edge by which a name is placed, and its distance in pixels from the position, of neighbors in x.
PLACES = (("bottom", -6), ("top", 6), ("bottom", -20), ("top", 20))
NONE = later("This model has no latent positions.")
DIMENSION = later("latent dimension {k}")
HOLDS = 2 * 5.991**0.5  # diameter in deviations of the 95% ellipse: 2 sqrt(chi2 quantile, 2 d.o.f.)

# The mark follows the pointer immediately; positions are sent at most every 200 ms.
_FOLLOW = """
const {x, y} = cb_obj
mark.setv({data: {x: [x], y: [y], name: [''], turn: [0]}}, {sync: false})
const send = () => { mark.sent = Date.now(); sent.data = {x: [x], y: [y]} }
clearTimeout(mark.later)
const wait = 200 - (Date.now() - (mark.sent ?? 0))
if (wait > 0) mark.later = setTimeout(send, wait)
else send()
"""


class LatentPlot(Plot):
    """Outputs at the means of q(h), each with its 95% ellipse.

    With more than two dimensions, the two with the largest spread of the means are shown.
    """

    def __init__(self, title: str = later("Where the outputs lie")) -> None:
        self.positions = columns("x", "y", "width", "height")
        self.labels = models.ColumnDataSource(
            {"x": [], "y": [], "name": [], "edge": [], "lift": []}
        )
        # With matched aspect, ticks depend on the frame's width: a fixed border keeps it constant.
        plot = new_figure("latent", *(tr(DIMENSION, k=k) for k in (1, 2)), height=300,
                          match_aspect=True, min_border_left=76)  # fmt: skip
        plot.ellipse("x", "y", "width", "height", source=self.positions, fill_color=BLUE,
                     fill_alpha=0.15, line_color=BLUE, line_alpha=0.6)  # fmt: skip
        plot.scatter("x", "y", source=self.positions, size=6, color=BLUE)
        plot.text("x", "y", "name", source=self.labels, text_color=GRAY, text_font_size="12px",
                  text_align="center", text_baseline="edge", y_offset="lift")  # fmt: skip
        super().__init__(title, plot)

    def show(
        self,
        mean: Float[np.ndarray, "d q"],
        std: Float[np.ndarray, "d q"],
        names: Sequence[str] = (),
    ) -> None:
        """Show the positions of d outputs; NONE is described if the model has none."""
        if not mean.size:
            self.clear()
            self.alt = NONE  # keep the corners of the empty figure
            return
        if mean.shape[1] == 1:
            mean, std = (np.column_stack([a, np.zeros(len(a))]) for a in (mean, std))
        order = np.sort(np.argsort(-mean.std(axis=0), kind="stable")[:2])
        x, y = mean[:, order].T
        width, height = HOLDS * std[:, order].T
        update_source(self.positions, x=x, y=y, width=width, height=height)
        named = [str(n) for n in names][: NAMED if len(mean) <= NAMED else 0]
        rank = np.argsort(np.argsort(x, kind="stable"), kind="stable")[: len(named)]
        edge, lift = (
            zip(*(PLACES[k % len(PLACES)] for k in rank), strict=True) if named else ((), ())
        )
        self.labels.data = {
            "x": x[: len(named)],
            "y": y[: len(named)],
            "name": named,
            "edge": list(edge),
            "lift": list(lift),
        }
        plot = self.figures[0]
        for axis, dimension in zip((plot.xaxis[0], plot.yaxis[0]), order):
            axis.axis_label = tr(DIMENSION, k=dimension + 1)
        self.describe(_reading(np.column_stack([x, y]), std[:, order], [str(n) for n in names]))


def _reading(
    positions: Float[np.ndarray, "d 2"], std: Float[np.ndarray, "d 2"], names: Sequence[str]
) -> str:
    if len(positions) < 2:
        return tr("There is only one output.")
    distance = np.sqrt(((positions[:, None] - positions[None]) ** 2).sum(-1))
    np.fill_diagonal(distance, np.inf)
    i, j = np.unravel_index(int(np.argmin(distance)), distance.shape)
    first, second, vague = (
        names[k] if k < len(names) else tr("output {k}", k=k + 1)
        for k in (int(i), int(j), int(np.argmax(std.prod(axis=1))))
    )
    return tr(
        "{n} outputs; the closest two are {first} and {second}, {distance:.2g} apart; the position "
        "of {vague} is most uncertain. Ellipses are 95% regions of the positions.",
        n=len(positions),
        first=first,
        second=second,
        distance=distance[i, j],
        vague=vague,
    )


ROWS = ("x", "y", "width", "height", "color", "marker", "group")


class ClassesPlot(Plot):
    """Rows at the means of q(x), with color and marker by class, and 95% ellipses.

    Args:
        title: The heading.
        name: Name of saved files.
        pick: Called with the position of a click, or to which the visitor drags the mark.
        height: Pixels.
    """

    def __init__(
        self,
        title: str,
        name: str = "latent",
        pick: Callable[[float, float], None] | None = None,
        height: int = 320,
    ) -> None:
        self.rows = models.ColumnDataSource({n: [] for n in ROWS})
        self.mark = models.ColumnDataSource({n: [] for n in ("x", "y", "name", "turn")})
        self._turn = 0
        plot = new_figure(name, height=height)
        plot.ellipse("x", "y", "width", "height", source=self.rows, fill_color="color",
                     fill_alpha=0.04, line_color="color", line_alpha=0.14)  # fmt: skip
        dots = plot.scatter("x", "y", source=self.rows, size=7, fill_color="color",
                            line_color="color", fill_alpha=0.65, marker="marker")  # fmt: skip
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips="@group"))
        for size, width, color in ((20, 6, "#ffffff"), (20, 3, "#000000")):
            plot.scatter("x", "y", source=self.mark, size=size, marker="circle_cross",
                         fill_alpha=0, line_color=color, line_width=width)  # fmt: skip
        plot.text("x", "y", "name", source=self.mark, text_color=GRAY, text_font_size="12px",
                  x_offset=14, y_offset=-8)  # fmt: skip
        self.legend = FixedLegend(plot)
        if pick is not None:
            self._follow(plot, pick)
        super().__init__(title, plot)

    def _follow(self, plot: Figure, pick: Callable[[float, float], None]) -> None:
        self.sent = models.ColumnDataSource({"x": [], "y": []})  # written by the browser only
        code = models.CustomJS(args={"mark": self.mark, "sent": self.sent}, code=_FOLLOW)
        for event in ("tap", "pan"):
            plot.js_on_event(event, code)
        self.sent.on_change("data", lambda _attr, _old, new: pick(new["x"][0], new["y"][0]))

    def show(
        self,
        mean: Float[np.ndarray, "n 2"],
        std: Float[np.ndarray, "n 2"],
        label: Int[np.ndarray, " n"],
        classes: Sequence[str],
        axes: tuple[str, str],
    ) -> None:
        """Show n rows on two axes, the rarest class on top.

        Args:
            mean: Means of the latent positions.
            std: Their standard deviations.
            label: Index of each row's class.
            classes: Names of the classes.
            axes: Axis labels.
        """
        count = np.bincount(label, minlength=len(classes))
        order = np.argsort(-count[label], kind="stable")
        x, y = mean[order].T
        width, height = HOLDS * std[order].T
        class_of_row = [int(c) for c in label[order]]
        update_source(
            self.rows,
            x=x,
            y=y,
            width=width,
            height=height,
            color=[group_style(c)[0] for c in class_of_row],
            marker=[group_style(c)[1] for c in class_of_row],
            group=[str(classes[c]) for c in class_of_row],
        )
        self.legend.name([str(name) if c in class_of_row else "" for c, name in enumerate(classes)])
        plot = self.figures[0]
        for axis, message in zip((plot.xaxis[0], plot.yaxis[0]), axes):
            if axis.axis_label != message:
                axis.axis_label = message
        self.describe(_separation(mean, label, classes))

    def points(self, positions: Float[np.ndarray, "m 2"], names: Sequence[str] = ("",)) -> None:
        """Place the marks; incrementing `turn` sends them even if the positions are unchanged."""
        self._turn += 1
        x, y = (column.tolist() for column in np.asarray(positions, float).T)
        self.mark.data = {"x": x, "y": y, "name": list(names), "turn": [self._turn] * len(x)}


def _separation(
    positions: Float[np.ndarray, "n 2"], label: Int[np.ndarray, " n"], classes: Sequence[str]
) -> str:
    """Describe the rows per class, and how far the rarest overlaps the others.

    Two normal distributions of equal variance, d deviations apart, share 2 Phi(-d / 2).
    """
    observed = [c for c in range(len(classes)) if (label == c).any()]
    counted = ", ".join(f"{int((label == c).sum())} {classes[c]}" for c in observed[:3])
    if len(observed) > 3:
        counted = tr("{first} and {n} more classes", first=counted, n=len(observed) - 3)
    message = tr("Rows: {counted}, each with its 95% ellipse.", counted=counted)
    if len(observed) < 2:
        across, up = positions.std(0)
        spread = tr(
            "They spread by {across:.2f} and {up:.2f} standard deviations of the prior across and "
            "up; along an unused dimension the spread would be 0.",
            across=across,
            up=up,
        )
        return f"{message} {spread}"
    rare = min(observed, key=lambda c: int((label == c).sum()))
    own, others = positions[label == rare], positions[label != rare]
    deviation = np.sqrt((own.var(0) + others.var(0)) / 2)
    distance = float(np.max(np.abs(own.mean(0) - others.mean(0)) / np.maximum(deviation, 1e-12)))
    overlap = 2 * ndtr(-distance / 2)
    overlaps = tr(
        "{name} overlaps the others by {overlap:.0%}: the means are {distance:.1f} deviations "
        "apart.",
        name=classes[rare],
        overlap=overlap,
        distance=distance,
    )
    return f"{message} {overlaps}"
