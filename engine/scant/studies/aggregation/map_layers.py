"""Reading the polygons of a run from its metadata: layers of rows, and outlines.

They travel once, in the metadata (`map_shapes`); means and deviations follow as arrays in the same
order. Layers and outlines need NumPy alone, so that a page can read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from scant.tables import geometry

MAP = "map"  # key in the metadata

Ring = tuple[Float[np.ndarray, " v"], Float[np.ndarray, " v"]]
Outline = list[list[Ring]]  # polygons, each of an outer ring and of holes


@dataclass(frozen=True)
class Layer:
    """Rows drawn on one map: of one task, and of one time if the table has times.

    Attributes:
        name: Name of the layer.
        task: Name of the task.
        kind: Likelihood of the task.
        counts: Whether y are counts; the map shows their rates.
        start: Index of the layer's first row in the arrays.
        shape: Index of each row's polygon.
        y: Observed values, counts per unit of exposure; NaN where unknown.
        exposure: Exposure of each row; 1 by default.
        test: Rows that were held out of training.
        places: Names of the rows' polygons.
        threshold: Overall rate or mean of the training rows.
        lo: Lower bounds in further dimensions, such as time.
        hi: Upper bounds in further dimensions.
    """

    name: str
    task: str
    kind: str
    counts: bool
    start: int
    shape: Int[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    exposure: Float[np.ndarray, " n"]
    test: Bool[np.ndarray, " n"]
    places: list[str]
    threshold: float
    lo: list[float]
    hi: list[float]

    def of(self, array: np.ndarray) -> np.ndarray | None:
        """The layer's part of an array of all layers; None if that has another length."""
        own = np.asarray(array)[self.start : self.start + len(self.shape)]
        return own if len(own) == len(self.shape) else None


def layers(metadata: Mapping[str, Any]) -> list[Layer]:
    """The layers of a run's map, the scarce task's first; none of a run without a map."""
    made, start = list[Layer](), 0
    if MAP not in metadata:
        return made
    drawn = metadata[MAP]
    for one in drawn["layers"]:
        shape = np.asarray(one["shape"], dtype=np.int64)
        places = [drawn["places"][i] for i in one["shape"]]
        made.append(
            Layer(
                name=one["name"],
                task=metadata["tasks"][one["task"]],
                kind=metadata["likelihoods"][one["task"]],
                counts=bool(one["counts"]),
                start=start,
                shape=shape,
                y=np.asarray(one["y"], float),
                exposure=np.asarray(one.get("exposure") or np.ones(len(shape)), float),
                test=np.asarray(one["test"], bool),
                places=places,
                threshold=float(one["threshold"]),
                lo=one["lo"],
                hi=one["hi"],
            )
        )
        start += len(shape)
    return made


def outlines(metadata: Mapping[str, Any]) -> list[Outline]:
    """All polygons of a run's map, in metres."""
    drawn = metadata[MAP]
    (x0, y0), unit = drawn["origin"], drawn["unit"]
    return [
        [
            [(x0 + unit * np.asarray(x, float), y0 + unit * np.asarray(y, float)) for x, y in rings]
            for rings in shape
        ]
        for shape in drawn["shapes"]
    ]


def polygons_of(metadata: Mapping[str, Any], numbers: Sequence[int]) -> np.ndarray:
    """Some of these polygons as shapely's."""
    shapely, _ = geometry.libraries("the map")
    every = outlines(metadata)
    made = []
    for i in numbers:
        parts = [[np.column_stack(ring) for ring in rings] for rings in every[i]]
        made.append(shapely.make_valid(shapely.multipolygons(
            # One by one: holes of several lengths are no array.
            [shapely.Polygon(rings[0], rings[1:]) for rings in parts]
        )))  # fmt: skip
    return np.array(made, dtype=object)
