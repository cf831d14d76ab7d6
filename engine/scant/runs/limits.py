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
from scant.rivals import cost as rivals
from scant.store import Store
from scant.studies.auto import training_seconds
from scant.studies.base import Counts, Entry
from scant.studies.split import EVERYTHING
from scant.tables.schema import counts

HOURS = 2.0  # of training that a run may use, unless the operator sets another limit
ESTIMATE_FACTOR = 2.0  # how far an estimate may be wrong (the catalog's docstrings)
MOST_CELLS = 10_000_000  # of a table whose labels are counted; those of a larger one are guessed


@dataclass(frozen=True)
class Limits:
    """What an operator allows.

    Attributes:
        per_owner: Runs that one visitor may have queued or running at once.
        per_address: Runs that one network address may have so, whoever they belong to.
        hours: Hours that a run may hold a worker; 0 for no limit.
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
    """What an estimate is told of a table."""

    rows: int
    columns: int
    counts: Counts


class Cost(NamedTuple):
    """What a fit is expected to take, on one core."""

    seconds: float
    bytes: float


def size_of(
    study: Entry, settings: Any, data: str, store: Store, folder: Path | None = None
) -> Size | None:
    """The size of the data that a run names, which are not made for it; None where it is unknown.

    Args:
        study: The study.
        settings: Of the run: they decide how large generated data are.
        data: As `RunService.submit` takes it.
        store: Where uploads lie. Reads from it block.
        folder: The data directory; None: the user's.
    """
    source = next((s for s in study.sources if s.name == data), None)
    if source is None:
        return _size_of_upload(study, data.removeprefix("upload:"), store) if data else None
    if source.kind == "fetched":
        try:
            kept = read_metadata(fetched_path(data, folder))
        except (OSError, ArrowException):  # it is not here, or the run will say what is wrong
            return None
        return Size(kept.num_rows, kept.num_columns, source.counts)
    known = source.rows_and_columns(settings)
    return Size(*known, source.counts) if known else None


def _size_of_upload(study: Entry, upload: str, store: Store) -> Size | None:
    try:
        record = store.upload(upload)
        if record.deleted:
            return None
        rows, columns = record.rows, len(record.columns)
        known: Counts = {name: {} for name in record.columns}
        labels = [c.name for c in study.table.columns if c.kind == "label" and c.name in known]
        if not labels or rows * columns > MOST_CELLS:
            return Size(rows, columns, known)
        frame = pd.read_parquet(BytesIO(store.upload_parquet(upload)), columns=labels)
    except NotFound:
        return None
    return Size(rows, columns, {**known, **counts(frame, study.table)})


def cost_of(study: Entry, settings: Any, size: Size, own: bool = False) -> Cost | None:
    """What a fit to a table of this size is expected to take; None where nobody knows.

    Settings beyond all measure cost infinitely much. The table is the user's `own` where rivals are
    fitted, too.
    """
    if study.estimate is None:
        return None
    settled, _ = study.settled(settings, *size)
    try:
        cost = Cost(*map(float, study.estimate(settled, *size)))
    except ArithmeticError:
        return Cost(math.inf, math.inf)
    fit, others = cost.seconds, 0.0
    if own and getattr(settings, "baselines", True):
        labels = size.counts.get("label", {}) if "label" in study.table.targets else None
        classes = 0 if labels is None else len(labels) or 2
        others = rivals.seconds(size.rows, size.columns, classes, fit)
    if training_seconds(settings) is not None:  # rivals use what training leaves of it
        budget = settings.time_budget + getattr(settings, "gap_seconds", 0.0)
        fit = min(fit, budget)
        others = min(others, budget - fit)
    if getattr(settings, "refit", "") == EVERYTHING:
        fit = 2 * fit
    cost = cost._replace(seconds=fit + others)
    return cost if all(c >= 0 for c in cost) else Cost(math.inf, math.inf)  # NaN is not


def check_cost(cost: Cost, hours: float, memory: float | None) -> None:
    """Refuse a fit that this server could not finish.

    An estimate may be twice too high, so only what is beyond twice the hours is refused; what takes
    longer than was thought is stopped when its hours are used.

    Args:
        cost: What it is expected to take.
        hours: That a run may use; 0 for no limit.
        memory: Bytes that a worker has; None where that is not known.

    Raises:
        BadInput: With what the fit needs, and what there is.
    """
    mend = (
        "lower the steps, restarts or model size, take fewer rows, "
        "or run it on your own machine with `scant fit`."
    )
    if not all(map(math.isfinite, cost)):
        raise BadInput(f"The time of a fit with these settings cannot be estimated; {mend}")
    if hours and cost.seconds > ESTIMATE_FACTOR * hours * 3600:
        raise BadInput(
            f"A fit with these settings would take about {hours_text(cost.seconds)}; "
            f"this server allows {hours_text(hours * 3600)} a run; {mend}"
        )
    if memory and cost.bytes > memory:
        raise BadInput(
            f"A fit with these settings needs about {gigabytes(cost.bytes)} of memory; "
            f"a worker here has {gigabytes(memory)}; {mend}"
        )


def hours_text(seconds: float) -> str:
    """A long time, no finer than a limit or an estimate is."""
    hours = seconds / 3600
    if hours >= 10:
        return f"{hours:.0f} h"
    return f"{hours:.2g} h" if hours >= 1 else f"{seconds / 60:.2g} min"


def gigabytes(size: float) -> str:
    """Bytes that a fit needs or a worker has."""
    return f"{size / 1e9:.0f} GB" if size >= 99.5e9 else f"{size / 1e9:.3g} GB"
