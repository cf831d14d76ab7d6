"""Predicted parts of polygons against observed totals.

Counts add up; averages are weighted by area. The deviation of the sum is the model's own, of the
average over all of the parts at once, because errors of neighbors are correlated.
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

INSIDE = 0.9  # minimum share of a part's points in its whole; borders on a page are simplified
COVERED = 0.03  # maximum difference of areas of parts and whole, as a share
WIDE = 1.959964  # deviations, half-width of a 95% interval
MAX_WHOLES = 200  # maximum number in a report
ARRAY = ("parts", "observed", "predicted", "std", "std_y", "inside95")  # of a report's `totals`
_MAX_POINTS = 1500  # per whole


def areas_of(table: pd.DataFrame, system: str) -> Float[np.ndarray, " n"]:
    """Areas of a table's geometries in a projection, in square meters."""
    shapely, _ = geometry.libraries("the table")
    cells = geometry.words(table[geometry.COLUMN]).tolist()
    geometries = geometry.geometries(cells, "the table", np.arange(2, len(table) + 2))
    areas: np.ndarray = shapely.area(polygons.projected(geometries, system))
    return areas


def of_run(fitted: FittedMTGPA, on_map: Supports | None) -> pd.DataFrame | None:
    """Totals of the run's held-out polygons that are parts of observed ones.

    Args:
        fitted: The model.
        on_map: Rows of the run in the order of the map.
    """
    if on_map is None or not on_map.test.any():
        return None
    shape = np.concatenate([layer.shape for layer in map_layers.layers(fitted.metadata)])
    held_out = np.flatnonzero(on_map.test)
    areas = 1e6 * np.asarray(fitted.metadata[map_layers.MAP]["areas"], float)[shape[held_out]]
    return totals(fitted, on_map.at(held_out), areas, MAX_WHOLES)


def totals(
    fitted: FittedMTGPA,
    parts: Supports,
    areas: Float[np.ndarray, " n"],
    max_wholes: int | None = None,
) -> pd.DataFrame | None:
    """Table with a row for each observed polygon that rows make up; None if none has several.

    Args:
        fitted: The model.
        parts: Rows to predict.
        areas: Their areas in square meters; 0 of points.
        max_wholes: Maximum number of observed polygons; None: all.

    Returns:
        Columns: `task` and `place` of the observed polygon; `parts`, their number; `observed`, its
        value; `predicted`, the sum of its parts (averages are weighted by area), and its `std`;
        `std_y` of a new observation of the whole; `inside95`, 1 if the observation lies in the 95%
        interval of a new one.
    """
    if map_layers.MAP not in fitted.metadata or parts.inside is None:
        return None
    shapely, _ = geometry.libraries("the map")
    rows: list[Any] = []
    for layer in map_layers.layers(fitted.metadata):
        if layer.task in fitted.classes:  # classes have no totals
            continue
        whole_areas = 1e6 * np.asarray(fitted.metadata[map_layers.MAP]["areas"], float)[layer.shape]
        for i, indices in _nested(shapely, fitted, layer, parts, areas):
            complete = abs(areas[indices].sum() / whole_areas[i] - 1) <= COVERED
            if complete and (max_wholes is None or len(rows) < max_wholes):
                rows.append(_row(fitted, layer, i, parts.at(indices), areas[indices]))
    table = pd.DataFrame(rows)
    return table if len(table) and (table["parts"] > 1).any() else None


def sentence(table: pd.DataFrame) -> str:
    """Summary of the table."""
    difference = abs(table["predicted"].sum() / table["observed"].sum() - 1)
    return (
        f"Parts against totals: {int(table['parts'].sum()):,} rows make up {len(table):,} observed "
        f"polygons; together their predictions differ by {100 * difference:.2g}% from what was "
        f"observed, and {100 * table['inside95'].mean():.0f}% of the totals lie in their 95% "
        "interval."
    )


