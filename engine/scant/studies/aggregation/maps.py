"""Posterior of the polygons of a run's map, and of any polygon in a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from scant.errors import BadInput
from scant.studies.aggregation import map_layers, map_shapes, mean_rate, polygons
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.capacity import inside_each
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.population import weighted
from scant.studies.aggregation.settings import COUNTED, AggregationSettings
from scant.studies.aggregation.supports import Supports
from scant.studies.base import ArraySpec
from scant.tables import geometry

ARRAYS = ("map_mean", "map_std")
PLACE = "area_name"  # the column with the names of the polygons
EXCEEDANCE = ArraySpec(
    "exceedance", "n", "probability", "probability that the average over the row's polygon (of "
    "counts, the rate per unit of exposure) is above the overall average of its task",
)  # fmt: skip
MOST_LIVE = 6000  # points inside all polygons of a snapshot
GRID = 200
DEVIATIONS = 4.0  # width of a density on either side of the mean


def shown(
    table: pd.DataFrame,
    observed: Supports,
    rows: Bool[np.ndarray, " n"],
    rates: Sequence[str],
    scarce: str,
) -> tuple[dict[str, Any], Supports | None]:
    """Metadata of a run's map, and the rows on it.

    Args:
        table: The rows of the run.
        observed: The rows as arrays.
        rows: Mask of the training rows.
        rates: Kind of values of each task (`rates_of`).
        scarce: Name of the scarce task.

    Returns:
        An empty dictionary and None if no row is a polygon.
    """
    if observed.inside is None:
        return {}, None
    cells = geometry.words(table[geometry.COLUMN]).tolist()
    geometries = geometry.geometries(cells, "the table", np.arange(2, len(table) + 2))
    flat = polygons.projected(geometries, observed.system)
    names = None
    if PLACE in table:
        names = ["unnamed" if pd.isna(v) else str(v) for v in table[PLACE]]
    metadata, order = map_shapes.described(flat, observed, rows, rates, scarce, names)
    return {map_layers.MAP: metadata}, observed.at(order)


def rates_of(settings: AggregationSettings, kinds: Sequence[str]) -> list[str]:
    """Kind of values of tasks with these likelihoods: counts, rates or values."""
    counted = map_shapes.RATES if settings.rate_per else map_shapes.COUNTS
    return [counted if kind in COUNTED else map_shapes.VALUES for kind in kinds]


def posterior(
    fitted: FittedMTGPA, rows: Supports | None, live: bool = False
) -> dict[str, np.ndarray]:
    """Means and deviations of the averages or rates of rows; empty without rows.

    Args:
        fitted: The model.
        rows: Rows of the map, from `shown`.
        live: Whether to use only the centers of the polygons if they are many.
    """
    if rows is None or rows.inside is None:
        return dict(zip(ARRAYS, np.empty((2, 0))))
    if live and rows.inside.shape[0] * rows.inside.shape[1] > MOST_LIVE:
        weight = rows.inside[..., 2:]
        center = (rows.inside[..., :2] * weight).sum(1, keepdims=True)
        rows = replace(rows, inside=np.concatenate([center, np.ones_like(center[..., :1])], 2))
    result = np.full((2, len(rows)), np.nan)
    for t in np.unique(rows.task):
        in_task = rows.task == t
        result[:, in_task] = fitted.moments(
            space.supports_of(rows, in_task, fitted.device), int(t)
        )[:2]
    return dict(zip(ARRAYS, result))


def exceedances(
    fitted: FittedMTGPA, rows: Supports, moments: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Column `EXCEEDANCE` of rows with these columns `mean` and `std`.

    The threshold of a task is its overall rate or mean; without a map there is no column.
    """
    levels = {layer.task: layer.threshold for layer in map_layers.layers(fitted.metadata)}
    if not levels:
        return {}
    result = np.full(len(rows), np.nan)
    rates = rates_of(fitted.settings, fitted.kinds)
    for t, (task, kind) in enumerate(zip(fitted.tasks, fitted.kinds)):
        in_task = rows.task == t
        units = rows.exposure[in_task] if rates[t] == map_shapes.COUNTS else 1.0
        mean, std = moments["mean"][in_task] / units, moments["std"][in_task] / units
        if task in levels and in_task.any():
            result[in_task] = mean_rate.exceedance(kind, mean, std, levels[task])
    return {EXCEEDANCE.name: result}


