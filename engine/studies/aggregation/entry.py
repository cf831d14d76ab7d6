"""Aggregation: values known as averages over supports of every size (Yousefi 2021, chapter 5)."""

from __future__ import annotations

import param
from scant.studies.aggregation.table import TABLE
from scant.studies.base import Citation, Counts, Entry, Source, array_specs, until_rest
from scant.studies.predicted_columns import of_values
from scant.studies.split import SplitCounts, SplitSettings

MOST_EXACT = 1500  # rows, whose exact posterior costs no more than a sparse one
MOST_LATENT = 8  # functions that many tasks share, where nobody says how many


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
        objects=["auto", "gaussian", "heteroscedastic", "poisson", "bernoulli"],
        doc="Distribution of the observations. auto: Poisson for counts, Bernoulli for 0 and 1, "
        "else Gaussian. heteroscedastic: a second function models the noise over the inputs.",
    )
    likelihoods = param.String(
        "",
        doc="Likelihoods of single tasks that differ from the setting above: task=poisson, "
        "other=gaussian.",
    )
    standardize = param.Selector(
        objects=["auto", "together", "each task"],
        doc="Standardize by the mean and deviation of all tasks (one quantity in one unit) or of "
        "each task (instruments with different scales). auto: decided by how far the scales "
        "differ.",
    )
    n_latent = param.Integer(
        0,
        bounds=(0, 8),
        label="Latent functions",
        doc="Number Q of latent functions that the tasks share; 0: one for every two tasks.",
    )
    rank = param.Integer(
        1,
        bounds=(1, 8),
        doc="Rank R of each coregionalization matrix B_q = A_q A_qᵀ + diag(kappa).",
    )
    kernel = param.Selector(
        objects=["eq", "matern12", "matern32", "matern52"],
        doc="Covariance of the latent functions. eq: exact averages over boxes; others: "
        "quadrature.",
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
        objects=["auto", "variational", "exact"],
        doc="variational: inducing points, for any likelihood and number of rows. exact: Gaussian "
        "likelihoods and kernel eq only; the cost grows as the cube of the rows. auto: exact where "
        "it can be, up to 1,500 rows and without a batch size.",
    )
    n_inducing = param.Integer(
        100,
        bounds=(2, 2000),
        label="Inducing points",
        doc="Number m of inducing points of each latent function: cluster centers of the data, or "
        "an even grid where m exceeds the number of rows. More points resolve finer detail; the "
        "cost grows as m³.",
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
    batch_size = param.Integer(
        0, bounds=(0, 1_000_000), doc="Rows per step, drawn at random each time; 0: all rows."
    )
    max_steps = param.Integer(800, bounds=(1, 100_000), doc="Maximum number of steps.")
    patience = param.Integer(
        60,
        bounds=(0, 100_000),
        doc="Stop after this number of steps without a better bound, and after 4 at most if "
        "inference is exact; 0: never.",
    )


def parts(s: AggregationSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into, the smallest task taken for the scarce one."""
    left = {task.strip() for task in s.leave_out.split(",")}
    tasks = {task: n for task, n in counts.get("task", {}).items() if task not in left}
    used = sum(tasks.values()) or rows
    test = counts.get("split", {}).get("test", 0)
    scarce = tasks.get(s.scarce) or min((n for n in tasks.values() if n >= test), default=used // 2)
    test = test or round(s.test_share * scarce)
    spare = max(0, scarce - test - s.fine_rows) if s.fine_rows else 0
    return SplitCounts(used - test - spare, 0, test, rows)


def estimate(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the report and the steps (207 to all of 800 were used before the bound settled
    by `patience`). A step goes through the latent functions one by one: `n_latent`, or one
    for every two tasks, and two tasks where the table was not read. Measured, one thread, a
    function's part of a step with 100 inducing points: 9 to 10 ms of 100 to 400 intervals. An
    evaluation of the log evidence: 3.5 ms of 184 rows, 35 of 740, 150 of 1,360; some 55 are made.
    Where only the values decide whether it is exact, the dearer of both is told.
    """
    s = settings
    left = {task.strip() for task in s.leave_out.split(",")}
    tasks = counts.get("task", {}).keys() - left
    n = parts(s, rows, counts).train
    if s.batch_size:
        n = min(n, s.batch_size * (len(tasks) or 2))
    functions = s.rank * (s.n_latent or min(-(-(len(tasks) or 2) // 2), MOST_LATENT))
    named = max(3, len(counts.keys() & {c.name for c in TABLE.columns}))  # task and y among them
    dimensions = max(1, (columns - named) // 2)  # a box has two ends
    m = s.n_inducing
    part = 0.0055 + 4.7e-5 * m + 9e-10 * m**3 + 2.7e-8 * n * m * (1 + dimensions)
    steps = until_rest(s.max_steps, s.patience, 0.6)
    sparse = 0.8 + steps * functions * part, 490e6 + 60 * n * m * dimensions * functions
    small = n <= MOST_EXACT and s.kernel == "eq" and not (s.batch_size or s.likelihoods)
    if s.inference != "exact" and not (
        s.inference == "auto" and small and s.likelihood in ("auto", "gaussian")
    ):
        return sparse
    each = 0.002 + functions * 2.5e-8 * n**2 + 4.5e-11 * n**3
    exact = 0.8 + 1.3 * (14 + 1.2 * min(s.max_steps, 35)) * each, 490e6 + 96.0 * n**2
    if s.inference == "exact" or s.likelihood == "gaussian":
        return exact
    return max(sparse[0], exact[0]), max(sparse[1], exact[1])


_FIELD = array_specs("""
    mean (g) [y] posterior means of the cells' averages, of one task
    std_f (g) [y] their deviations
    std_y (g) [y] deviations of new observations of the cells
""")
_PRIOR = array_specs("""
    B (t t) [1] sum over q of the coregionalization matrices B_q
    lengthscale (q d) [input] lengthscales of the latent functions
""")

ENTRY = Entry(
    name="aggregation",
    title="Aggregation",
    question="How do you predict single years, hours or places from averages over larger ones?",
    settings=AggregationSettings,
    table=TABLE,
    sources=(
        Source(
            "demo",
            "Births by age and year",
            "a simulated country's birth rates by 5 × 5 years, and a few single cells",
            generator="scant.studies.aggregation.simulate.fertility:demo",
            size=(2744, 8),
            counts={
                "task": {"first births": 2640, "first births 5x5": 104},
                "split": {"train": 1744, "test": 1000},
            },
        ),
        Source(
            "particulates",
            "A week of fine dust",
            "a cheap counter every five minutes, a reference filter every six hours",
            generator="scant.studies.aggregation.simulate.particulates:demo",
            size=(2716, 6),
            counts={
                "task": {"counter": 2016, "filter": 700},
                "split": {"train": 2044, "test": 672},
            },
        ),
        Source(
            "counts",
            "Poisson counts",
            "two tasks on intervals of one and two units, as published; one has a gap",
            generator="scant.studies.aggregation.simulate.poisson:demo",
            size=(375, 6),
        ),
    ),
    snapshot=(
        *_FIELD,
        *_PRIOR,
    ),
    report=(
        *_FIELD,
        *_PRIOR,
        *array_specs("""
            test_y (n_test) [y] held-out observations
            test_mean (n_test) [y] their predictive means
            test_std (n_test) [y] their predictive deviations
            coverage (2 c) [share] nominal and observed coverage of intervals
            check (5 n) [y] the aggregate check of each training row: task, observed value,
                posterior average over its box, deviation of a new observation, 1 where the 95%
                interval contains the value
        """),
    ),
    predicted=of_values(
        "y",
        """
            mean (n) [y] predictive mean: of the average over the row's box
            std (n) [y] deviation of that average
            std_y (n) [y] deviation of a new observation of it
            std_model (n) [y] the part of that which more data would remove: `std` again
            std_noise (n) [y] the part that stays
        """,
    ),
    explore={
        "box": array_specs("""
            grid (k) [y] values of the average over the requested box
            density (k) [1/y] their posterior density
            moments (3) [y] mean, deviation, deviation of a new observation
        """),
        "scarcity": array_specs("""
            n (k) [rows] fine observations
            smse (2 3 k) [1] all tasks, the scarce one alone: mean, low, high
            snlp (2 3 k) [nats] the same of the standardised negative log density
        """),
        "retrain": array_specs("""
            n (1) [rows] number of fine observations in training
            smse (2) [1] all tasks, the scarce one alone
            snlp (2) [nats] the same of the standardised negative log density
        """),
        "field": _FIELD,
    },
    presets={
        "demo": {"inference": "variational", "fine_rows": 80},
        "quick": {"inference": "variational", "fine_rows": 80, "n_inducing": 40, "max_steps": 80},
        "as published": {
            "inference": "variational",
            "fine_rows": 80,
            "optimizer": "em",
            "batch_size": 50,
            "n_inducing": 100,
            "max_steps": 5000,
            "learning_rate": 0.01,
            "halving": 0,
        },
    },
    citations=(
        Citation(
            "F. Yousefi, Gaussian Processes for Data Scarcity Challenges, PhD thesis, University "
            "of Sheffield, 2021, chapter 5."
        ),
        Citation(
            "F. Yousefi, M. T. Smith, M. A. Álvarez, Multi-task learning for aggregated data "
            "using Gaussian processes, NeurIPS 2019."
        ),
    ),
    limits=(
        "The model learns the noise: one variance per task, or a function if heteroscedastic. It "
        "ignores y_err, and an average over a large box counts as one observation.",
        "A count's rate is the exponential of an average, not the average of an exponential.",
        "The mean of each task is constant; predictions return to it far from the data.",
    ),
    objective="ELBO (nats a row)",
    score="ELBO of all rows (nats a row)",
    estimate=estimate,
    parts=parts,
)
