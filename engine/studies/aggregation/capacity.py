"""Sizes of an MTGPA fit by the table and the time budget, and what a fit takes."""

from __future__ import annotations

from scant.studies.aggregation.settings import (
    MOST_EXACT,
    MOST_KNOWN,
    MOST_LATENT,
    MOST_LEARNED,
    TRIED,
    AggregationSettings,
)
from scant.studies.aggregation.table import TABLE
from scant.studies.auto import AUTO, TRAINING_SHARE, Choice, training_seconds
from scant.studies.base import Counts, partner_seconds, until_rest
from scant.studies.split import SplitCounts

SIZES = range(16, 401, 4)
STEPS = 250  # by which most bounds have settled
MOST_AT_ONCE = 4000  # rows of a step


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


def capacity(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> dict[str, Choice]:
    """Values for the settings that are `auto`; the kernel is chosen by the study.

    Inducing points are one for every two rows, 64 at least and 400 at most, while `STEPS` steps
    with them are done in time; of many rows a step sees a batch.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    tasks = len(named_tasks(s, counts)) or 1
    seconds = training_seconds(s) or TRAINING_SHARE * s.time_budget
    batch = 0 if n <= MOST_AT_ONCE or s.inference == "exact" else MOST_AT_ONCE // tasks
    seen = min(n, MOST_AT_ONCE)

    def all_steps(m: int) -> float:
        return STEPS * functions * sparse_step(seen, m, dimensions)

    wanted = min(400, max(64, n // 2))
    points = max((m for m in SIZES if m <= wanted and all_steps(m) <= seconds), default=SIZES[0])
    steps = max(20, min(2000, round(seconds / (all_steps(points) / STEPS))))
    rank = s.rank if isinstance(s.rank, int) else 1
    return {
        "n_latent": Choice(functions // rank, f"one for every two of {tasks} tasks"),
        "rank": Choice(1, "one for each latent function"),
        "n_inducing": Choice(points, f"one for two of {n:,} rows, within {seconds:.0f} s"),
        "batch_size": Choice(batch, "rows of each task a step" if batch else "all rows at once"),
        "max_steps": Choice(steps, f"within {seconds:.0f} s"),
    }


def named_tasks(s: AggregationSettings, counts: Counts) -> set[str]:
    """Tasks of the table that are learned from; empty where it was not read."""
    return set(counts.get("task", {})) - {task.strip() for task in s.leave_out.split(",")}


def sizes(s: AggregationSettings, rows: int, columns: int, counts: Counts) -> tuple[int, int, int]:
    """Training rows, latent functions times their rank, and dimensions."""
    tasks = len(named_tasks(s, counts)) or (1 if counts else 2)
    latent = s.n_latent if isinstance(s.n_latent, int) else 0
    rank = s.rank if isinstance(s.rank, int) else 1
    named = max(3, len(counts.keys() & {c.name for c in TABLE.columns}))  # task and y among them
    dimensions = max(1, (columns - named) // 2)  # a box has two ends
    functions = rank * (latent or min(-(-tasks // 2), MOST_LATENT))
    return parts(s, rows, counts).train, functions, dimensions


def sparse_step(n: int, m: int, dimensions: int) -> float:
    """Seconds of a latent function's part of a step, of so many rows and inducing points.

    Measured, one thread: 9 to 10 ms with 100 inducing points, of 100 to 400 intervals.
    """
    return 0.0055 + 4.7e-5 * m + 9e-10 * m**3 + 2.7e-8 * n * m * (1 + dimensions)


def estimate(
    settings: AggregationSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the report and the steps (207 to all of 800 were used before the bound settled
    by `patience`). A step goes through the latent functions one by one: `n_latent`, or one
    for every two tasks, and two tasks where the table was not read. An evaluation of the log
    evidence takes 3.5 ms of 184 rows, 35 of 740, 150 of 1,360; some 55 are made, of each kernel.
    Where only the values decide whether it is exact, the dearer of both is told.
    """
    s = settings
    n, functions, dimensions = sizes(s, rows, columns, counts)
    if s.batch_size:
        n = min(n, s.batch_size * max(1, len(named_tasks(s, counts)) or 2))
    m = s.n_inducing
    steps = until_rest(s.max_steps, s.patience, 0.6)
    step = functions * sparse_step(n, m, dimensions)
    sparse = 0.8 + steps * step, 490e6 + 60 * n * m * dimensions * functions
    kernels = len(TRIED) if s.kernel == AUTO else 1
    most = MOST_KNOWN if s.kernel == AUTO else MOST_EXACT
    small = n <= most and s.kernel in (AUTO, "eq") and not (s.batch_size or s.likelihoods)
    if s.inference != "exact" and not (
        s.inference == "auto" and small and s.likelihood in ("auto", "gaussian")
    ):
        return sparse
    held = 490e6 + 96.0 * n**2
    scarce = min(counts.get("task", {}).values(), default=n)
    beside = partner_seconds(scarce, dimensions, wide=2, narrow=2) if s.stack else 0.0
    n = MOST_LEARNED if n > MOST_EXACT and s.kernel == AUTO else n
    each = 0.002 + functions * 2.5e-8 * n**2 + 4.5e-11 * n**3
    seconds = 0.8 + 1.3 * kernels * (14 + 1.2 * min(s.max_steps, 35)) * each
    exact = seconds + beside, held
    if s.inference == "exact" or s.likelihood == "gaussian":
        return exact
    return max(sparse[0], exact[0]), max(sparse[1], exact[1])
