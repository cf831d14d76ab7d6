"""Sizes of an MTGPA fit for a table and a time budget, and the cost of the fit."""

from __future__ import annotations

from scant.studies.aggregation.settings import (
    COUNTED,
    EXACT,
    FEWEST_POINTS,
    MOST_EXACT,
    MOST_FINER,
    MOST_GROWN,
    MOST_KNOWN,
    MOST_LATENT,
    MOST_LEARNED,
    MOST_NODE_ROWS,
    MOST_PIECES,
    MOST_POINTS,
    SUMMED,
    TRIED,
    AggregationSettings,
)
from scant.studies.aggregation.table import TABLE
from scant.studies.auto import AUTO, TRAINING_SHARE, Choice, training_seconds
from scant.studies.base import Counts, until_rest
from scant.studies.split import SplitCounts
from scant.tables.geometry import COLUMN
from scant.tables.schema import COVARIATE

SIZES = range(16, 401, 4)
STEPS = 250  # after which most bounds have converged
MOST_AT_ONCE = 4000  # rows per step
MOST_SUMMED = 9000  # points per step, where rates are sums over the points of a support
MOST_PAIRS = 2e7  # pairs of points within polygons whose covariances are in memory at once
NODES = 100  # evaluations of the log evidence to place nodes, including gradients


