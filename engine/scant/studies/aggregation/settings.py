"""Settings of the aggregation study."""

from __future__ import annotations

from typing import Any

import param

from scant.studies.auto import AUTO, AutoInteger
from scant.studies.split import SplitSettings

MOST_EXACT = 1500  # rows; up to this number an exact posterior costs no more than a sparse one
MOST_KNOWN = 4000  # rows of an exact posterior with hyperparameters from fewer rows
MOST_LEARNED = 1000  # rows for those hyperparameters
MOST_PIECES = 2000  # points inside all polygons, with all covariances computed
FEWEST_POINTS, MOST_POINTS = 9, 36  # inside each by default
SUMMED, AVERAGED = "sum of rates", "rate of the average"  # of counts
LIKELIHOODS = (
    "gaussian",
    "heteroscedastic",
    "poisson",
    "bernoulli",
    "gaussian_rate",
    "negative_binomial",
    "categorical",
)
CLUSTERS, GRID = "cluster centers", "even grid"  # of inducing points
EXACT = ("gaussian", "gaussian_rate")  # likelihoods under which the posterior can be exact
COUNTED = ("poisson", "negative_binomial")
KERNELS = ["eq", "matern12", "matern32", "matern52"]
TRIED = ("eq", "matern52", "matern32", "matern12")  # the smoothest first, if all rows are points
ROUGH = "matern32"  # for rates on a map, as in spatial epidemiology
MOST_NODE_ROWS = 800  # of an exact posterior; more rows determine its hyperparameters well
MOST_FINER = 800  # rows up to which more shared functions are tried
MOST_GROWN = 2  # maximum number of functions that are added
MOST_LATENT = 8  # default maximum of functions that many tasks share
# Earlier values of the settings that are `auto`; demonstrations keep them.
FIXED: dict[str, Any] = {
    "n_latent": 0,
    "rank": 1,
    "kernel": "eq",
    "n_inducing": 100,
    "batch_size": 0,
    "max_steps": 800,
    "stack": False,
    "counts": AVERAGED,
    "known_noise": False,
    "hyperparameters": "point",
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
    n_groups = param.Integer(
        20,
        bounds=(0, 100),
        label="Groups of counties",
        doc="Scarcity of the demonstration of counties: number of contiguous groups of counties "
        "whose counts of the later period are known; all single counties are predicted. 0: half of "
        "the counties are known one by one, the others are withheld. Not used for your own tables.",
    )
    leave_out = param.String(
        "",
        doc="Tasks left out of training, separated by commas, such as a cheap sensor.",
    )
    likelihood = param.Selector(
        objects=[AUTO, *LIKELIHOODS],
        doc="Distribution of the observations. auto: Poisson for counts with a mean of at most "
        "100, Bernoulli for 0 and 1, categorical for labels, else Gaussian. If exposures differ: "
        "negative binomial for larger counts (Poisson if inference is laplace), and gaussian_rate "
        "for values that are not counts. gaussian_rate: part of the noise variance is divided by "
        "the exposure. "
        "negative_binomial: counts that vary more than Poisson's, by a dispersion that is learned. "
        "heteroscedastic: a second function models the noise over the inputs. categorical: values "
        "are labels, which need it, or codes of classes, with a softmax of one function fewer than "
        "classes.",
    )
    likelihoods = param.String(
        "",
        doc="Likelihoods of single tasks that differ from the setting above: task=poisson, "
        "other=gaussian.",
    )
    counts = param.Selector(
        objects=[SUMMED, AVERAGED],
        doc="Rate of a Poisson or negative binomial task over a box or polygon. sum of rates: the "
        "integral of the exponential over the support. rate of the average: the exponential of the "
        "function's average, as published.",
    )
    rate_per = param.Number(
        0.0,
        bounds=(0.0, None),
        doc="Above 0: y is a rate, the count per this number of units of the exposure (1,000 "
        "births: 1000). Counts are y times exposure over this number, rounded; predictions are "
        "rates. 0: y is what was observed.",
    )
    known_noise = param.Boolean(
        True,
        doc="Add the squares of y_err to the noise variance that Gaussian tasks learn. A row "
        "without y_err gets the median of its task. Not in the publication.",
    )
    covariates = param.String(
        "",
        doc="Columns, separated by commas, that enter linearly, each task with coefficients of its "
        "own: into the mean, or into a count's logarithmic rate. They are standardized, and "
        "coefficients have a prior deviation of 2. Empty: the columns whose names begin with "
        "covariate_.",
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
        doc="Number Q of latent functions that the tasks share; 0: one for every two tasks, and "
        "one for each class but one of categorical tasks. auto: as 0, and up to two more where "
        "exact inference of up to 800 rows finds them more probable.",
    )
    rank = AutoInteger(
        AUTO,
        bounds=(1, 8),
        doc="Rank R of each coregionalization matrix B_q = A_q A_qᵀ (5.8). With as many as there "
        "are tasks it is any B_q = L_q L_qᵀ, as published. auto: 2 for rates of counts on a map, "
        "else 1.",
    )
    kernel = param.Selector(
        objects=[AUTO, *KERNELS],
        doc="Covariance of the latent functions. eq: exact averages over boxes; others: "
        "quadrature. auto: the one of the highest evidence where all rows are points, matern32 for "
        "rates of counts on a map, else eq.",
    )
    isotropic = param.Boolean(
        True,
        doc="One lengthscale for both directions of a map. Not in the publication.",
    )
    lengthscale = param.Number(
        0.0,
        bounds=(0.0, None),
        doc="Fixed lengthscale of the first dimension, in its unit; 0: learn it.",
    )
    constant_mean = param.Boolean(
        True,
        doc="Learn a constant mean of each task's functions. Off: zero means after "
        "standardization, as published (5.8); not available if inference is laplace.",
    )
    noise = param.Number(
        0.1,
        bounds=(1e-6, 1.0),
        doc="Initial noise, as a share of the values' variance. A low start finds more detail, a "
        "high start finds smoother functions.",
    )
    polygon_points = param.Integer(
        0,
        bounds=(0, 2000),
        doc="Points inside each polygon, in proportion to area, over which the model averages; 0: "
        "9 to 36, the fewer the more polygons there are.",
    )
    population_task = param.String(
        "",
        doc="Task of a map that gives the population and is not modeled: its y is the number of "
        "people at its points or in its small polygons. They weight the points inside all other "
        "polygons. Empty: points are weighted by area.",
    )
    inference = param.Selector(
        objects=[AUTO, "variational", "exact", "laplace"],
        doc="variational: inducing points, for any likelihood and number of rows. exact: Gaussian "
        "likelihoods and kernel eq only; the cost grows as the cube of the rows. laplace: sums of "
        "rates on a map only; the cost grows as the square of the points inside all polygons times "
        "the rows. auto: exact where possible, up to 1,500 rows and without a batch size, or up to "
        "4,000 rows if kernel is auto, with hyperparameters learned from 1,000 of them; laplace "
        "where possible and quick (100 polygons of 10 points each, twice).",
    )
    hyperparameters = param.Selector(
        objects=[AUTO, "point", "nodes"],
        doc="nodes: predictions are averaged over some 20 values of the hyperparameters, weighted "
        "by their posterior probability, so that intervals are reliable with few rows; only with "
        "exact or laplace inference. point: at the optimum, as published. auto: nodes up to 800 "
        "rows.",
    )
    n_inducing = AutoInteger(
        AUTO,
        bounds=(2, 2000),
        label="Inducing points",
        doc="Number m of inducing points of each latent function. More points resolve finer "
        "detail; the cost grows as m³.",
    )
    inducing_init = param.Selector(
        objects=[CLUSTERS, GRID],
        label="Initial inducing points",
        doc="cluster centers: k-means of the data, or an even grid where n_inducing exceeds the "
        "number of rows; even grid: at most n_inducing points over the range of the data, as "
        "published for the air pollution.",
    )
    stack = param.Boolean(
        True,
        doc="Calibrate the predictions of the scarce task on its rows, each left out in turn: "
        "shrink them towards the task's mean as far as their gain over it may be chance, and fit "
        "the widths of intervals by level and place. Only with exact inference and boxes of one "
        "size. Not in the publication.",
    )
    learn_inducing = param.Boolean(
        False, label="Learn inducing points", doc="Optimize the positions of the inducing points."
    )
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
        label="Steps to half the rate",
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
