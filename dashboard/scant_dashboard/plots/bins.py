"""Point metrics by bin of the truth: where along the range a model is biased, wide or wild."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import BLUE, GRAY, models, new_figure, tick_labels
from scant_dashboard.translate import later, ntr, tr


class BinsPlot(Plot):
    """Bias, σ_MAD and outlier rate in bins of the truth, side by side."""

    def __init__(self, target: str = "z", title: str = later("Bin by bin")) -> None:
        self.target = target = tr(target)
        self.rows = columns("left", "right", "middle", "bias", "mad", "outliers")
        figures = []
        for name, label in (
            ("bias", tr("bias")),
            ("mad", "σ_MAD"),
            ("outliers", tr("outlier rate")),
        ):
            plot = new_figure(f"bins-{name}", tr("true {target}", target=target), label, height=240)
            plot.add_layout(
                models.Span(location=0, dimension="width", line_color=GRAY, line_alpha=0.6)
            )
            plot.segment("left", name, "right", name, source=self.rows, color=BLUE, line_width=3)
            plot.scatter("middle", name, source=self.rows, color=BLUE, size=7)
            if name == "outliers":
                plot.yaxis.formatter = tick_labels("0.[0]%")
                plot.y_range.start = 0
            figures.append(plot)
        super().__init__(title, *figures)

    def show(self, bins: Float[np.ndarray, "6 q"]) -> None:
        """Show q bins: low edge, high edge, bias, σ_MAD, outlier rate, rows; skip empty ones."""
        left, right, bias, mad, outliers, count = bins[:, bins[5] > 0]
        update_source(
            self.rows,
            left=left,
            right=right,
            middle=(left + right) / 2,
            bias=bias,
            mad=mad,
            outliers=outliers,
        )
        if not len(left):
            self.clear()  # keeps the frames, which Bokeh cannot draw without data
            self.alt = tr("No bin has the twenty held-out rows that scores need.")
            return
        worst = int(np.argmax(np.abs(bias)))
        self.describe(
            ntr(
                "{n} bin, drawn as a line. The bias is largest between {left:.2f} and {right:.2f} "
                "({bias:+.4f}, {rows} rows); σ_MAD is {low:.4f} to {high:.4f}, and a bin has at "
                "most {outliers:.1%} outliers.",
                "{n} bins, each drawn as a line. The bias is largest between {left:.2f} and "
                "{right:.2f} ({bias:+.4f}, {rows} rows); σ_MAD is {low:.4f} to {high:.4f}, and a "
                "bin has at most {outliers:.1%} outliers.",
                len(left),
                left=left[worst],
                right=right[worst],
                bias=bias[worst],
                rows=int(count[worst]),
                low=mad.min(),
                high=mad.max(),
                outliers=outliers.max(),
            )
        )
