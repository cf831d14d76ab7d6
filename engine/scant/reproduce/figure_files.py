"""Files with what a figure shows of one run, and the arrays that are drawn.

`scant reproduce` writes a file of each such figure to `figures` in its output folder; those in
`data/results/figures` are drawn on the publications page.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from scant.package_data import package_file
from scant.studies.figure_data import CELL, CURVES, ENTRIES, FigureData

FOLDER = "figures"
PRECISION = "%.3g"  # half a percent of a value at most: a pixel or two of a panel
TOGETHER = " and "  # between the outputs of a pair


class ReplicaCurves(NamedTuple):
    """Curves and points of s outputs with up to r replicas.

    Attributes:
        outputs: Names of the outputs.
        replicas: Names of the replicas of each output.
        grid: Inputs of the curves.
        mean: Means of the function; NaN beyond an output's replicas, as the next two.
        std_f: Standard deviations of the function.
        std_y: Standard deviations of new measurements.
        x: Inputs of the points.
        y: Their values.
        output: Index of the output of each.
        replica: Index of the replica of each within its output.
        held_out: Whether each was held out.
    """

    outputs: list[str]
    replicas: list[list[str]]
    grid: Float[np.ndarray, " g"]
    mean: Float[np.ndarray, "s r g"]
    std_f: Float[np.ndarray, "s r g"]
    std_y: Float[np.ndarray, "s r g"]
    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    output: Int[np.ndarray, " n"]
    replica: Int[np.ndarray, " n"]
    held_out: Bool[np.ndarray, " n"]


class Matrices(NamedTuple):
    """Symmetric matrices over the same c rows and columns.

    Attributes:
        heads: Name of each matrix.
        names: Names of the rows.
        groups: Group of each row.
        entries: Entries.
    """

    heads: list[str]
    names: list[str]
    groups: list[str]
    entries: Float[np.ndarray, "q c c"]


def write(data: FigureData, out: Path) -> None:
    """Write the data of a figure to its file in an output folder."""
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    file = folder / _name(data.figure)
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(data.rows.to_csv(index=False, float_format=PRECISION), encoding="utf-8")
    temporary.replace(file)


def read(figure: str) -> pd.DataFrame:
    """Read the stored data of a figure, such as "M23 Figure 5.16"."""
    text = package_file("results", FOLDER, _name(figure)).read_text(encoding="utf-8")
    names = dict.fromkeys((*CELL[:2], *ENTRIES[:-1]), str)
    return pd.read_csv(StringIO(text), dtype=names)


def _name(figure: str) -> str:
    return f"{figure.lower().replace(' ', '_')}.csv"


def replica_curves(rows: pd.DataFrame) -> ReplicaCurves:
    """Arrange rows of curves, all with the same inputs, and of points."""
    cells = rows[CELL[:2]].drop_duplicates()
    replicas = {
        str(name): list(own) for name, own in cells.groupby("output", sort=False)["replica"]
    }
    outputs = list(replicas)
    d = rows["output"].map(outputs.index).to_numpy()
    r = np.array([replicas[o].index(k) for o, k in zip(rows["output"], rows["replica"])])
    is_curve = rows["mean"].notna().to_numpy()
    grid, g = np.unique(rows["x"][is_curve], return_inverse=True)
    values = np.full((3, len(outputs), max(map(len, replicas.values())), len(grid)), np.nan)
    values[:, d[is_curve], r[is_curve], g] = rows.loc[is_curve, CURVES[3:]].to_numpy().T
    mean, std_f, std_y = values
    points = rows[~is_curve]
    return ReplicaCurves(
        outputs,
        list(replicas.values()),
        grid,
        mean,
        std_f,
        std_y,
        points["x"].to_numpy(),
        points["y"].to_numpy(),
        d[~is_curve],
        r[~is_curve],
        points["held_out"].to_numpy() == 1,
    )


def matrices(rows: pd.DataFrame) -> Matrices:
    """Arrange rows of the entries of symmetric matrices."""
    heads, head = np.unique(rows["matrix"], return_inverse=True)
    keys = list(dict.fromkeys(zip(rows["group"], rows["name"])))
    i = np.array([keys.index(key) for key in zip(rows["group"], rows["name"])])
    j = np.array([keys.index(key) for key in zip(rows["other_group"], rows["other_name"])])
    values = np.full((len(heads), len(keys), len(keys)), np.nan)
    values[head, i, j] = values[head, j, i] = rows["entry"]
    groups, names = map(list, zip(*keys))
    return Matrices(list(heads), names, groups, values)


def pairs(results: pd.DataFrame) -> Matrices:
    """Arrange results as a matrix for each experiment, whose methods are named "A and B"."""
    pair = results["method"].str.partition(TOGETHER)
    first, second = pair[0].to_numpy(), pair[2].to_numpy()
    rows = zip(results["experiment"], first, first, second, second, results["ours"])
    return matrices(pd.DataFrame(rows, columns=ENTRIES))
