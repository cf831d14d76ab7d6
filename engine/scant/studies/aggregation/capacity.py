"""Sizes of an MTGPA fit by the table and the time budget, and what a fit takes."""

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
STEPS = 250  # by which most bounds have settled
MOST_AT_ONCE = 4000  # rows of a step
MOST_SUMMED = 9000  # points of a step, where rates are sums over those of a support
MOST_PAIRS = 2e7  # of points within polygons, whose covariances are held at once
NODES = 100  # evaluations of the log evidence that place nodes, gradients among them


def parts(s: AggregationSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into, the smallest task taken for the scarce one."""
    left = {task.strip() for task in (*s.leave_out.split(","), s.population_task)}
    tasks = {task: n for task, n in counts.get("task", {}).items() if task not in left}
    used = sum(tasks.values()) or rows
    test = counts.get("split", {}).get("test", 0)
    scarce = tasks.get(s.scarce) or min((n for n in tasks.values() if n >= test), default=used // 2)
    test = test or round(s.test_share * scarce)
    spare = max(0, scarce - test - s.fine_rows) if s.fine_rows else 0
    return SplitCounts(used - test - spare, 0, test, rows)


def capacity(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Values for the settings that are `auto`; kernel and functions are chosen by the study.

    Inducing points are one for every two rows (one for each area where rates of counts are
    mapped), 64 at least and 400 at most, while `STEPS` steps with them are done in time; of many
    rows a step sees a batch.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    tasks = len(named_tasks(s, counts)) or 1
    seconds = training_seconds(s) or TRAINING_SHARE * s.time_budget
    each = inside_each(s, rows) if COLUMN in counts else 1
    most = MOST_SUMMED // each if summed(s, counts) else MOST_AT_ONCE
    batch = 0 if n <= most or s.inference == "exact" else max(1, most // tasks)
    seen = min(n, most) * each

    def all_steps(m: int) -> float:
        return STEPS * functions * sparse_step(seen, m, dimensions, summed(s, counts))

    areas = summed(s, counts)  # whose rates are rough, and few enough for a point each
    wanted = min(400, max(100, n) if areas else max(64, n // 2))
    points = max((m for m in SIZES if m <= wanted and all_steps(m) <= seconds), default=SIZES[0])
    steps = max(20, min(2000, round(seconds / (all_steps(points) / STEPS))))
    rank = rank_of(s, counts)
    return {
        "rank": Choice(
            rank, "each task has a part of its own" if rank > 1 else "one for each latent function"
        ),
        "n_inducing": Choice(
            points, f"one for {'each' if areas else 'two'} of {n:,} rows, within {seconds:.0f} s"
        ),
        "batch_size": Choice(batch, "rows of each task a step" if batch else "all rows at once"),
        "max_steps": Choice(steps, f"within {seconds:.0f} s"),
    }


def named_tasks(s: AggregationSettings, counts: Counts) -> set[str]:
    """Tasks of the table that are learned from; empty where it was not read."""
    left = {task.strip() for task in (*s.leave_out.split(","), s.population_task)}
    return set(counts.get("task", {})) - left


def sizes(s: AggregationSettings, rows: int, columns: int, counts: Counts) -> tuple[int, int, int]:
    """Training rows, latent functions times their rank, and dimensions.

    Functions are those of numeric tasks: a categorical one has more, which its values decide.
    """
    tasks = len(named_tasks(s, counts)) or (1 if counts else 2)
    latent = s.n_latent if isinstance(s.n_latent, int) else 0
    rank = rank_of(s, counts)
    named = max(3, len(counts.keys() & {c.name for c in TABLE.columns}))  # task and y among them
    linear = {n for n in counts if n.startswith(COVARIATE)}
    linear |= {word.strip() for word in s.covariates.split(",")} & counts.keys()
    dimensions = max(1, (columns - named - len(linear)) // 2)  # a box has two ends
    if COLUMN in counts:  # of a map, whose attributes are no dimensions
        ends = [n for n in counts if n not in {c.name for c in TABLE.columns} | linear]
        dimensions = 2 + len({n.removesuffix("_lo").removesuffix("_hi") for n in ends})
    functions = rank * (latent or min(-(-tasks // 2), MOST_LATENT))
    return parts(s, rows, counts).train, functions, dimensions


def rank_of(s: AggregationSettings, counts: Counts) -> int:
    """Rank of the coregionalization matrices.

    Tasks of a map of counts share a kernel, and each has a part of its own: rates of two periods or
    of two diseases are related, not the same.
    """
    if isinstance(s.rank, int):
        return s.rank
    return 2 if summed(s, counts) and len(named_tasks(s, counts)) > 1 else 1


def inside_each(s: AggregationSettings, rows: int) -> int:
    """Points inside a polygon, of so many rows; fewer than asked for where pairs fill memory."""
    few, many = FEWEST_POINTS, MOST_POINTS
    asked = s.polygon_points or min(max(MOST_PIECES // max(rows, 1), few), many)
    if s.counts != SUMMED or s.likelihood in EXACT:
        return asked
    return min(asked, max(many, int((MOST_PAIRS / max(rows, 1)) ** 0.5)))


def summed(s: AggregationSettings, counts: Counts) -> bool:
    """Whether this is a map of counts whose rates are sums, as far as settings and columns tell."""
    counted = s.likelihood in COUNTED or (s.likelihood == AUTO and "exposure" in counts)
    return s.counts == SUMMED and COLUMN in counts and counted


def sparse_step(n: int, m: int, dimensions: int, blocks: bool = False) -> float:
    """Seconds of a latent function's part of a step, of so many rows and inducing points.

    Measured, one thread: 9 to 10 ms with 100 inducing points, of 100 to 400 intervals. With
    `blocks`, covariances of the points within a polygon: .34 s of 18,000 points and m = 200.
    """
    step = 0.0055 + 4.7e-5 * m + 9e-10 * m**3 + 2.7e-8 * n * m * (1 + dimensions)
    return step + 3e-10 * n * m**2 * blocks


def estimate(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the report and the steps (207 to all of 800 were used before the bound settled
    by `patience`). A step goes through the latent functions one by one: `n_latent`, or one
    for every two tasks, and two tasks where the table was not read. An evaluation of the log
    evidence takes 3.5 ms of 184 rows, 35 of 740, 150 of 1,360; some 55 are made, of each kernel and
    each function that is added, and some 100 of the model over nodes.
    Where only the values decide whether it is exact, the dearer of both is told.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    if s.batch_size:
        n = min(n, s.batch_size * max(1, len(named_tasks(s, counts)) or 2))
    each = inside_each(s, rows) if COLUMN in counts else 1
    pieces = each * n  # of all rows, whose covariances are looked at
    m = s.n_inducing
    steps = until_rest(s.max_steps, s.patience, 0.6)
    step = functions * sparse_step(pieces, m, dimensions, summed(s, counts))
    sparse = 0.8 + steps * step, 490e6 + 60 * pieces * m * dimensions * functions
    kernels = len(TRIED) if s.kernel == AUTO and each == 1 else 1
    most = MOST_KNOWN if s.kernel == AUTO else MOST_EXACT
    small = (
        n <= most
        and (each == 1 or pieces <= MOST_PIECES)
        and s.kernel in (AUTO, "eq")
        and not (s.batch_size or s.likelihoods)
    )
    if s.inference != "exact" and not (
        s.inference == "auto" and small and s.likelihood in (AUTO, *EXACT)
    ):
        return sparse
    held = 490e6 + 96.0 * pieces**2
    n = MOST_LEARNED if n > MOST_EXACT and s.kernel == AUTO else n
    one = 0.002 + functions * 2.5e-8 * (each * n) ** 2 + 4.5e-11 * n**3
    steps = 1.2 * min(s.max_steps, 35)
    finer = s.hyperparameters != "point"
    evaluations: float = kernels * ((28 if finer else 14) + steps)
    grown = MOST_GROWN if s.n_latent == AUTO and n <= MOST_FINER else 0
    starts = 2 + (dimensions if dimensions > 1 else 0)
    for more in range(1, grown + 1):
        evaluations += (14 * starts + steps) * (functions + more) / functions
    if finer and (n <= MOST_NODE_ROWS or s.hyperparameters == "nodes"):
        evaluations += NODES * (functions + grown) / functions
    seconds = 0.8 + 1.3 * evaluations * one
    exact = seconds, held
    if s.inference == "exact" or s.likelihood in EXACT:
        return exact
    return max(sparse[0], exact[0]), max(sparse[1], exact[1])
