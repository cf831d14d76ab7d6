"""Settings of the aggregation study."""

from __future__ import annotations

from typing import Any

import param
from scant.studies.auto import AUTO, AutoInteger
from scant.studies.split import SplitSettings

MOST_EXACT = 1500  # rows, whose exact posterior costs no more than a sparse one
MOST_KNOWN = 4000  # rows of an exact posterior whose hyperparameters are those of fewer
MOST_LEARNED = 1000  # rows that these are learned from
KERNELS = ["eq", "matern12", "matern32", "matern52"]
TRIED = ("eq", "matern52", "matern32", "matern12")  # the smoothest first, where all is points
MOST_LATENT = 8  # functions that many tasks share, where nobody says how many
# What the settings that are `auto` were before; demonstrations keep it.
FIXED: dict[str, Any] = {
    "n_latent": 0,
    "rank": 1,
    "kernel": "eq",
    "n_inducing": 100,
    "batch_size": 0,
    "max_steps": 800,
    "stack": False,
}


class AggregationSettings(SplitSettings):
    """Settings of an MTGPA fit (Yousefi 2021, chapter 5)."""

    study = "aggregation"
    essential = ("fine_rows", "leave_out", "likelihood", "n_inducing", "max_steps")

    scarce = param.String(
        "",
        doc="The scarce task, which the figures and scores are about. Empty: the task with "
        "held-out rows, else the task with the smallest supports.",
    )
    fine_rows = param.Integer(
        0,
        bounds=(0, 1_000_000),
        doc="Scarcity: number of training rows of the scarce task; 0: all that are not held out.",
    )
    test_share = param.Number(
        0.2,
        bounds=(0.0, 0.8),
        doc="Share of held-out rows of the scarce task, where no row of the table is marked.",
    )
    leave_out = param.String(
        "",
        doc="Tasks left out of training, separated by commas, such as a cheap sensor.",
    )
    likelihood = param.Selector(
        objects=[AUTO, "gaussian", "heteroscedastic", "poisson", "bernoulli"],
        doc="Distribution of the observations. auto: Poisson for counts of mean 100 at most, "
        "Bernoulli for 0 and 1, else Gaussian. heteroscedastic: a second function models the noise "
        "over the inputs.",
    )
    likelihoods = param.String(
        "",
        doc="Likelihoods of single tasks that differ from the setting above: task=poisson, "
        "other=gaussian.",
    )
    standardize = param.Selector(
        objects=[AUTO, "together", "each task"],
        doc="Standardize by the mean and deviation of all tasks (one quantity in one unit) or of "
        "each task (instruments with different scales). auto: decided by how far the scales "
        "differ.",
    )
    n_latent = AutoInteger(
        AUTO,
        bounds=(0, 8),
        label="Latent functions",
        doc="Number Q of latent functions that the tasks share; auto, 0: one for every two tasks.",
    )
    rank = AutoInteger(
        AUTO,
        bounds=(1, 8),
        doc="Rank R of each coregionalization matrix B_q = A_q A_qᵀ + diag(kappa).",
    )
    kernel = param.Selector(
        objects=[AUTO, *KERNELS],
        doc="Covariance of the latent functions. eq: exact averages over boxes; others: "
        "quadrature. auto: the one of the highest evidence where all rows are points, else eq.",
    )
    lengthscale = param.Number(
        0.0,
        bounds=(0.0, None),
        doc="Fixed lengthscale of the first dimension, in its unit; 0: learn it.",
    )
    noise = param.Number(
        0.1,
        bounds=(1e-6, 1.0),
        doc="Initial noise, as a share of the values' variance. A low start finds more detail, a "
        "high start finds smoother functions.",
    )
    inference = param.Selector(
        objects=[AUTO, "variational", "exact"],
        doc="variational: inducing points, for any likelihood and number of rows. exact: Gaussian "
        "likelihoods and kernel eq only; the cost grows as the cube of the rows. auto: exact where "
        "it can be, up to 1,500 rows and without a batch size; with kernel auto up to 4,000 rows, "
        "hyperparameters being learned from 1,000 of them.",
    )
    n_inducing = AutoInteger(
        AUTO,
        bounds=(2, 2000),
        label="Inducing points",
        doc="Number m of inducing points of each latent function: cluster centers of the data, or "
        "an even grid where m exceeds the number of rows. More points resolve finer detail; the "
        "cost grows as m³.",
    )
    stack = param.Boolean(
        True,
        doc="Average the predictions of the scarce task with those of GPs of this task alone, a "
        "straight line and the mean, weighted by its rows, each left out; where inference is exact "
        "and its boxes are of one size. Not in the publication.",
    )
    learn_inducing = param.Boolean(False, doc="Optimize the positions of the inducing points.")
    optimizer = param.Selector(
        objects=["natural", "adam", "em"],
        doc="Natural gradients for q(u) and Adam for the rest, Adam for all, or variational EM as "
        "published.",
    )
    learning_rate = param.Number(
        0.1,
        bounds=(1e-5, 1.0),
        doc="Step size of Adam; natural gradients have their own step size.",
    )
    halving = param.Integer(
        150,
        bounds=(0, 1_000_000),
        doc="Number of steps that halve the learning rate, so that the bound settles; 0: constant "
        "rate.",
    )
    batch_size = AutoInteger(
        AUTO, bounds=(0, 1_000_000), doc="Rows per step, drawn at random each time; 0: all rows."
    )
    max_steps = AutoInteger(
        AUTO, bounds=(1, 100_000), doc="Maximum number of steps; auto: what time_budget allows."
    )
    patience = param.Integer(
        60,
        bounds=(0, 100_000),
        doc="Stop after this number of steps without a better bound, and after 4 at most if "
        "inference is exact; 0: never.",
    )
