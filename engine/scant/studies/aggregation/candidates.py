"""Exact models of one table that a run chooses from, and those that it averages with the chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.areas import AreaGP
from scant.models.mtgpa.baselines import CentroidGP, DependentGP, baseline
from scant.models.mtgpa.exact import NOISE_PRIOR, ExactGP
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.models.mtgpa.likelihoods import likelihood
from scant.models.mtgpa.prior import Coregionalisation, Data, Prior
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.settings import (
    COUNTED,
    MOST_DEPENDENT,
    MOST_FINER,
    AggregationSettings,
)
from scant.studies.auto import AUTO
from scant.studies.protocol import Tensors

DEPENDENT_STEPS = 40  # of L-BFGS
LEARNED = ("mixing", "offset", "raw_lengthscale", "log_noise")  # how parameters' names end


class Candidate(NamedTuple):
    """What is tried: a kernel, and the rank of each shared function."""

    kernel: str
    ranks: tuple[int, ...]


def candidates(
    settings: AggregationSettings, kernels: Sequence[str], tasks: int, rows: int, exact: bool
) -> list[Candidate]:
    """Each kernel; then one more function, for what is finer than the others can follow."""
    base = space.ranks(settings, tasks)
    found = [Candidate(kernel, base) for kernel in kernels]
    if exact and settings.n_latent == AUTO and rows <= MOST_FINER and not settings.lengthscale:
        found.append(Candidate(kernels[0], (*base, settings.rank)))
    return found


def chosen(scores: Sequence[float], states: Sequence[Tensors], rows: int) -> list[int]:
    """Candidates from the best on: by the log evidence, less a nat for each hyperparameter.

    Args:
        scores: The log evidence of each, in nats a row.
        states: The models' states.
        rows: That they were learned from.
    """
    sizes = [sum(v.numel() for k, v in s.items() if k.endswith(LEARNED)) for s in states]
    worth = np.array([score * rows - size for score, size in zip(scores, sizes)])
    return np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable").tolist()


def read(
    state: Tensors, kernel: str, kinds: Sequence[str], covariates: int = 0, alike: int = 1
) -> ExactGP | AreaGP:
    """A model from its state, whichever of these it is.

    Args:
        state: Of the model.
        kernel: Of its functions.
        kinds: The likelihood of each task.
        covariates: As of `Coregionalisation`.
        alike: Likewise.
    """
    data = Data(**{name: state.get(name) for name in Data._fields})  # type: ignore[arg-type]
    tasks = len(kinds)
    prior: Prior
    if "prior.prior.shared" in state:
        dimensions = state["prior.prior.log_lengthscale"].shape[1]
        prior = CentroidGP(DependentGP(dimensions, tasks), dimensions)
    else:
        ranks = tuple(state["prior.kernel_of"].bincount().tolist())
        dimensions = state["prior.kernels.0.raw_lengthscale"].numel() + alike - 1
        prior = Coregionalisation(
            dimensions, tasks, ranks, kernel, covariates=covariates, n_isotropic=alike
        )
    if all(kind in COUNTED for kind in kinds):
        areas = AreaGP([likelihood(kind) for kind in kinds], prior, data).to(data.y.device)  # type: ignore[arg-type]
        if "points" in state:
            areas = AreaNodes(areas, state["points"], state["weights"])
        areas.load_state_dict(state)
        return areas
    model = ExactGP([likelihood(kind) for kind in kinds], prior, data).to(data.y.device)
    if f"likelihoods.0.{NOISE_PRIOR}.loc" in state:
        model.expect_noise()
    if "points" in state:
        model = NodesGP(model, state["points"], state["weights"])
    model.load_state_dict(state)
    return model


def over_areas(settings: AggregationSettings, model: AreaGP) -> AreaGP:
    """Over nodes of its hyperparameters, where wanted."""
    model.prior.offset.requires_grad_(False)
    model.prior.learn_lengthscales(not settings.lengthscale)
    return AreaNodes.around(model) if space.over_nodes(settings, len(model.y)) else model


def conditioned(settings: AggregationSettings, model: ExactGP, data: Data) -> ExactGP:
    """On all rows, where its hyperparameters are those of fewer; over nodes, where wanted."""
    if len(model.y) < len(data.y):
        model = ExactGP(model.likelihoods, model.prior, data)
    if isinstance(model.prior, Coregionalisation):
        model.prior.learn_lengthscales(not settings.lengthscale)
    return NodesGP.around(model) if space.over_nodes(settings, len(data.y)) else model


def dependent(
    settings: AggregationSettings, data: Data, dimensions: int, kinds: Sequence[str]
) -> ExactGP | None:
    """Dependent GPs of the boxes' centers, trained; None of one task, of many rows or polygons."""
    boxes = data.supports.shape[1] <= 2 * dimensions
    plain = all(kind == "gaussian" for kind in kinds)
    if not 2 <= len(kinds) <= 4 or len(data.y) > MOST_DEPENDENT or not (boxes and plain):
        return None
    generator = torch.Generator().manual_seed(settings.seed)
    model = baseline("dependent", data, dimensions, generator)
    if settings.hyperparameters != "point":
        model.expect_noise()
    model.fit(DEPENDENT_STEPS)
    return conditioned(settings, model, data)