def parts(s: AggregationSettings, rows: int, counts: Counts) -> SplitCounts:
    """Sizes of the splits of a table; the smallest task is taken as the scarce one."""
    excluded = {task.strip() for task in (*s.leave_out.split(","), s.population_task)}
    tasks = {task: n for task, n in counts.get("task", {}).items() if task not in excluded}
    used = sum(tasks.values()) or rows
    test = counts.get("split", {}).get("test", 0)
    scarce = tasks.get(s.scarce) or min((n for n in tasks.values() if n >= test), default=used // 2)
    test = test or round(s.test_share * scarce)
    unused = max(0, scarce - test - s.fine_rows) if s.fine_rows else 0
    return SplitCounts(used - test - unused, 0, test, rows)


def capacity(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Values for the settings that are `auto`; the study chooses kernel and functions.

    There is one inducing point for every two rows (one for each area where rates of counts are
    mapped), 64 at least and 400 at most, if `STEPS` steps with them fit in the time. With many
    rows, each step uses a batch.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    n_tasks = len(named_tasks(s, counts)) or 1
    seconds = training_seconds(s) or TRAINING_SHARE * s.time_budget
    points_each = inside_each(s, rows) if COLUMN in counts else 1
    max_rows = MOST_SUMMED // points_each if summed(s, counts) else MOST_AT_ONCE
    batch = 0 if n <= max_rows or s.inference == "exact" else max(1, max_rows // n_tasks)
    n_points = min(n, max_rows) * points_each

    def all_steps(m: int) -> float:
        return STEPS * functions * sparse_step(n_points, m, dimensions, summed(s, counts))

    areas = summed(s, counts)  # few enough for one inducing point each, since their rates are rough
    max_inducing = min(400, max(100, n) if areas else max(64, n // 2))
    n_inducing = max(
        (m for m in SIZES if m <= max_inducing and all_steps(m) <= seconds), default=SIZES[0]
    )
    steps = max(20, min(2000, round(seconds / (all_steps(n_inducing) / STEPS))))
    rank = rank_of(s, counts)
    return {
        "rank": Choice(
            rank, "each task has a part of its own" if rank > 1 else "one for each latent function"
        ),
        "n_inducing": Choice(
            n_inducing,
            f"one for {'each' if areas else 'two'} of {n:,} rows, within {seconds:.0f} s",
        ),
        "batch_size": Choice(batch, "rows of each task a step" if batch else "all rows at once"),
        "max_steps": Choice(steps, f"within {seconds:.0f} s"),
    }


def named_tasks(s: AggregationSettings, counts: Counts) -> set[str]:
    """Tasks of the table in training; empty if the table was not read."""
    excluded = {task.strip() for task in (*s.leave_out.split(","), s.population_task)}
    return set(counts.get("task", {})) - excluded


def sizes(s: AggregationSettings, rows: int, columns: int, counts: Counts) -> tuple[int, int, int]:
    """Training rows, latent functions times their rank, and dimensions.

    Functions are counted for numeric tasks; the values decide how many more a categorical one has.
    """
    n_tasks = len(named_tasks(s, counts)) or (1 if counts else 2)
    latent = s.n_latent if isinstance(s.n_latent, int) else 0
    rank = rank_of(s, counts)
    n_named = max(3, len(counts.keys() & {c.name for c in TABLE.columns}))  # including task and y
    linear = {name for name in counts if name.startswith(COVARIATE)}
    linear |= {name.strip() for name in s.covariates.split(",")} & counts.keys()
    dimensions = max(1, (columns - n_named - len(linear)) // 2)  # a box has two ends
    if COLUMN in counts:  # a map, whose attributes are not dimensions
        bound_columns = [
            name for name in counts if name not in {c.name for c in TABLE.columns} | linear
        ]
        dimensions = 2 + len(
            {name.removesuffix("_lo").removesuffix("_hi") for name in bound_columns}
        )
    functions = rank * (latent or min(-(-n_tasks // 2), MOST_LATENT))
    return parts(s, rows, counts).train, functions, dimensions


def rank_of(s: AggregationSettings, counts: Counts) -> int:
    """Rank of the coregionalization matrices.

    Tasks of a map of counts share a kernel, and each has an individual part: rates of two periods
    or of two diseases are related, not the same.
    """
    if isinstance(s.rank, int):
        return s.rank
    return 2 if summed(s, counts) and len(named_tasks(s, counts)) > 1 else 1


def inside_each(s: AggregationSettings, rows: int) -> int:
    """Points inside each of `rows` polygons; fewer than requested if pairs fill memory."""
    minimum, maximum = FEWEST_POINTS, MOST_POINTS
    requested = s.polygon_points or min(max(MOST_PIECES // max(rows, 1), minimum), maximum)
    if s.counts != SUMMED or s.likelihood in EXACT:
        return requested
    return min(requested, max(maximum, int((MOST_PAIRS / max(rows, 1)) ** 0.5)))


def summed(s: AggregationSettings, counts: Counts) -> bool:
    """Return True for a map of counts whose rates are sums, by settings and columns."""
    counted = s.likelihood in COUNTED or (s.likelihood == AUTO and "exposure" in counts)
    return s.counts == SUMMED and COLUMN in counts and counted


def sparse_step(n: int, m: int, dimensions: int, blocks: bool = False) -> float:
    """Seconds of a step per latent function, with n rows and m inducing points.

    Measured on one thread: 9 to 10 ms with 100 inducing points and 100 to 400 intervals. `blocks`
    adds covariances of the points within a polygon: .34 s with 18,000 points and m = 200.
    """
    step = 0.0055 + 4.7e-5 * m + 9e-10 * m**3 + 2.7e-8 * n * m * (1 + dimensions)
    return step + 3e-10 * n * m**2 * blocks


def estimate(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimated seconds and bytes of a fit on one core, good to a factor of two.

    Includes the report and the steps (207 to all of 800 were used before the bound converged by
    `patience`). A step iterates over the latent functions: `n_latent`, or one for every two tasks
    (two tasks if the table was not read). An evaluation of the log evidence takes 3.5 ms with 184
    rows, 35 with 740, 150 with 1,360; there are some 55 for each kernel and each added function,
    and some 100 for the model over nodes.
    If only the values decide whether inference is exact, the larger estimate is returned.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    if s.batch_size:
        n = min(n, s.batch_size * max(1, len(named_tasks(s, counts)) or 2))
    points_each = inside_each(s, rows) if COLUMN in counts else 1
    n_points = points_each * n  # of all rows, with all covariances
    m = s.n_inducing
    steps = until_rest(s.max_steps, s.patience, 0.6)
    step = functions * sparse_step(n_points, m, dimensions, summed(s, counts))
    sparse = 0.8 + steps * step, 490e6 + 60 * n_points * m * dimensions * functions
    n_kernels = len(TRIED) if s.kernel == AUTO and points_each == 1 else 1
    max_exact = MOST_KNOWN if s.kernel == AUTO else MOST_EXACT
    small = (
        n <= max_exact
        and (points_each == 1 or n_points <= MOST_PIECES)
        and s.kernel in (AUTO, "eq")
        and not (s.batch_size or s.likelihoods)
    )
    if s.inference != "exact" and not (
        s.inference == "auto" and small and s.likelihood in (AUTO, *EXACT)
    ):
        return sparse
    n_bytes = 490e6 + 96.0 * n_points**2
    n = MOST_LEARNED if n > MOST_EXACT and s.kernel == AUTO else n
    evaluation_seconds = 0.002 + functions * 2.5e-8 * (points_each * n) ** 2 + 4.5e-11 * n**3
    steps = 1.2 * min(s.max_steps, 35)
    finer = s.hyperparameters != "point"
    evaluations: float = n_kernels * ((28 if finer else 14) + steps)
    max_added = MOST_GROWN if s.n_latent == AUTO and n <= MOST_FINER else 0
    n_starts = 2 + (dimensions if dimensions > 1 else 0)
    for added in range(1, max_added + 1):
        evaluations += (14 * n_starts + steps) * (functions + added) / functions
    if finer and (n <= MOST_NODE_ROWS or s.hyperparameters == "nodes"):
        evaluations += NODES * (functions + max_added) / functions
    seconds = 0.8 + 1.3 * evaluations * evaluation_seconds
    exact = seconds, n_bytes
    if s.inference == "exact" or s.likelihood in EXACT:
        return exact
    return max(sparse[0], exact[0]), max(sparse[1], exact[1])
