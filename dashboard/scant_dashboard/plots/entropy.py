"""Entropy of class probabilities, split into its reducible and irreducible parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.recall import MAX_TALL_ROWS, ROW, TIGHT
from scant_dashboard.plots.theme import BLUE, GRAY, models, new_figure, place_legend_above
from scant_dashboard.translate import tr

Rows = Float[np.ndarray, " n"]


class EntropyPlot(Plot):
    """Mean entropy of the predicted class on each output's held-out rows, in two parts.

    The mutual information of class and model is the part that more data would remove (Houlsby et
    al. 2011).
    """

    def __init__(self, title: str) -> None:
        self.bars = models.ColumnDataSource({"output": [], "model": [], "all": []})
        plot = new_figure("entropy", tr("mean entropy (nats)"), "", height=200,
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        plot.hbar("output", left=0, right="model", height=0.6, source=self.bars, color=BLUE,
                  fill_alpha=0.8, line_width=0,
                  legend_label=tr("more data would remove"))  # fmt: skip
        plot.hbar("output", left="model", right="all", height=0.6, source=self.bars, color=GRAY,
                  fill_alpha=0.8, line_width=0, legend_label=tr("would remain"))  # fmt: skip
        plot.x_range.start = 0
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(
        self,
        entropy: Rows,
        information: Rows,
        output: Int[np.ndarray, " n"] | Rows,
        outputs: Sequence[str],
    ) -> None:
        """Show the means over n rows for each output.

        Args:
            entropy: Entropy of each row's predictive class distribution, in nats.
            information: Mutual information of class and model, in nats.
            output: Index of each row's output.
            outputs: Names of the outputs.
        """
        output_index = np.asarray(output, int)
        count = np.maximum(np.bincount(output_index, minlength=len(outputs)), 1)
        total, model = (
            np.bincount(output_index, weights=part, minlength=len(outputs)) / count
            for part in (entropy, information)
        )
        names = [str(name) for name in outputs]
        self.bars.data = {"output": names, "model": model, "all": total}
        plot = self.figures[0]
        plot.y_range.factors = names[::-1]
        plot.height = 110 + (ROW if len(names) <= MAX_TALL_ROWS else TIGHT) * len(names)
        whole, part = float(np.mean(entropy)), float(np.mean(information))
        self.describe(
            tr(
                "The mean entropy is {entropy:.2f} nats, as of a choice among {choices:.1f} "
                "equally probable classes. More data of this kind would remove {share:.0%} of it.",
                entropy=whole,
                choices=np.exp(whole),
                share=part / max(whole, 1e-12),
            )
        )

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()
