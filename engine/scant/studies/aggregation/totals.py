"""Predicted parts against observed totals: do the parts of a polygon add up to what it was?

Counts add up; averages do by their areas. The deviation of the sum is the model's own, of the
average over all of the parts at once, for the errors of neighbors go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from scant.studies.aggregation import map_layers, polygons
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.map_layers import Layer
from scant.studies.aggregation.settings import COUNTED
from scant.studies.aggregation.supports import Supports
from scant.tables import geometry

INSIDE = 0.9  # of a part's points lie in its whole: borders on a page are simplified
COVERED = 0.03  # of a whole's area may its parts' differ by
WIDE = 1.959964
MAX_WHOLES = 200  # of a report
ARRAY = ("parts", "observed", "predicted", "std", "std_y", "inside95")  # of a report's `totals`
_MAX_POINTS = 1500  # of a whole


def areas_of(table: pd.DataFrame, system: str) -> Float[np.ndarray, " n"]:
    """Areas of a table's geometries in a projection, in square meters."""
    shapely, _ = geometry.libraries("the table")
    cells = geometry.words(table[geometry.COLUMN]).tolist()
    drawn = geometry.geometries(cells, "the table", np.arange(2, len(table) + 2))
    made: np.ndarray = shapely.area(polygons.projected(drawn, system))
    return made


def of_run(fitted: FittedMTGPA, on_map: Supports | None) -> pd.DataFrame | None:
    """Totals of the run's held-out polygons that are parts of observed ones.

    Args:
        fitted: The model.
        on_map: Its rows in the order of the map.
    """
    if on_map is None or not on_map.test.any():
        return None
    shape = np.concatenate([layer.shape for layer in map_layers.layers(fitted.metadata)])
    held = np.flatnonzero(on_map.test)
    areas = 1e6 * np.asarray(fitted.metadata[map_layers.MAP]["areas"], float)[shape[held]]
    return totals(fitted, on_map.at(held), areas, MAX_WHOLES)


def totals(
    fitted: FittedMTGPA,
    parts: Supports,
    areas: Float[np.ndarray, " n"],
    most: int | None = None,
) -> pd.DataFrame | None:
    """A row for each observed polygon that some rows make up; None where none is of two or more.

    Args:
        fitted: The model.
        parts: Rows to predict.
        areas: Their areas in square meters; 0 of points.
        most: Maximum number of observed polygons; None: all.

    Returns:
        Columns: `task` and `place` of the observed polygon; `parts`, their number; `observed`, its
        value; `predicted`, the sum of its parts (of averages: by their areas); `std` of that;
        `std_y` of a new observation of the whole; `inside95`, 1 if the observation lies in the 95%
        interval of such a new observation.
    """
    if map_layers.MAP not in fitted.metadata or parts.inside is None:
        return None
    shapely, _ = geometry.libraries("the map")
    rows: list[Any] = []
    for layer in map_layers.layers(fitted.metadata):
        if layer.task in fitted.classes:  # classes have no totals
            continue
        whole_areas = 1e6 * np.asarray(fitted.metadata[map_layers.MAP]["areas"], float)[layer.shape]
        for i, own in _nested(shapely, fitted, layer, parts, areas):
            whole = abs(areas[own].sum() / whole_areas[i] - 1) <= COVERED
            if whole and (most is None or len(rows) < most):
                rows.append(_row(fitted, layer, i, parts.at(own), areas[own]))
    made = pd.DataFrame(rows)
    return made if len(made) and (made["parts"] > 1).any() else None


def sentence(table: pd.DataFrame) -> str:
    """A summary of the table."""
    off = abs(table["predicted"].sum() / table["observed"].sum() - 1)
    return (
        f"Parts against totals: {int(table['parts'].sum()):,} rows make up {len(table):,} observed "
        f"polygons; together their predictions differ by {100 * off:.2g}% from what was observed, "
        f"and {100 * table['inside95'].mean():.0f}% of the totals lie in their 95% interval."
    )