def _nested(
    shapely: Any,
    fitted: FittedMTGPA,
    layer: Layer,
    parts: Supports,
    areas: Float[np.ndarray, " n"],
) -> Iterator[tuple[int, Int[np.ndarray, " p"]]]:
    """Training rows of a layer, each with the parts inside it."""
    assert parts.inside is not None
    bounds = np.hstack([parts.lo[:, 2:], parts.hi[:, 2:]])
    same = np.isclose(bounds, [*layer.lo, *layer.hi]).all(1) & (areas > 0)
    candidates = np.flatnonzero((parts.task == fitted.tasks.index(layer.task)) & same)
    wholes = np.flatnonzero(~layer.test & np.isfinite(layer.y))
    if not len(candidates) or not len(wholes):
        return
    shapes = map_layers.polygons_of(fitted.metadata, layer.shape[wholes].tolist())
    boxes = shapely.box(*parts.lo[candidates, :2].T, *parts.hi[candidates, :2].T)
    parts_by_whole: dict[int, list[int]] = {}
    for part, whole in zip(*shapely.STRtree(shapes).query(boxes)):
        points = parts.inside[candidates[part]]
        within = shapely.contains_xy(shapes[whole], points[:, 0], points[:, 1])
        if (points[:, 2] * within).sum() >= INSIDE:
            parts_by_whole.setdefault(int(whole), []).append(int(candidates[part]))
    for whole, indices in parts_by_whole.items():
        yield int(wholes[whole]), np.array(indices)


def _row(
    fitted: FittedMTGPA, layer: Layer, i: int, parts: Supports, areas: Float[np.ndarray, " p"]
) -> dict[str, Any]:
    """Compare an observed polygon with its parts."""
    task = fitted.tasks.index(layer.task)
    # Counts add up if the parts have exposures; else rates are compared, like averages.
    has_exposures = bool((parts.exposure != 1).any())
    shares = parts.exposure if has_exposures and layer.kind in COUNTED else areas
    units = float(parts.exposure.sum()) if has_exposures and layer.counts else 1.0
    rates = fitted.moments(space.supports_of(parts, np.arange(len(parts)), fitted.device), task)[0]
    observed = layer.y[i] * (layer.exposure[i] if units != 1 else 1.0)
    predicted = units * (shares * rates).sum() / shares.sum()
    # The precision of an observed rate depends on its own exposure.
    exposure = units if units != 1 else float(layer.exposure[i])
    whole = _together(parts, shares / shares.sum(), exposure)
    support = space.supports_of(whole, np.arange(1), fitted.device)
    exposures = torch.tensor([exposure], dtype=torch.float64).to(fitted.device)
    _, std, new = (float(v[0]) for v in fitted.moments(support, task, exposures))
    if layer.counts:
        std, new = std * units / exposure, new * units / exposure
    return {
        "task": layer.name,
        "place": layer.places[i],
        "parts": len(parts),
        "observed": float(observed),
        "predicted": float(predicted),
        "std": std,
        "std_y": new,
        "inside95": int(abs(observed - predicted) <= WIDE * new),
    }


def _together(parts: Supports, shares: Float[np.ndarray, " p"], exposure: float) -> Supports:
    """Join parts to one support, with points weighted by the parts' shares."""
    assert parts.inside is not None
    inside = parts.inside.copy()
    inside[..., 2] *= shares[:, None]
    points = inside.reshape(-1, 3)
    points = points[np.argsort(-points[:, 2])][:_MAX_POINTS]
    points = points[points[:, 2] > 0]
    points[:, 2] /= points[:, 2].sum()
    return replace(
        parts.at(np.zeros(1, dtype=np.int64)),
        lo=parts.lo.min(0)[None],
        hi=parts.hi.max(0)[None],
        exposure=np.array([exposure]),
        inside=points[None],
        covariates=None if parts.covariates is None else (shares @ parts.covariates)[None],
    )
