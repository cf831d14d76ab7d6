"""Predictions, curves and matrices of one run, which a figure of a publication shows, as tables.

Single predictions have rows with `PREDICTIONS`: the panel, the truth, the mean and the deviation.
Curves of replicas have rows with `CURVES`, and points of the data rows with `POINTS`. Symmetric
matrices have a row with `ENTRIES` for each entry of the upper triangle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

PREDICTIONS = ["panel", "x", "value", "spread"]
CELL = ["output", "replica", "x"]
CURVES = [*CELL, "mean", "std_f", "std_y"]  # std_f of the function, std_y of new measurements
POINTS = [*CELL, "y", "held_out"]  # held_out: 1 for points that are predicted, 0 for training
ENTRIES = ["matrix", "group", "name", "other_group", "other_name", "entry"]


class FigureData(NamedTuple):
    """Data of a figure.

    Attributes:
        figure: Key of the publication and name of the figure, such as "M23 Figure 5.16".
        rows: The data.
    """

    figure: str
    rows: pd.DataFrame


def entries(
    matrices: Mapping[str, Float[np.ndarray, "c c"]], names: Sequence[str], groups: Sequence[str]
) -> pd.DataFrame:
    """Return symmetric matrices as rows with `ENTRIES`.

    Args:
        matrices: Matrices by name.
        names: Names of the c rows, unique within a group.
        groups: Group of each row.
    """
    i, j = np.triu_indices(len(names))
    name, group = np.array(names), np.array(groups)
    parts = (
        (np.full(len(i), head), group[i], name[i], group[j], name[j], matrix[i, j])
        for head, matrix in matrices.items()
    )
    return pd.concat([pd.DataFrame(dict(zip(ENTRIES, part))) for part in parts], ignore_index=True)
