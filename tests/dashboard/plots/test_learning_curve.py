"""The curve of a score against how much was learned from."""

from __future__ import annotations

import numpy as np

from scant_dashboard.pages.multiview.scarcity import LearningCurvePlot
from scant_dashboard.plots.base import NOTHING


def test_every_draw_is_a_mark_and_lines_go_through_their_means() -> None:
    plot = LearningCurvePlot("How few?")
    result = {8: [np.array([0.5, 0.3]), np.array([0.7, np.nan])], 2: [np.array([0.2, 0.1])]}
    plot.show(result, ["DFGP", "kernels"], "F1", "groups")
    counts, scores = ([s.data[name] for s in plot.sources[:2]] for name in ("x", "score"))
    np.testing.assert_allclose(counts, [[2, 8]] * 2)
    np.testing.assert_allclose(scores, [[0.2, 0.6], [0.1, np.nan]], rtol=1e-6)
    assert sum(len(s.data["score"]) for s in plot.marks) == 6
    figure = plot.figures[0]
    assert figure.x_range.end > 8
    assert figure.y_range.end > 0.7
    assert figure.xaxis[0].axis_label == "groups trained on"
    assert plot.alt == (
        "F1 of held-out rows: DFGP 0.20, kernels 0.10 when trained on 2 groups; DFGP 0.60, "
        "kernels – when trained on 8 groups."
    )
    plot.clear()
    assert plot.alt == NOTHING
    assert not any(len(s.data["score"]) for s in plot.marks)
