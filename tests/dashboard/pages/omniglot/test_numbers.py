"""A run on columns of numbers, on the page that shows images."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant.events import Snapshot
from scant.studies.omniglot.preprocessing import examples
from scant.studies.omniglot.table import of
from scant_dashboard.pages.omniglot.gallery import NO_IMAGES, Examples


def test_a_run_on_numbers_has_no_examples_to_draw() -> None:
    frame = pd.DataFrame(
        {"output": ["a", "a", "b", "b"], "label": ["x", "y", "x", "y"], "u": [1.0, 2.0, 3.0, 4.0]}
    )
    arrays = examples(of(frame), None, np.arange(4), np.full((4, 2), 0.5))
    assert arrays["examples"].shape == (4, 0, 0)
    view = Examples()
    view.update(Snapshot(1, arrays), {"outputs": ["a", "b"], "classes": [["x", "y"], ["x", "y"]]})
    assert view.alt == NO_IMAGES
