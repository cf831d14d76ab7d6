"""Preparation of a table for training: rows, scales, choice of inference, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.errors import BadInput
from scant.models.mtgpa.prior import Data
from scant.studies.aggregation import beside, inference, maps, polygons
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.classes import as_indicators, classes_of, latent_functions, names_of
from scant.studies.aggregation.classes import notes as notes_on_classes
from scant.studies.aggregation.fitted import TrainingData
from scant.studies.aggregation.inference import EXACT_GP, LAPLACE
from scant.studies.aggregation.likelihoods import likelihoods, named
from scant.studies.aggregation.metadata import metadata_of
from scant.studies.aggregation.population import People
from scant.studies.aggregation.settings import (
    COUNTED,
    EXACT,
    MOST_FINER,
    MOST_GROWN,
    MOST_LATENT,
    ROUGH,
    TRIED,
    AggregationSettings,
)
from scant.studies.aggregation.supports import Supports
from scant.studies.aggregation.thinning import scarce_places
from scant.studies.auto import AUTO, CHOSEN
from scant.studies.protocol import roles
from scant.studies.split import EVERYTHING, TEST, marks
from scant.tables.schema import COVARIATE

MIN_TRAINING_ROWS = 4  # rows


@dataclass(frozen=True)
class Prepared:
    """A table with all choices made before training.

    Attributes:
        settings: Settings of the run, `auto` replaced by choices made before training.
        metadata: Metadata of the run; `likelihoods` and `scale` of each task among them.
        train: The rows of the model's tasks.
        whole: All rows of the table.
        on_map: Rows in the order of the metadata's map; None without a map.
        people: Population that weights points inside polygons; None: by area.
        inference: "exact", "laplace" or "variational".
        learned: Rows from which hyperparameters are learned.
        kernels: Candidate kernels, with one restart each.
        stages: Number of stages, each with one more latent function.
        notes: Notes on the table and on these choices.
        roles: Role of each row of the table (`protocol.roles`).
        device: Device of the tensors.
    """

    settings: AggregationSettings
    metadata: dict[str, Any]
    train: TrainingData
    whole: Supports
    on_map: Supports | None
    people: People | None
    inference: str
    learned: Data
    kernels: tuple[str, ...]
    stages: int
    notes: list[str]
    roles: np.ndarray
    device: torch.device

    @property
    def kinds(self) -> list[str]:
        """Likelihood of each task."""
        return list(self.metadata["likelihoods"])

    @property
    def summed_on_map(self) -> bool:
        """True if rates of counts are sums over the polygons of a map."""
        return inference.summed_on_map(self.settings, self.metadata)

    @property
    def extent(self) -> float:
        """Longer side of the training rows' bounds on the map, in meters."""
        observed, rows = self.train.observed, self.train.rows
        corners = np.concatenate([observed.lo[rows, :2], observed.hi[rows, :2]])
        return float(np.max(np.ptp(corners, axis=0)))


def prepare(settings: AggregationSettings, table: pd.DataFrame, device: torch.device) -> Prepared:
    """Divide a table, scale it, and choose the inference.

    Raises:
        BadInput: The table does not fit the settings, or has too few training rows.
    """
    observations, people = beside.parted(settings, table)
    positions, n_rows = np.flatnonzero(observations), len(table)
    table = table[observations].reset_index(drop=True)
    whole = space.read(settings, table, people=people)
    scarce = space.scarce_task(settings, whole)
    table = space.divided(settings, table, whole, scarce)
    whole = replace(whole, test=np.asarray(marks(table) == TEST, dtype=bool))
    fine_rows = 0 if settings.refit == EVERYTHING else settings.fine_rows
    used = scarce_places(table, scarce, fine_rows, settings.seed)
    observed = whole.at(used)
    rows = space.training_rows(settings, observed, scarce)
    if rows.sum() < MIN_TRAINING_ROWS:
        raise BadInput(
            f"Too few rows are left to learn from: {int(rows.sum())}, and at least "
            f"{MIN_TRAINING_ROWS} are needed. Add rows, raise fine_rows, or leave fewer tasks out."
        )
    held_out = whole.test & np.isfinite(whole.y)
    role = roles(n_rows, test=positions[held_out], train=positions[used[rows]])
    kinds = likelihoods(settings, observed)
    trained = np.unique(observed.task[rows]).tolist()
    untrained = [task for t, task in enumerate(observed.tasks) if t not in trained]
    if untrained:
        trained_rows = np.flatnonzero(np.isin(observed.task, trained))
        used, rows, kinds = used[trained_rows], rows[trained_rows], [kinds[t] for t in trained]
        observed = observed.at(trained_rows, [observed.tasks[t] for t in trained])
    scale = space.scales(settings, observed, rows, kinds)
    classes = classes_of(observed, rows, kinds)
    plotted = [as_indicators(each, classes) for each in (observed, whole)]
    metadata = metadata_of(plotted[0], rows, scarce, kinds, plotted[1])
    if classes:
        metadata |= {"classes": classes, "class_names": names_of(observed, classes)}
    metadata["scale"] = [[s.offset, s.factor] for s in scale]
    rates, used_table = maps.rates_of(settings, kinds), table.iloc[used]
    map_metadata, on_map = maps.shown(used_table, plotted[0], rows, rates, scarce)
    metadata |= map_metadata
    tasks = list(observed.tasks)
    data = space.data_of(settings, observed, rows, tasks, kinds, scale, device, classes)

    points = not observed.width[rows].any()
    pieces = 1 if observed.inside is None else observed.inside.shape[1]
    latents = len(data.y) * pieces
    if people is not None:  # all points lie at its locations
        latents = min(latents, len(kinds) * len(people.number))
    summed = inference.summed_on_map(settings, metadata)
    method = inference.chosen(settings, kinds, len(data.y), points, pieces, latents, summed)
    if method == LAPLACE and settings.likelihood == AUTO:
        # A field with a value at every point explains variation beyond Poisson's at least as
        # well as a dispersion, which does not vary inside polygons.
        set_by_user = named(settings.likelihoods, observed)
        pairs = zip(tasks, kinds)
        kinds = [kind if task in set_by_user else "poisson" for task, kind in pairs]
        metadata["likelihoods"] = kinds
    learned = inference.learned(settings, data) if method == EXACT_GP else data
    kernels, settings = _kernels(settings, metadata, method == EXACT_GP and points, summed)
    stages, settings = _stages(settings, metadata, method, len(data.y))

    notes = [f"The model has no training rows of {', '.join(untrained)}."] if untrained else []
    of_tasks = (f"{task} {kind}" for task, kind in zip(tasks, kinds))
    notes.append(f"Likelihoods: {', '.join(of_tasks)}.")
    notes += notes_on_classes(observed, rows, classes)
    if on_map is not None and len(on_map) < len(used):
        notes.append(f"Maps show {len(on_map):,} of {len(used):,} rows.")
    notes += _notes_on_columns(settings, data, kinds, observed, people, whole.empty)
    if whole.system:
        notes.append(polygons.told(whole.system))
    if pieces > 1:
        notes.append(f"Averages over polygons are taken over at most {pieces} points.")
    notes += _notes_on_inference(method, len(data.y), len(learned.y))
    return Prepared(
        settings=settings,
        metadata=metadata,
        train=TrainingData(observed, rows, data),
        whole=whole,
        on_map=on_map,
        people=people,
        inference=method,
        learned=learned,
        kernels=kernels,
        stages=stages,
        notes=notes,
        roles=role,
        device=device,
    )


