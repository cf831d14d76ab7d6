"""The error against the number of missing bands, beside a baseline."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scant.dashboard.plots.score_curve import ScoreCurve
from scant.dashboard.plots.theme import BLUE, VERMILION, models

BASELINE = "random forest"


class MissingPlot(ScoreCurve):
    """RMSE of this model and of a baseline against the number of features removed at random."""

    def __init__(self, target: str = "z") -> None:
        super().__init__("Bands missing", {"missing": f"RMSE of {target}"}, "bands missing",
                         (BASELINE, "this model"), size=9,
                         looks=((VERMILION, "square"), (BLUE, "circle")))  # fmt: skip
        self.target = target
        self.figures[0].y_range.start = 0

    def show(self, missing: Float[np.ndarray, "3 c"]) -> None:
        """Show how many are missing (first row), RMSE of this model, RMSE of the baseline."""
        count, model, baseline = missing
        self.figures[0].xaxis.ticker = models.FixedTicker(ticks=[int(c) for c in count])
        pairs = "; ".join(f"{int(c)} missing: {m:.4f} against {b:.4f}" for c, m, b in missing.T)
        self.draw(
            f"RMSE of this model against {BASELINE}, on a part of the held-out rows: {pairs}.",
            [(count, baseline), (count, model)],
        )
