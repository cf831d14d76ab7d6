"""Where a model places its outputs: means with ellipses in a latent plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot, columns, put
from dashboard.plots.theme import BLUE, GREY, models, new_figure

NAMED = 40  # outputs that get their names beside them; more would hide each other
LIFTS = (-6, 20, -20, 34)  # pixels by which names of neighbours along x are set apart
NONE = "This model has no latent places."


class LatentPlot(Plot):
    """Outputs at the means of q(h), each with the ellipse that holds 95% of it.

    Of more than two dimensions, the two over which the means spread most are shown.
    """

    def __init__(self, title: str = "Where the outputs lie") -> None:
        self.places = columns("x", "y", "width", "height")
        self.labels = models.ColumnDataSource({"x": [], "y": [], "name": [], "lift": []})
        plot = new_figure("latent", "latent dimension 1", "latent dimension 2", height=300,
                          match_aspect=True)  # fmt: skip
        plot.ellipse("x", "y", "width", "height", source=self.places, fill_color=BLUE,
                     fill_alpha=0.15, line_color=BLUE, line_alpha=0.6)  # fmt: skip
        plot.scatter("x", "y", source=self.places, size=6, color=BLUE)
        plot.text("x", "y", "name", source=self.labels, text_color=GREY, text_font_size="12px",
                  text_align="center", y_offset="lift")  # fmt: skip
        super().__init__(title, plot)

    def show(
        self,
        mean: Float[np.ndarray, "d q"],
        std: Float[np.ndarray, "d q"],
        names: Sequence[str] = (),
    ) -> None:
        """Show d outputs' places; none where the model has no such thing."""
        if not mean.size:
            self.clear()
            self.describe(NONE)
            return
        if mean.shape[1] == 1:
            mean, std = (np.column_stack([a, np.zeros(len(a))]) for a in (mean, std))
        order = np.sort(np.argsort(-mean.std(axis=0), kind="stable")[:2])
        x, y = mean[:, order].T
        half = np.sqrt(5.991)  # the radius that holds 95% of a Gaussian in the plane
        width, height = 2 * half * std[:, order].T
        put(self.places, x=x, y=y, width=width, height=height)
        named = [str(n) for n in names][: NAMED if len(mean) <= NAMED else 0]
        rank = np.argsort(np.argsort(x, kind="stable"), kind="stable")[: len(named)]
        self.labels.data = {
            "x": x[: len(named)],
            "y": y[: len(named)],
            "name": named,
            "lift": [LIFTS[k % len(LIFTS)] for k in rank],
        }
        plot = self.figures[0]
        for axis, dimension in zip((plot.xaxis[0], plot.yaxis[0]), order):
            axis.axis_label = f"latent dimension {dimension + 1}"
        self.describe(_in_words(np.column_stack([x, y]), std[:, order], [str(n) for n in names]))


def _in_words(
    places: Float[np.ndarray, "d 2"], std: Float[np.ndarray, "d 2"], names: Sequence[str]
) -> str:
    if len(places) < 2:
        return "One output, which has no neighbours."
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    np.fill_diagonal(apart, np.inf)
    i, j = np.unravel_index(int(np.argmin(apart)), apart.shape)
    said = [names[k] if k < len(names) else f"output {k + 1}" for k in (int(i), int(j))]
    widest = int(np.argmax(std.prod(axis=1)))
    vague = names[widest] if widest < len(names) else f"output {widest + 1}"
    return (
        f"{len(places)} outputs; the closest two are {said[0]} and {said[1]}, "
        f"{apart[i, j]:.2g} apart; the place of {vague} is known least."
    )
