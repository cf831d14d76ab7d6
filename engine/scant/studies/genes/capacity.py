"""Sizes of a fit to replicas by the table and the time budget, and what a fit takes."""

from __future__ import annotations

from scant.studies.auto import TRAINING_SHARE, Choice, training_seconds
from scant.studies.base import Counts, until_rest
from scant.studies.genes.settings import MOST_EXACT, GenesSettings
from scant.studies.genes.table import SPLITS
from scant.studies.split import SplitCounts

SIZES = range(16, 1001, 8)  # of q(U) in closed form
LEAST_EACH = 10  # rows of an output that tell its noise
MOST_STACKED = 1000  # rows whose exact models are trained in 42 s, at the cost of their cube
OTHER_STEPS = 60  # of a model beside the first
FOLDS, FOLD_STEPS = 4, 40  # of a stack (`stacking`)
STEPS = 150  # of L-BFGS, after which little is gained


def parts(s: GenesSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into; hidden replicas are not counted."""
    replicas = len(counts.get("replica", {}))
    test = counts.get("test", {}).get("1", 0) or counts.get("split", {}).get("test", 0)
    if s.split == SPLITS[1]:
        test = rows // 2
    elif s.split == SPLITS[2] or (not test and not s.hidden and s.test_share and replicas > 2):
        test = rows // max(2, replicas)
    elif not test and not s.hidden:
        test = round(s.test_share * rows)
    return SplitCounts(round(s.keep * (rows - test)), 0, test, rows)


def capacity(settings: GenesSettings, rows: int, columns: int, counts: Counts) -> dict[str, Choice]:
    """Values for the settings that are `auto`.

    Inducing points are one for every output and every row of an output, so long as `STEPS` steps
    with them take half of the time; beyond that five for each replica, and of the outputs the rest.
    """
    outputs, replicas = (max(1, len(counts.get(name, ()))) for name in ("output", "replica"))
    n = max(parts(settings, rows, counts).train, 4)
    seconds = training_seconds(settings) or TRAINING_SHARE * settings.time_budget
    most = max((m for m in SIZES if STEPS * sparse_step(n, m) <= seconds / 2), default=SIZES[0])
    each = max(-(-n // outputs), 2)
    inputs = min(each, max(5 * replicas, most // outputs), most, n, 500)
    points = min(outputs, max(1, most // inputs), 200)
    limit = MOST_STACKED * min(1.0, seconds / 42) ** (1 / 3)
    steps = int(seconds / 2 / sparse_step(n, points * inputs))
    share = f"one for each, of {outputs}" if points == outputs else f"of {outputs}, for the time"
    model = Choice("stack", "no single model is best for all tables")
    if n > limit:
        model = Choice("hmogp-lv", f"{n:,} rows are too many for exact models")
    noise = Choice("each output", f"{each} rows of each")
    if each < LEAST_EACH:
        noise = Choice("shared", f"{each} rows an output")
    return {
        "model": model,
        "n_latent_dims": Choice(2, "as published"),
        "n_inducing_outputs": Choice(points, share),
        "n_inducing_inputs": Choice(inputs, f"{each} rows an output, {replicas} replicas"),
        "kernel_shared": Choice("matern32", "as published"),
        "kernel_replica": Choice("matern32", "as published"),
        "noise": noise,
        "batch_size": Choice(0, "all outputs at once"),
        "max_steps": Choice(max(10, min(steps, 1000)), f"within {seconds:.0f} s"),
        "restarts": Choice(1, "starts agree"),
    }


def sparse_step(n: int, m: int) -> float:
    """Seconds of a step of HMOGP-LV of so many rows and inducing points.

    Measured, one thread: 6 to 8 ms with 144 points, of 180 rows and of 840; 17 with 250, 75 with
    560, 215 with 900.
    """
    return 0.0075 + 1e-8 * n * m + 5e-8 * m**2 + 2.4e-10 * m**3


def estimate(
    settings: GenesSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: the steps (half were used before the bound settled) and the other models, some
    60 steps each, the exact ones up to 1,500 rows; they are the members of a stack, which each of
    its folds refits in fewer steps. Measured, one thread: a step of DHGP takes 6 ms of 252 rows; a
    stack of 120 rows of five outputs 6.6 s to train, its report 6 s, its fit to all rows 6 s.
    """
    s = settings
    n = max(parts(s, rows, counts).train, 1)
    m = s.n_inducing_inputs * s.n_inducing_outputs
    step = sparse_step(n, m)
    cubic = 0.003 + 1e-10 * n**3
    exact = s.model in ("dhgp", "lmc", "pooled")
    if exact or s.model in ("hgp", "independent"):
        step = cubic if exact else 0.0035
    others = OTHER_STEPS * (0.028 + (2 * cubic if n <= MOST_EXACT else 0.0))
    folds = FOLDS * min(FOLD_STEPS, max(10, FOLD_STEPS * 400 // n)) / OTHER_STEPS
    others *= (s.baselines or s.model == "stack") + (s.baselines and s.model == "stack") * folds
    steps = until_rest(s.max_steps, s.patience, 0.3) * s.restarts
    held = 490e6 + 8 * 12 * n * (n if exact else m)
    return 0.4 + steps * step + others, held