def choose(
    settings: AggregationSettings, metadata: dict[str, Any], name: str, value: Any, why: str
) -> AggregationSettings:
    """Replace `auto` by a value in the settings; add value and reason to the metadata."""
    if getattr(settings, name) != AUTO:
        return settings
    metadata[CHOSEN] = {**metadata.get(CHOSEN, {}), name: [value, why]}
    return type(settings)(**{**settings.values(), name: value})


def _kernels(
    settings: AggregationSettings, metadata: dict[str, Any], exact_points: bool, summed: bool
) -> tuple[tuple[str, ...], AggregationSettings]:
    """Candidate kernels, compared by evidence, and the settings."""
    if settings.kernel != AUTO:
        return (settings.kernel,), settings
    if summed:
        kernel, why = ROUGH, "rates of counts on a map"
    elif exact_points:
        return TRIED, settings
    else:
        kernel, why = TRIED[0], "its averages over boxes are exact, and not all rows are points"
    return (kernel,), choose(settings, metadata, "kernel", kernel, why)


def _stages(
    settings: AggregationSettings, metadata: dict[str, Any], method: str, rows: int
) -> tuple[int, AggregationSettings]:
    """Number of stages, each with one more latent function, and the settings."""
    functions = len(inference.ranks(settings, latent_functions(metadata)))
    stages = 1
    grows = settings.n_latent == AUTO and method == EXACT_GP and not settings.lengthscale
    if grows and rows <= MOST_FINER:
        stages += min(MOST_GROWN, MOST_LATENT - functions)
    if stages > 1:
        return stages, settings
    tasks = len(metadata["tasks"])
    why = f"one for every two of {tasks} tasks"
    if "classes" in metadata:
        why = (
            "one for every two numeric tasks and for each class but one of a categorical task, at "
            f"most {inference.MOST_LATENT}"
        )
    return stages, choose(settings, metadata, "n_latent", functions, why)


def _notes_on_columns(
    s: AggregationSettings,
    data: Data,
    kinds: Sequence[str],
    observed: Supports,
    people: People | None,
    empty: int,
) -> list[str]:
    """Sentences on used columns other than supports and values."""
    notes = []
    if data.known is not None and set(kinds) & {*EXACT, "heteroscedastic"}:
        notes.append(
            "y_err is taken as known noise of Gaussian tasks, in addition to the noise that they "
            "learn; rows without it have the median of their task."
        )
    if observed.named:
        names = ", ".join(covariate.column.removeprefix(COVARIATE) for covariate in observed.named)
        notes.append(f"Linear in: {names}; each task has coefficients of its own.")
    if people is not None:
        notes.append(
            f"Points inside polygons are weighted by {people.number.sum():,.0f} people at "
            f"{len(people.number):,} places."
        )
        if empty:
            notes.append(
                f"{empty:,} polygon{'s' * (empty > 1)} without people at these places: the points "
                "inside are weighted by area instead."
            )
    if s.rate_per and any(kind in COUNTED for kind in kinds):
        notes.append(
            f"Rates per {s.rate_per:,g} are converted to counts: y times exposure over "
            f"{s.rate_per:,g}, rounded. Predictions are rates again."
        )
    return notes


def _notes_on_inference(method: str, rows: int, learned: int) -> list[str]:
    unused = "Inducing points and the optimizer's settings are not used."
    if method == LAPLACE:
        return [f"Inference is Laplace's approximation: {rows:,} rows, all counts. {unused}"]
    if method != EXACT_GP:
        return []
    notes = [f"Inference is exact: {rows:,} rows, all Gaussian. {unused}"]
    if learned < rows:
        notes.append(f"Hyperparameters are learned from {learned:,} of these rows.")
    return notes