def polygon(fitted: FittedMTGPA, query: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Posterior of a task's average or rate over one polygon.

    Args:
        fitted: The model.
        query: `text`: well-known text or four bounds in degrees; or `x` and `y`: corners in
            meters; `task`; `lo` and `hi`: bounds in further dimensions; `threshold`.

    Raises:
        BadInput: The run has no map, or polygon, task or bounds are invalid.
    """
    if not fitted.whole.system:
        raise BadInput("This run was not trained on a map; ask for a box.")
    shapely, _ = geometry.libraries("the map")
    shape = _requested_polygon(shapely, fitted.whole.system, query)
    task = fitted.task(str(query.get("task", fitted.scarce)))
    further = list(fitted.dims[len(polygons.DIMS) :])
    further_bounds = [np.asarray(query.get(name, ()), float) for name in ("lo", "hi")]
    if any(len(e) != len(further) or not np.isfinite(e).all() for e in further_bounds):
        raise BadInput(f"A polygon needs a lower and an upper bound of {', '.join(further)}.")
    lo, hi = np.minimum(*further_bounds), np.maximum(*further_bounds)
    count = inside_each(fitted.settings, 1)
    inside = [polygons.points(shapely.to_wkb(shape), count)]
    if fitted.people is not None:
        locations = polygons.homes(fitted.people, fitted.whole.system)
        inside, _ = weighted(np.array([shape]), inside, locations, fitted.people.number, count)
    bounds = np.array(shapely.bounds(shape)).reshape(2, 2)
    covariates = fitted.model.prior.covariates
    unknown = np.full(1, np.nan)
    row = Supports(
        tasks=tuple(fitted.tasks),
        dims=tuple(fitted.dims),
        task=np.array([task]),
        lo=np.concatenate([bounds[0], lo])[None],
        hi=np.concatenate([bounds[1], hi])[None],
        y=unknown,
        y_err=unknown,
        truth=unknown,
        exposure=np.ones(1),
        test=np.zeros(1, dtype=bool),
        inside=inside[0][None],
        system=fitted.whole.system,
        covariates=np.zeros((1, covariates)) if covariates else None,  # their means
    )
    support = space.supports_of(row, np.arange(1), fitted.device)
    mean, std, new = (float(v[0]) for v in fitted.moments(support, task))
    return _answer(shapely, fitted, shape, fitted.kinds[task], (mean, std, new), query)


def _answer(
    shapely: Any,
    fitted: FittedMTGPA,
    shape: Any,
    kind: str,
    moments: tuple[float, float, float],
    query: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    mean, std, _ = moments
    m, s = np.array([mean]), np.array([std])
    tails = np.array([3e-5, 1 - 3e-5])
    low, high = mean_rate.quantiles(kind, m, s, tails)[:, 0].tolist()
    grid = np.linspace(low, high, GRID)
    rings = [
        shapely.get_coordinates(ring)
        for part in shapely.get_parts(shape)
        for ring in (part.exterior, *part.interiors)
    ]
    outline = [np.vstack([ring, np.full((1, 2), np.nan)]) for ring in rings]
    whole = fitted.whole
    trained = ~whole.test & np.isfinite(whole.y)
    corners = np.concatenate([whole.lo[trained, :2], whole.hi[trained, :2]])
    region = shapely.box(*corners.min(0), *corners.max(0))
    threshold = float(query.get("threshold", np.nan))
    above = mean_rate.exceedance(kind, m, s, threshold) if np.isfinite(threshold) else m + np.nan
    return {
        "grid": grid,
        "density": mean_rate.density(kind, mean, std, grid),
        "moments": np.array(moments),
        "interval": mean_rate.interval(kind, m, s)[:, 0],
        "exceedance": above,
        "outline": np.concatenate(outline).T,
        "area": np.array([shapely.area(shape) / 1e6]),
        "outside": np.array([1 - shapely.area(shape & region) / shapely.area(shape)]),
    }


def _requested_polygon(shapely: Any, system: str, query: Mapping[str, Any]) -> Any:
    """Polygon of a query, in meters."""
    if text := str(query.get("text", "")).strip():
        cells = [_as_text(text)]
        try:
            geometries = geometry.geometries(cells, "Your polygon", np.array([1]))
        except BadInput as error:
            raise BadInput(str(error).replace(", column 'geometry', row 1", "")) from None
        shape = polygons.projected(geometries, system)[0]
    else:
        corners = np.column_stack([np.asarray(query.get(n, ()), float) for n in "xy"])
        if len(corners) < 3 or not np.isfinite(corners).all():
            raise BadInput("A polygon needs three corners or more; draw it again.")
        shape = shapely.make_valid(shapely.polygons(corners))
        areal = shapely.get_parts(shape)
        shape = shapely.union_all(areal[shapely.area(areal) > 0])
    if not shapely.area(shape) > 0:
        raise BadInput("Your polygon has no area; give one with three corners or more.")
    return shape


def _as_text(text: str) -> str:
    """Well-known text; four numbers are bounds: west, south, east, north."""
    try:
        bounds = [float(part) for part in text.replace(";", ",").split(",")]
    except ValueError:
        return text
    if len(bounds) != 4:
        raise BadInput(
            f"Got {len(bounds)} numbers where a box needs four: west, south, east, north in "
            "degrees."
        )
    west, south, east, north = bounds
    if not (west < east and south < north):
        raise BadInput("A box needs west below east and south below north, in degrees.")
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    return f"POLYGON (({', '.join(f'{x} {y}' for x, y in corners)}))"
