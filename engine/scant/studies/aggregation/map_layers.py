"""Layers and outlines of a run's map, read from its metadata.

The metadata (`map_shapes`) contain the polygons once; means and deviations follow as arrays in the
same order. Layers and outlines need only NumPy, so that a page can read them.
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
        """Part of an array of all layers; None if the array has another length."""
        part = np.asarray(array)[self.start : self.start + len(self.shape)]
        return part if len(part) == len(self.shape) else None


def layers(metadata: Mapping[str, Any]) -> list[Layer]:
    """Layers of a run's map, those of the scarce task first; none without a map."""
    result, start = list[Layer](), 0
    if MAP not in metadata:
        return result
    map_metadata = metadata[MAP]
    for layer in map_metadata["layers"]:
        shape = np.asarray(layer["shape"], dtype=np.int64)
        names = [map_metadata["places"][i] for i in layer["shape"]]
        result.append(
            Layer(
                name=layer["name"],
                task=metadata["tasks"][layer["task"]],
                kind=metadata["likelihoods"][layer["task"]],
                counts=bool(layer["counts"]),
                start=start,
                shape=shape,
                y=np.asarray(layer["y"], float),
                exposure=np.asarray(layer.get("exposure") or np.ones(len(shape)), float),
                test=np.asarray(layer["test"], bool),
                places=names,
                threshold=float(layer["threshold"]),
                lo=layer["lo"],
                hi=layer["hi"],
            )
        )
        start += len(shape)
    return result


def outlines(metadata: Mapping[str, Any]) -> list[Outline]:
    """All polygons of a run's map, in meters."""
    map_metadata = metadata[MAP]
    (x0, y0), unit = map_metadata["origin"], map_metadata["unit"]
    return [
        [
            [(x0 + unit * np.asarray(x, float), y0 + unit * np.asarray(y, float)) for x, y in rings]
            for rings in shape
        ]
        for shape in map_metadata["shapes"]
    ]


def polygons_of(metadata: Mapping[str, Any], indices: Sequence[int]) -> np.ndarray:
    """Selected polygons as shapely geometries."""
    shapely, _ = geometry.libraries("the map")
    all_outlines = outlines(metadata)
    polygons = []
    for i in indices:
        parts = [[np.column_stack(ring) for ring in rings] for rings in all_outlines[i]]
        polygons.append(shapely.make_valid(shapely.multipolygons(
            # One by one, since holes of several lengths are no array.
            [shapely.Polygon(rings[0], rings[1:]) for rings in parts]
        )))  # fmt: skip
    return np.array(polygons, dtype=object)
