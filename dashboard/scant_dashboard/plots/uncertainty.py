"""The predictive variance split into its sources."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import BLUE, GRAY, VERMILION, new_figure, place_legend_above
from scant_dashboard.translate import later, tr

Rows = Float[np.ndarray, "n"]

MODEL, NOISE, INPUT = later("model"), later("noise"), later("missing inputs")


class VariancePlot(Plot):
    """Stacked mean variances in bins of the target (split of Almosallam 2017, chapter 5).

    Args:
        target: Name of the target.
        bins: Number of bins.
        title: The heading.
        inputs: Whether inputs may be missing, which adds a component.
        rows: Name of the rows for the text alternative; "" for all held-out ones.
    """

    def __init__(
        self,
        target: str = "z",
        bins: int = 16,
        title: str = later("Where the uncertainty comes from"),
        inputs: bool = True,
        rows: str = "",
    ) -> None:
        self.rows = rows
        self.bins = bins
        self.target = target = tr(target)
        self.bars = columns("left", "right", "zero", "model", "noise", "input")
        plot = new_figure("variance", target, tr("variance of {target}", target=target))
        stack = (("zero", "noise", GRAY, NOISE), ("noise", "model", BLUE, MODEL),
                 ("model", "input", VERMILION, INPUT))  # fmt: skip
        for bottom, top, color, label in stack if inputs else stack[:2]:
            plot.quad(left="left", right="right", bottom=bottom, top=top, source=self.bars,
                      color=color, fill_alpha=0.8, line_width=0,
                      legend_label=tr(label))  # fmt: skip
        plot.y_range.start = 0
        place_legend_above(plot)
        self.items = plot.legend[0].items
        super().__init__(title, plot)

    def show(
        self, target: Rows, std_model: Rows, std_noise: Rows, std_input: Rows | None = None
    ) -> None:
        """Show the components of n rows' standard deviations, all in the target's unit."""
        parts = np.stack(
            [std_model, std_noise, np.zeros_like(std_model) if std_input is None else std_input]
        )
        edges = np.linspace(target.min(), target.max() + 1e-9, self.bins + 1)
        bin_index = np.clip(np.digitize(target, edges) - 1, 0, self.bins - 1)
        count = np.bincount(bin_index, minlength=self.bins)
        observed = np.maximum(count, 1)
        model, noise, from_inputs = (
            np.bincount(bin_index, weights=part**2, minlength=self.bins) / observed
            for part in parts
        )
        update_source(
            self.bars,
            left=edges[:-1],
            right=edges[1:],
            zero=np.zeros(self.bins),
            noise=noise,
            model=noise + model,
            input=noise + model + from_inputs,
        )
        shares = dict(zip(map(tr, (MODEL, NOISE, INPUT)), np.mean(parts**2, axis=1)))
        for item in self.items:
            item.visible = bool(shares[item.label.value] > 0)
        reading = split_reading(*shares.values())
        if self.rows:
            rows = tr("These are means over {n:,} {rows}.", n=len(target), rows=tr(self.rows))
            reading = f"{reading} {rows}"
        self.describe(reading)


def split_reading(model: float, noise: float, from_inputs: float = 0.0) -> str:
    """Describe the shares of model, noise and missing inputs in the mean variance."""
    total = model + noise + from_inputs
    if total <= 0:
        return tr("All predictions have a variance of zero.")
    reading = tr(
        "More data of this kind would remove {model:.0%} of the variance; {noise:.0%} is noise, "
        "which only better measurements reduce.",
        model=model / total,
        noise=noise / total,
    )
    if from_inputs > 0:
        share = from_inputs / total
        reading += " " + tr("{share:.0%} comes from missing or noisy inputs.", share=share)
    return reading
