"""Limits on the cost of a run: training time and worker memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from scant.data_dir import fetched_path
from scant.errors import BadInput, NotFound
from scant.learners import cost as rivals
from scant.store import Store
from scant.studies.auto import training_seconds
from scant.studies.base import Counts, Entry
from scant.studies.split import EVERYTHING
from scant.tables.schema import counts

HOURS = 2.0  # default time limit of a run
ESTIMATE_FACTOR = 2.0  # possible error of an estimate (see the catalog)
# Of a second fit, on everything, while the first one is kept: measured 594 instead of 505 MB
# (multiview), 866 instead of 801 MB (aggregation).
REFIT_MEMORY = 1.2
IMAGES = ("image", "whole")  # columns of files in base64
MOST_CELLS = 10_000_000  # maximum size of a table whose labels are counted and not guessed


@dataclass(frozen=True)
class Limits:
    """Limits set by the operator.

    Attributes:
        per_owner: Maximum number of queued or running runs of a visitor.
        per_address: Maximum number of queued or running runs from a network address.
        hours: Maximum worker time of a run in hours; 0 for no limit.
    """

    per_owner: int = 2
    per_address: int = 8
    hours: float = HOURS

    def __post_init__(self) -> None:
        if not (math.isfinite(self.hours) and self.hours >= 0):
            raise BadInput(
                "The hours of a run must be a number of at least 0, which is no limit; "
                f"got {self.hours}."
            )


class Size(NamedTuple):
    """Size of a table for a cost estimate."""

    rows: int
    columns: int
    counts: Counts


class Cost(NamedTuple):
    """Expected time and memory of a fit on one core."""

    seconds: float
    bytes: float


def size_of(
    study: Entry, settings: Any, data: str, store: Store, folder: Path | None = None
) -> Size | None:
    """Return the size of a run's data without generating them; None if unknown.

    Args:
        study: Study.
        settings: Settings of the run, which determine the size of simulated data.
        data: Data set, as in `RunService.submit`.
        store: Store of uploads, with blocking reads.
        folder: Data directory; None for the default.
    """
    source = next((s for s in study.sources if s.name == data), None)
    if source is None:
        return _size_of_upload(study, data.removeprefix("upload:"), store) if data else None
    if source.kind == "fetched":
        try:
            metadata = read_metadata(fetched_path(data, folder))
        except (OSError, ArrowException):  # missing or damaged, which the run reports
            return None
        return Size(metadata.num_rows, metadata.num_columns, source.counts)
    dimensions = source.rows_and_columns(settings)
    return Size(*dimensions, source.counts) if dimensions else None


def _size_of_upload(study: Entry, upload: str, store: Store) -> Size | None:
    try:
        record = store.upload(upload)
        if record.deleted:
            return None
        rows, columns = record.rows, len(record.columns)
        value_counts: Counts = {name: {} for name in record.columns}
        labels = [
            c.name for c in study.table.columns if c.kind == "label" and c.name in value_counts
        ]
        if not labels or rows * columns > MOST_CELLS:
            return Size(rows, columns, value_counts)
        frame = pd.read_parquet(BytesIO(store.upload_parquet(upload)), columns=labels)
    except NotFound:
        return None
    return Size(rows, columns, {**value_counts, **counts(frame, study.table)})


def check_upload(study: Entry, settings: Any, data: str, store: Store) -> None:
    """Refuse a visitor's table that no fit with these settings can take; other data pass.

    Images are not read, nor tables of more than `MOST_CELLS` cells, which the run refuses.

    Raises:
        BadInput: The sentence that the fit would end with.
    """
    if study.offers(data) or not study.check:
        return
    try:
        record = store.upload(data.removeprefix("upload:"))
        columns = [name for name in record.columns if name not in IMAGES]
        if record.deleted or record.rows * len(columns) > MOST_CELLS:
            return
        content = BytesIO(store.upload_parquet(record.id))
    except NotFound:
        return
    frame = pd.read_parquet(content, columns=columns, use_threads=False)
    study.check_table(settings, frame, record.name)


def cost_of(study: Entry, settings: Any, size: Size, own: bool = False) -> Cost | None:
    """Estimate the cost of a fit to a table of this size; None if there is no estimate.

    The cost of absurd settings is infinite. With `own`, a table of the user, the cost of the other
    methods is included.
    """
    if study.estimate is None:
        return None
    resolved, _ = study.settled(settings, *size)
    try:
        cost = Cost(*map(float, study.estimate(resolved, *size)))
    except ArithmeticError:
        return Cost(math.inf, math.inf)
    fit, others = cost.seconds, 0.0
    if own and getattr(settings, "baselines", True):
        labels = size.counts.get("label", {}) if "label" in study.table.targets else None
        classes = 0 if labels is None else len(labels) or 2
        others = rivals.seconds(size.rows, size.columns, classes, fit)
    if getattr(settings, "refit", "") == EVERYTHING:
        fit += _unscored(study, resolved, size)
        cost = cost._replace(bytes=REFIT_MEMORY * cost.bytes)
    if training_seconds(settings) is not None:  # other methods use the remaining time budget
        fit = min(fit, settings.time_budget)
        others = min(others, settings.time_budget - fit)
    cost = cost._replace(seconds=fit + others)
    return cost if all(c >= 0 for c in cost) else Cost(math.inf, math.inf)  # NaN is not


def _unscored(study: Entry, settings: Any, size: Size) -> float:
    """Estimate the seconds of a fit that nobody scores, such as a second one on everything."""
    assert study.estimate is not None
    left = {"baselines"}  # they, and repeats for them, are most of a report
    if not study.reweighs:
        left.add("stack")
    less = dict.fromkeys(left & set(settings.names()), False)
    return float(study.estimate(type(settings)(**{**settings.values(), **less}), *size)[0])


def check_cost(cost: Cost, hours: float, memory: float | None) -> None:
    """Reject a fit that this server could not finish.

    Estimates may be too high by a factor of two, so fits are rejected beyond twice the limit. Fits
    that take longer than estimated are stopped at the limit.

    Args:
        cost: Expected cost.
        hours: Time limit of a run; 0 for no limit.
        memory: Memory of a worker in bytes; None if unknown.

    Raises:
        BadInput: The fit exceeds a limit; the message has the cost and the limit.
    """
    advice = (
        "lower the steps, restarts or model size, take fewer rows, "
        "or run it on your own machine with `scant fit`."
    )
    if not all(map(math.isfinite, cost)):
        raise BadInput(f"The time of a fit with these settings cannot be estimated; {advice}")
    if hours and cost.seconds > ESTIMATE_FACTOR * hours * 3600:
        raise BadInput(
            f"A fit with these settings would take about {hours_text(cost.seconds)}; "
            f"this server allows {hours_text(hours * 3600)} a run; {advice}"
        )
    if memory and cost.bytes > memory:
        raise BadInput(
            f"A fit with these settings needs about {gigabytes(cost.bytes)} of memory; "
            f"a worker here has {gigabytes(memory)}; {advice}"
        )


def hours_text(seconds: float) -> str:
    """Format a time in hours or minutes with the precision of an estimate."""
    hours = seconds / 3600
    if hours >= 10:
        return f"{hours:.0f} h"
    return f"{hours:.2g} h" if hours >= 1 else f"{seconds / 60:.2g} min"


def gigabytes(size: float) -> str:
    """Format a size in bytes as gigabytes."""
    return f"{size / 1e9:.0f} GB" if size >= 99.5e9 else f"{size / 1e9:.3g} GB"
