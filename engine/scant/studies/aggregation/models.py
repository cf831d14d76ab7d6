"""Models of a run: built for training, restored from states, and conditioned on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from scant.models.mtgpa.area_nodes import AreaNodes
from scant.models.mtgpa.areas import AreaGP
from scant.models.mtgpa.baselines import CentroidGP, DependentGP
from scant.models.mtgpa.exact import NOISE_PRIOR, ExactGP, ExactTrainer
from scant.models.mtgpa.hyperparameter_nodes import NodesGP
from scant.models.mtgpa.hyperpriors import favor_flat_maps
from scant.models.mtgpa.likelihoods import Likelihood, likelihood
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Coregionalization, Data, Prior
from scant.models.mtgpa.training import MTGPATrainer
from scant.studies.aggregation.classes import latent_functions, with_class_counts
from scant.studies.aggregation.inference import LAPLACE, VARIATIONAL, over_nodes, ranks
from scant.studies.aggregation.prepared import Prepared
from scant.studies.aggregation.settings import CLUSTERS, COUNTED, EXACT, SUMMED, AggregationSettings
from scant.studies.protocol import Tensors

Model = MTGPA | ExactGP | AreaGP


def build(
    prepared: Prepared, kernel: str, generator: torch.Generator, state: Tensors | None = None
) -> Model:
    """Build a model to train, or one with a state from training."""
    s, kinds, data = prepared.settings, prepared.kinds, prepared.train.data
    if state is not None and prepared.inference != VARIATIONAL:
        model = from_state(s, prepared.metadata, kernel, state)
    else:
        options: dict[str, Any] = {
            "ranks": ranks(s, latent_functions(prepared.metadata)),
            "shape": kernel,
            "lengthscale": s.lengthscale or None,
            "fixed_lengthscale": s.lengthscale > 0,
            "noise": s.noise,
            "covariates": len(prepared.train.observed.named),
            "n_isotropic": n_isotropic(s, prepared.metadata),
        }
        if prepared.inference != LAPLACE:  # with LAPLACE, constants have a flat prior
            options["offsets"] = s.constant_mean
        dimensions = len(prepared.metadata["dims"])
        if prepared.inference == LAPLACE:
            model = AreaGP.build(data, kinds, dimensions, generator, **options)
        elif prepared.inference == VARIATIONAL:
            clusters = s.inducing_init == CLUSTERS
            init = "kmeans" if clusters and len(data.y) > s.n_inducing else "even"
            model = MTGPA.build(
                data,
                _built(prepared.metadata),
                dimensions,
                generator,
                inducing=s.n_inducing,
                # A few wide boxes need more points than they have centers.
                place="inside" if clusters and prepared.summed_on_map else init,
                learn_inducing=s.learn_inducing,
                natural=s.optimizer == "natural",
                summed=s.counts == SUMMED,
                **options,
            )
        else:
            model = ExactGP.build(
                prepared.learned,
                len(kinds),
                dimensions,
                generator,
                likelihoods=kinds,
                finer=s.hyperparameters != "point",
                **options,
            )
    model = model.to(prepared.device)
    if prepared.summed_on_map and s.isotropic and not s.lengthscale:
        pairs = zip(model.functions, kinds)
        rates = [f for functions, kind in pairs if kind in COUNTED for f in functions]
        favor_flat_maps(model.prior, prepared.extent, rates)
    if state is not None:
        model.load_state_dict(state)
    return model


def _built(metadata: Mapping[str, Any]) -> list[str | Likelihood]:
    return with_class_counts(
        metadata["likelihoods"], metadata["tasks"], metadata.get("classes", {})
    )


def trainer(
    model: Model, prepared: Prepared, generator: torch.Generator
) -> MTGPATrainer | ExactTrainer:
    """Trainer of a model at its initial values."""
    if not isinstance(model, MTGPA):
        return ExactTrainer(model)
    s = prepared.settings
    gaussian = all(kind in EXACT for kind in prepared.kinds) and not s.batch_size
    single = sum(ranks(s, latent_functions(prepared.metadata))) == 1
    return MTGPATrainer(
        model,
        prepared.train.data,
        generator,
        scheme=s.optimizer,
        rate=s.learning_rate,
        natural_rate=(1.0 if single else 0.3) if gaussian else 0.1,
        halving=s.halving or None,
        batch=s.batch_size or None,
    )


def from_state(
    settings: AggregationSettings, metadata: Mapping[str, Any], kernel: str, state: Tensors
) -> Model:
    """Restore a model of the kind of its state."""
    kinds, covariates = metadata["likelihoods"], len(metadata.get("covariates", ()))
    shared = n_isotropic(settings, metadata)
    inducing = next((v for k, v in state.items() if k.endswith("inducing_points")), None)
    model: Model
    if inducing is None:
        model = exact_from_state(state, kernel, kinds, covariates, shared)
    else:
        model = MTGPA(
            _built(metadata),
            inducing,
            len(metadata["dims"]),
            ranks(settings, latent_functions(metadata)),
            kernel,
            settings.learn_inducing,
            natural=settings.optimizer == "natural",
            summed=settings.counts == SUMMED,
            covariates=covariates,
            n_isotropic=shared,
        )
        model.load_state_dict(state)
    if not settings.constant_mean:
        model.prior.offset.requires_grad_(False)
    return model


def exact_from_state(
    state: Tensors, kernel: str, kinds: Sequence[str], covariates: int = 0, n_isotropic: int = 1
) -> ExactGP | AreaGP:
    """Restore an exact model, or one by Laplace's approximation.

    Args:
        state: State of the model.
        kernel: Kernel of its functions.
        kinds: Likelihood of each task.
        covariates: Number of covariates.
        n_isotropic: Number of dimensions that share a lengthscale.
    """
    data = Data(**{name: state.get(name) for name in Data._fields})  # type: ignore[arg-type]
    tasks = len(kinds)
    prior: Prior
    if "prior.prior.shared" in state:
        dimensions = state["prior.prior.log_lengthscale"].shape[1]
        prior = CentroidGP(DependentGP(dimensions, tasks), dimensions)
    else:
        of_functions = tuple(state["prior.kernel_of"].bincount().tolist())
        dimensions = state["prior.kernels.0.raw_lengthscale"].numel() + n_isotropic - 1
        prior = Coregionalization(
            dimensions, tasks, of_functions, kernel, covariates=covariates, n_isotropic=n_isotropic
        )
    model: ExactGP | AreaGP
    if all(kind in COUNTED for kind in kinds):
        model = AreaGP([likelihood(kind) for kind in kinds], prior, data).to(data.y.device)  # type: ignore[arg-type]
        if "points" in state:
            model = AreaNodes(model, state["points"], state["weights"])
    else:
        model = ExactGP([likelihood(kind) for kind in kinds], prior, data).to(data.y.device)
        if f"likelihoods.0.{NOISE_PRIOR}.loc" in state:
            model.expect_noise()
        if "points" in state:
            model = NodesGP(model, state["points"], state["weights"])
    model.load_state_dict(state)
    return model


def n_isotropic(settings: AggregationSettings, metadata: Mapping[str, Any]) -> int:
    """Number of dimensions that share a lengthscale: those of a map."""
    return 2 if settings.isotropic and metadata.get("system") else 1


def conditioned(settings: AggregationSettings, model: Model, data: Data) -> Model:
    """Condition the model on all rows; average its hyperparameters over nodes if set."""
    if isinstance(model, MTGPA):
        return model
    if isinstance(model, AreaGP):
        model.prior.offset.requires_grad_(False)
        model.prior.learn_lengthscales(not settings.lengthscale)
        return AreaNodes.around(model) if over_nodes(settings, len(model.y)) else model
    if len(model.y) < len(data.y):
        model = ExactGP(model.likelihoods, model.prior, data)
    if isinstance(model.prior, Coregionalization):
        model.prior.learn_lengthscales(not settings.lengthscale)
    return NodesGP.around(model) if over_nodes(settings, len(data.y)) else model