def _nested(
    shapely: Any,
    fitted: FittedMTGPA,
    layer: Layer,
    parts: Supports,
    areas: Float[np.ndarray, " n"],
) -> Iterator[tuple[int, Int[np.ndarray, " p"]]]:
    """Rows of a layer that were learned from, each with the parts that lie in it."""
    assert parts.inside is not None
    bounds = np.hstack([parts.lo[:, 2:], parts.hi[:, 2:]])
    same = np.isclose(bounds, [*layer.lo, *layer.hi]).all(1) & (areas > 0)
    mine = np.flatnonzero((parts.task == fitted.tasks.index(layer.task)) & same)
    wholes = np.flatnonzero(~layer.test & np.isfinite(layer.y))
    if not len(mine) or not len(wholes):
        return
    shapes = map_layers.polygons_of(fitted.metadata, layer.shape[wholes].tolist())
    boxes = shapely.box(*parts.lo[mine, :2].T, *parts.hi[mine, :2].T)
    found: dict[int, list[int]] = {}
    for part, whole in zip(*shapely.STRtree(shapes).query(boxes)):
        points = parts.inside[mine[part]]
        within = shapely.contains_xy(shapes[whole], points[:, 0], points[:, 1])
        if (points[:, 2] * within).sum() >= INSIDE:
            found.setdefault(int(whole), []).append(int(mine[part]))
    for whole, members in found.items():
        yield int(wholes[whole]), np.array(members)


def _row(
    fitted: FittedMTGPA, layer: Layer, i: int, own: Supports, areas: Float[np.ndarray, " p"]
) -> dict[str, Any]:
    """One observed polygon beside its parts."""
    task = fitted.tasks.index(layer.task)
    # Counts add up where the parts tell their exposures; else rates are compared, as averages are.
    told = bool((own.exposure != 1).any())
    shares = own.exposure if told and layer.kind in COUNTED else areas
    units = float(own.exposure.sum()) if told and layer.counts else 1.0
    rates = fitted.moments(space.supports_of(own, np.arange(len(own)), fitted.device), task)[0]
    observed = layer.y[i] * (layer.exposure[i] if units != 1 else 1.0)
    predicted = units * (shares * rates).sum() / shares.sum()
    # An observed rate is known as well as its own exposure makes it.
    exposure = units if units != 1 else float(layer.exposure[i])
    whole = _together(own, shares / shares.sum(), exposure)
    support = space.supports_of(whole, np.arange(1), fitted.device)
    by = torch.tensor([exposure], dtype=torch.float64).to(fitted.device)
    _, std, new = (float(v[0]) for v in fitted.moments(support, task, by))
    if layer.counts:
        std, new = std * units / exposure, new * units / exposure
    return {
        "task": layer.name,
        "place": layer.places[i],
        "parts": len(own),
        "observed": float(observed),
        "predicted": float(predicted),
        "std": std,
        "std_y": new,
        "inside95": int(abs(observed - predicted) <= WIDE * new),
    }


def _together(own: Supports, shares: Float[np.ndarray, " p"], exposure: float) -> Supports:
    """Parts as one support: their points in proportion to the parts' shares."""
    assert own.inside is not None
    inside = own.inside.copy()
    inside[..., 2] *= shares[:, None]
    points = inside.reshape(-1, 3)
    points = points[np.argsort(-points[:, 2])][:_MAX_POINTS]
    points = points[points[:, 2] > 0]
    points[:, 2] /= points[:, 2].sum()
    return replace(
        own.at(np.zeros(1, dtype=np.int64)),
        lo=own.lo.min(0)[None],
        hi=own.hi.max(0)[None],
        exposure=np.array([exposure]),
        inside=points[None],
        covariates=None if own.covariates is None else (shares @ own.covariates)[None],
    )
