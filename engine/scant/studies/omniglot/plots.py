"""The omniglot study's figures for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scant.plotting.elements import Elements


def figures(made: Elements) -> dict[str, Any]:
    """Recall of each output, and the coregionalization of classes and of outputs."""
    a, metadata = made.arrays, made.metadata
    outputs = list(metadata["outputs"])
    order = np.asarray(a["order"], int)
    # Two outputs may have a class of one name; rows of a heat map need distinct names.
    classes = [" · ".join(dict.fromkeys(metadata["shown"][i])) for i in order]
    return {
        "Recall of held-out rows": made.bars(outputs, a["accuracy"], "accuracy"),
        "How the classes go together": made.matrix(
            a["correlation"][np.ix_(order, order)], classes, classes, "correlation"
        ),
        "How the outputs go together": made.matrix(a["global"], outputs, outputs, "global"),
    }
