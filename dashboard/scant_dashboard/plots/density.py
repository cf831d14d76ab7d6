"""Predictive density p(z) of one row, a mixture if inputs are missing or noisy."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, hide_empty_legend_items, update_source
from scant_dashboard.plots.theme import BLUE, GRAY, VERMILION, new_figure, place_legend_above
from scant_dashboard.translate import later, ntr, tr

NAN = float("nan")  # hides a point
THIN = later("Thin lines: the components of the mixture.")
INSIDE = later("The true value, {truth:.{decimals}f}, is inside the interval.")
OUTSIDE = later("The true value, {truth:.{decimals}f}, is outside the interval.")
Grid = Float[np.ndarray, "g"]


class DensityPlot(Plot):
    """The predictive density with its components and the truth.

    Args:
        target: Name of the target.
        before: Legend label of a density to compare with; "" if neither that nor a truth is shown.
    """

    def __init__(
        self,
        target: str = "z",
        title: str = later("Density of one row"),
        before: str = later("every input"),
    ) -> None:
        self.target = target = tr(target)
        self.curve = columns("grid", "density")
        self.before = columns("grid", "density")
        self.parts = columns("xs", "ys")
        self.truth = columns("truth", "height")
        plot = new_figure("density", target, f"p({target})", height=340)
        if before:
            plot.line("grid", "density", source=self.before, color=GRAY, line_width=1.5,
                      line_dash=[5, 3], legend_label=tr(before))  # fmt: skip
        plot.multi_line("xs", "ys", source=self.parts, color=BLUE, line_alpha=0.35)
        plot.varea("grid", 0, "density", source=self.curve, color=BLUE, fill_alpha=0.18)
        plot.line("grid", "density", source=self.curve, color=BLUE, line_width=2.5,
                  legend_label=f"p({target})")  # fmt: skip
        label = {"legend_label": tr("truth")} if before else {}
        plot.line("truth", "height", source=self.truth, color=VERMILION, line_width=2, **label)
        plot.y_range.start = 0
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(
        self,
        grid: Grid,
        density: Grid,
        components: Float[np.ndarray, "c g"] | None = None,
        truth: float | None = None,
        before: tuple[Grid, Grid] | None = None,
    ) -> None:
        """Show a density on a grid.

        Args:
            grid: Grid points, in the target's unit.
            density: Its values, per unit of the target.
            components: Components of the mixture, times their weights.
            truth: The true value, if it may be shown.
            before: Grid and density with all inputs measured, for comparison.
        """
        update_source(self.curve, grid=grid, density=density)
        parts = [] if components is None or len(components) < 2 else list(_largest(components))
        self.parts.data = {
            "xs": [np.float32(grid)] * len(parts),
            "ys": [np.float32(p) for p in parts],
        }
        reference_grid, height = before if before is not None else ([NAN], [NAN])
        update_source(self.before, grid=reference_grid, density=height)
        location = [] if truth is None else [truth] * 2
        update_source(self.truth, truth=location, height=[0, density.max()][: len(location)])
        hide_empty_legend_items(self.figures[0])
        self.describe(self._reading(grid, density, truth) + (f" {tr(THIN)}" if parts else ""))

    def _reading(self, grid: Grid, density: Grid, truth: float | None) -> str:
        inner = (density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])
        high = inner & (density[1:-1] > 0.1 * density.max())
        peaks = max(int(high.sum()), 1)
        mass = np.cumsum(density) / max(density.sum(), 1e-300)
        low, top = (float(grid[np.searchsorted(mass, q)]) for q in (0.025, 0.975))
        width = max(top - low, 1e-9)
        decimals = max(2 - math.floor(math.log10(width)), 0)  # two digits of the width
        reading = ntr(
            "Most likely {target}: {mode:.{decimals}f}; 95% interval: {low:.{decimals}f} to "
            "{top:.{decimals}f}. The density has {n} peak.",
            "Most likely {target}: {mode:.{decimals}f}; 95% interval: {low:.{decimals}f} to "
            "{top:.{decimals}f}. The density has {n} peaks.",
            peaks,
            target=self.target,
            mode=grid[np.argmax(density)],
            low=low,
            top=top,
            decimals=decimals,
        )
        if truth is None:
            return reading
        known = tr(INSIDE if low <= truth <= top else OUTSIDE, truth=truth, decimals=decimals)
        return f"{reading} {known}"


def _largest(components: Float[np.ndarray, "c g"], limit: int = 25) -> np.ndarray:
    """Return the components with the highest peaks."""
    height = components.max(axis=1)
    order = np.argsort(height)[::-1][:limit]
    return components[order[height[order] > 0.01 * height.max()]]
