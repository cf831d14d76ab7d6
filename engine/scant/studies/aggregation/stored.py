"""Conversion of a fitted model to tensors and metadata, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from scant.studies.aggregation.beside import known_covariates
from scant.studies.aggregation.fitted import FittedMTGPA
from scant.studies.aggregation.models import from_state
from scant.studies.aggregation.partners import Average
from scant.studies.aggregation.population import People
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.aggregation.supports import Supports
from scant.studies.protocol import Tensors, arrays, part
from scant.studies.split import evenly_spaced

MAX_STORED_ROWS = 5000  # for the curve over fine observations
ROWS = ("task", "lo", "hi", "y", "exposure", "test")


def to_tensors(fitted: FittedMTGPA) -> tuple[Tensors, dict[str, Any]]:
    """Tensors and JSON-ready metadata for `from_tensors`."""
    whole, people, average = fitted.whole, fitted.people, fitted.average
    keep = evenly_spaced(np.arange(len(whole)), MAX_STORED_ROWS)
    names = [*ROWS, *(n for n in ("inside", "covariates") if getattr(whole, n) is not None)]
    if fitted.settings.known_noise and np.isfinite(whole.y_err).any():
        names.append("y_err")
    tensors = {f"model.{k}": v for k, v in fitted.model.state_dict().items()}
    tensors |= {f"rows.{name}": torch.as_tensor(getattr(whole, name)[keep]) for name in names}
    if people is not None:
        tensors |= {f"people.{k}": torch.as_tensor(np.array(v)) for k, v in vars(people).items()}
    meta = {"words": fitted.metadata, "all_tasks": list(whole.tasks)}
    if average is None:
        return tensors, meta
    tensors |= {f"stack.{k}": v for k, v in average.tensors().items()}
    return tensors, {**meta, "stack": average.meta()}


def from_tensors(
    settings: AggregationSettings, tensors: Tensors, meta: dict[str, Any], device: torch.device
) -> FittedMTGPA:
    """Inverse of `to_tensors`."""
    metadata = meta["words"]
    other_kernel = meta.get("other_kernel", "eq")  # of an average in older runs
    rows = arrays(tensors, "rows.")
    unknown = np.full(len(rows["y"]), np.nan)
    columns: dict[str, Any] = {"y_err": unknown, "truth": unknown, **rows}
    people = arrays(tensors, "people.")
    return FittedMTGPA(
        settings=settings,
        metadata=metadata,
        model=from_state(settings, metadata, settings.kernel, part(tensors, "model.")).to(device),
        whole=Supports(
            tasks=tuple(meta["all_tasks"]),
            dims=tuple(metadata["dims"]),
            system=metadata.get("system", ""),
            named=known_covariates(metadata),
            **columns,
        ),
        device=device,
        average=Average.from_meta(
            part(tensors, "stack."),
            meta.get("stack"),
            lambda _, state: from_state(settings, metadata, other_kernel, state),
        ),
        people=People(**people) if people else None,
    )
