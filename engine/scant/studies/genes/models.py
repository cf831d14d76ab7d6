"""Models of replicas, built and trained with the same settings."""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from gpytorch.kernels import ConstantKernel
from gpytorch.priors import LogNormalPrior

from scant.errors import BadInput
from scant.models.replicated.baselines import HLMC, LMC, Independent, Pooled
from scant.models.replicated.data import Data
from scant.models.replicated.exact import ReplicaGP, merge
from scant.models.replicated.hgp import DHGP, HGP, HGPInd
from scant.models.replicated.hmogp_lv.lvmogp import LVMOGP
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.posterior import Dense
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from scant.models.replicated.stack import Stack
from scant.models.replicated.training import ReplicaTrainer
from scant.optim.ascent import Convergence, maximize
from scant.optim.trainer import Trainer
from scant.studies.genes.settings import MOST_EXACT as MOST_ROWS
from scant.studies.genes.settings import GenesSettings

Model = ReplicaGP | HMOGPLV | Stack
NOISE = (math.log(0.3), 1.0)  # mean and deviation of the log noise variance, standardized values
EXACT = ("dhgp", "hgp", "lmc", "hlmc", "independent", "pooled", "level")


def build(
    name: str, data: Data, s: GenesSettings, generator: torch.Generator
) -> ReplicaGP | HMOGPLV:
    """Build a model at its initial values.

    Args:
        name: One of `scant.studies.genes.settings.MODELS`.
        data: Standardized rows.
        generator: CPU generator of the initial values.
    """
    shared = {"kernel_shared": s.kernel_shared}
    both = {**shared, "kernel_replica": s.kernel_replica}
    if name == "dhgp":
        return DHGP.build(data, generator, noise=s.noise, **both)
    if name == "hgp":
        return HGP.build(data, generator, **both)
    if name == "hgp-ind":
        return HGPInd.build(data, generator, inducing_inputs=s.n_inducing_inputs, **both)
    if name == "hlmc":
        return HLMC.build(data, generator, functions=s.n_latent_dims, noise=s.noise, **both)
    if name == "lmc":
        return LMC.build(data, generator, functions=s.n_latent_dims, noise=s.noise, **shared)
    if name == "independent":
        return Independent.build(data, generator, **shared)
    if name == "pooled":
        return Pooled.build(data, generator, noise=s.noise, **shared)
    if name == "level":  # the same for all outputs, which are standardized
        return Pooled.build(data, generator, noise=s.noise, kernel_shared=ConstantKernel())
    kind = {"hmogp-lv": HMOGPLV, "lvmogp": LVMOGP}[name]
    return kind.build(
        data,
        generator,
        n_latent_dims=s.n_latent_dims,
        n_inducing_outputs=min(s.n_inducing_outputs, data.n_outputs),
        n_inducing_inputs=s.n_inducing_inputs,
        noise=s.noise,
        dense=None if s.optimizer == "lbfgs" else False,
        **both,
    )


def steadied(model: ReplicaGP | HMOGPLV) -> ReplicaGP | HMOGPLV:
    """Add a prior of the noise, so that few rows of an output are not interpolated."""
    if isinstance(model, ReplicaGP):
        prior = LogNormalPrior(*NOISE).to(model.log_noise.device)
        model.register_prior("noise_prior", prior, lambda m: m.log_noise.exp())
    return model


def trainer(
    model: ReplicaGP | HMOGPLV, data: Data, s: GenesSettings, generator: torch.Generator
) -> Trainer:
    """Trainer with the optimizer of the settings, or the closest one for the model."""
    if isinstance(model, ReplicaGP):
        scheme = "lbfgs" if s.optimizer == "lbfgs" else "adam"
        return ReplicaTrainer(model, scheme, s.learning_rate)
    scheme = s.optimizer
    if scheme == "lbfgs" and not isinstance(model.posterior, Dense):
        scheme = "natural"
    return HMOGPLVTrainer(
        model,
        data,
        generator,
        scheme,
        rate=s.learning_rate,
        natural_rate=0.2 if s.batch_size else 1.0,
        batch=s.batch_size,
    )


def size(name: str, data: Data) -> float:
    """Number of rows of one regression with the same cost as the model on the data.

    A pooled process averages all rows at one x, LMC those of an output. DHGP trains at the cost of
    distinct (output, x), but predicts at the cost of all rows. The others treat outputs one by one.
    """
    n_rows, n_distinct = len(data.y), len(merge(data, outputs=True, replicas=False).y)
    if name in ("pooled", "level"):
        return len(merge(data, outputs=False, replicas=False).y)
    if name == "lmc":
        return n_distinct
    if name == "hlmc":
        return n_rows
    if name == "dhgp":
        return max(min(n_rows, n_distinct), n_rows / 2)
    largest = int(torch.bincount(data.output).max())
    return float(data.n_outputs ** (1 / 3) * largest)


def check(s: GenesSettings, data: Data) -> list[str]:
    """Check that settings and data are compatible; return notes on them.

    Raises:
        BadInput: Minibatches are set for an optimizer or a model that needs all rows.
    """
    plain = s.model in EXACT or s.model == "hgp-ind"
    if s.batch_size and plain:
        raise BadInput(
            f"Setting 'batch_size' is {s.batch_size}, but {s.model} takes all outputs at "
            "once; set it to 0, or choose hmogp-lv or lvmogp."
        )
    if s.batch_size and s.optimizer == "lbfgs":
        raise BadInput(
            f"Setting 'batch_size' is {s.batch_size}, but L-BFGS takes all outputs at once; "
            "set it to 0, or choose the optimizer natural or adam."
        )
    notes = []
    if plain and s.optimizer == "natural":
        notes.append(f"{s.model} has no q(U) for natural gradients, so Adam trains it.")
    if s.model in EXACT and size(s.model, data) > MOST_ROWS:
        notes.append(f"{s.model} is exact, and slow with {len(data.y):,} rows; hmogp-lv is faster.")
    return notes


def fitted(
    name: str, data: Data, s: GenesSettings, steps: int
) -> tuple[ReplicaGP | HMOGPLV, float]:
    """Train a model by L-BFGS for at most `steps`; return it and its bound, nats a row."""
    settings = GenesSettings.parse({**s.values(), "optimizer": "lbfgs", "batch_size": 0})
    assert isinstance(settings, GenesSettings)
    generator = torch.Generator().manual_seed(s.seed)
    model = build(name, data, settings, generator)
    return model, improve(trainer(model, data, settings, generator), steps) / len(data.y)


def improve(trainer: Trainer, steps: int) -> float:
    """Train until a step gains too little or `steps` are taken; return the objective, nats."""
    rule = Convergence()
    values = maximize(trainer, steps, lambda elbo: not rule.gains(elbo, 1e-5 * max(abs(elbo), 1.0)))
    return max(values[-2:], default=-math.inf)


def without(
    model: Model, data: Data, s: GenesSettings, generator: torch.Generator, steps: int
) -> Model:
    """Refit a copy of the model to fewer rows, from its current parameters.

    q(U), or the exact posterior, has a closed form; steps of L-BFGS follow for the rest.
    """
    if isinstance(model, ReplicaGP):
        exact = deepcopy(model).on(data)
        improve(ReplicaTrainer(exact), steps)
        return exact
    if isinstance(model, Stack):
        members = [without(m, data, s, generator, steps) for m in model.members]
        return Stack(members, model.weights)
    other = deepcopy(model)
    other.condition(data)
    if isinstance(other.posterior, Dense):
        improve(HMOGPLVTrainer(other, data, generator), steps)
    return other
