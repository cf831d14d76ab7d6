"""Settings of the genes study."""

from __future__ import annotations

from typing import Any

import param

from scant.studies.auto import AUTO, AutoInteger
from scant.studies.genes.table import SPLITS
from scant.studies.split import SplitSettings

MOST_EXACT = 1500  # rows regressed together for comparison; a step has cubic cost
KERNELS = ["matern32", "rbf", "matern12", "matern52"]
MODELS = {
    "hmogp-lv": "HMOGP-LV",
    "lvmogp": "LVMOGP",
    "dhgp": "DHGP",
    "hgp": "HGP",
    "hgp-ind": "HGPInd",
    "lmc": "LMC",
    "independent": "independent GPs",
    "pooled": "pooled GP",
}
OTHERS = {  # not in the publication
    "stack": "stack of models", "hlmc": "hierarchical LMC", "level": "no curve",
}  # fmt: skip
# Earlier values of the settings that are `auto`; demonstrations keep them.
FIXED: dict[str, Any] = {
    "model": "hmogp-lv",
    "n_latent_dims": 2,
    "n_inducing_outputs": 6,
    "n_inducing_inputs": 36,
    "kernel_shared": "matern32",
    "kernel_replica": "matern32",
    "noise": "shared",
    "batch_size": 0,
    "max_steps": 400,
    "restarts": 1,
}


class GenesSettings(SplitSettings):
    """Settings of a fit to replicas (Ma 2023, chapter 5)."""

    study = "genes"
    essential = ("model", "hidden", "keep", "split", "n_inducing_inputs", "max_steps")

    model = param.Selector(
        objects=[AUTO, *MODELS, *OTHERS],
        doc="HMOGP-LV, or a model to compare it with: lvmogp ignores replicas; dhgp and hgp are "
        "exact, hgp-ind is sparse; lmc mixes functions linearly; independent and pooled are plain "
        "GPs, one per output or one for everything; hlmc is lmc with replicas; level is one value "
        "for each output. stack: several of these, weighted by how well they predict rows held out "
        "from them; auto: stack, or hmogp-lv alone for many rows.",
    )
    hidden = param.String(
        "",
        label="Hidden replicas",
        doc="Scarcity: replicas hidden from the model, separated by commas: output/replica, "
        "*/replica for every output, output/*2 for two at random.",
    )
    keep = param.Number(
        1.0,
        bounds=(0.05, 1.0),
        label="Share of rows kept",
        doc="Scarcity: share of the remaining rows in the training set.",
    )
    split = param.Selector(
        default=SPLITS[0],
        objects=list(SPLITS),
        doc="Held-out rows: those that are marked, half of the points of each replica, or one "
        "replica of each output, drawn by the seed. Where nothing is marked or hidden: one replica "
        "of each output, or a share of the rows if an output has fewer than three.",
    )
    test_share = param.Number(
        0.2,
        bounds=(0.0, 0.8),
        doc="Share of held-out rows, where neither marks nor replicas decide which; 0: none.",
    )
    n_latent_dims = AutoInteger(
        AUTO,
        bounds=(1, 10),
        label="Latent dimensions",
        doc="Dimension Q_H of the latent space of the outputs.",
    )
    n_inducing_outputs = AutoInteger(
        AUTO,
        bounds=(1, 200),
        label="Inducing points among outputs",
        doc="Number M_H of inducing points in the latent space of the outputs; if there are fewer "
        "points than kinds of outputs, bands are too narrow.",
    )
    n_inducing_inputs = AutoInteger(
        AUTO,
        bounds=(2, 500),
        label="Inducing points among inputs",
        doc="Number M_X of inducing points over inputs and replicas; about five per replica "
        "suffice.",
    )
    kernel_shared = param.Selector(
        objects=[AUTO, *KERNELS],
        doc="Covariance k_g of the curve that an output's replicas share.",
    )
    kernel_replica = param.Selector(
        objects=[AUTO, *KERNELS], doc="Covariance k_f of the deviation of each replica."
    )
    noise = param.Selector(
        objects=[AUTO, "shared", "each output"],
        doc="One noise variance for all outputs, or one per output.",
    )
    optimizer = param.Selector(
        objects=["lbfgs", "adam", "natural"],
        doc="L-BFGS on the full bound, Adam as published, or natural gradients for q(U) with Adam "
        "for the rest. Models without inducing variables use L-BFGS or Adam.",
    )
    batch_size = AutoInteger(
        AUTO, bounds=(0, 1_000_000), doc="Outputs per step, drawn at random each time; 0: all."
    )
    learning_rate = param.Number(0.05, bounds=(1e-5, 1.0), doc="Step of Adam.")
    max_steps = AutoInteger(
        AUTO, bounds=(1, 100_000), doc="Maximum number of steps; auto: what time_budget allows."
    )
    patience = param.Integer(
        40,
        bounds=(0, 100_000),
        doc="Stop after this number of steps without a better bound; 0: never.",
    )
    baselines = param.Boolean(
        True, doc="Fit the other models to the same rows after the run, for comparison."
    )
    restarts = AutoInteger(
        AUTO, bounds=(1, 20), doc="Number of fits from different starts; the best is kept."
    )
