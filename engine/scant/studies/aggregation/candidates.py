"""Exact models of one table: from their states, on all rows, and over nodes."""

from __future__ import annotations

from collections.abc import Sequence

from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.areas import AreaGP
from scant.models.mtgpa.baselines import CentroidGP, DependentGP
from scant.models.mtgpa.exact import NOISE_PRIOR, ExactGP
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.models.mtgpa.likelihoods import likelihood
from scant.models.mtgpa.prior import Coregionalisation, Data, Prior
from scant.studies.aggregation import preprocessing as space
from scant.studies.aggregation.settings import (
    COUNTED,
    AggregationSettings,
)
from scant.studies.protocol import Tensors


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
