"""Sizes of a fit to replicas for a table and a time budget, and the cost of the fit."""

from __future__ import annotations

from scant.studies.auto import TRAINING_SHARE, Choice, training_seconds
from scant.studies.base import Counts, until_rest
from scant.studies.genes.settings import MOST_EXACT, GenesSettings
from scant.studies.genes.table import SPLITS
from scant.studies.split import SplitCounts

SIZES = range(16, 1001, 8)  # inducing points, with q(U) in closed form
LEAST_EACH = 10  # minimum rows of an output for its own noise
MOST_STACKED = 1000  # rows; training of exact models takes 42 s and has cubic cost
OTHER_STEPS = 60  # of each further model
FOLDS, FOLD_STEPS = 4, 40  # of a stack (`stacking`)
STEPS = 150  # of L-BFGS; more steps gain little


def parts(s: GenesSettings, rows: int, counts: Counts) -> SplitCounts:
    """Sizes of the splits of a table; hidden replicas are not counted."""
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

    There is one inducing point for every output and every row of an output, if `STEPS` steps with
    them take half of the time; otherwise five for each replica, and the rest for outputs.
    """
    n_outputs, n_replicas = (max(1, len(counts.get(name, ()))) for name in ("output", "replica"))
    n = max(parts(settings, rows, counts).train, 4)
    seconds = training_seconds(settings) or TRAINING_SHARE * settings.time_budget
    max_points = max(
        (m for m in SIZES if STEPS * sparse_step(n, m) <= seconds / 2), default=SIZES[0]
    )
    rows_each = max(-(-n // n_outputs), 2)
    inducing_inputs = min(
        rows_each, max(5 * n_replicas, max_points // n_outputs), max_points, n, 500
    )
    inducing_outputs = min(n_outputs, max(1, max_points // inducing_inputs), 200)
    limit = MOST_STACKED * min(1.0, seconds / 42) ** (1 / 3)
    steps = int(seconds / 2 / sparse_step(n, inducing_outputs * inducing_inputs))
    share = (
        f"one for each, of {n_outputs}"
        if inducing_outputs == n_outputs
        else f"of {n_outputs}, for the time"
    )
    model = Choice("stack", "no single model is best for all tables")
    if n > limit:
        model = Choice("hmogp-lv", f"{n:,} rows are too many for exact models")
    noise = Choice("each output", f"{rows_each} rows of each")
    if rows_each < LEAST_EACH:
        noise = Choice("shared", f"{rows_each} rows an output")
    return {
        "model": model,
        "n_latent_dims": Choice(2, "as published"),
        "n_inducing_outputs": Choice(inducing_outputs, share),
        "n_inducing_inputs": Choice(
            inducing_inputs, f"{rows_each} rows an output, {n_replicas} replicas"
        ),
        "kernel_shared": Choice("matern32", "as published"),
        "kernel_replica": Choice("matern32", "as published"),
        "noise": noise,
        "batch_size": Choice(0, "all outputs at once"),
        "max_steps": Choice(max(10, min(steps, 1000)), f"within {seconds:.0f} s"),
        "restarts": Choice(1, "starts agree"),
    }


def sparse_step(n: int, m: int) -> float:
    """Seconds of a step of HMOGP-LV with n rows and m inducing points.

    Measured on one thread: 6 to 8 ms with 144 points, for 180 rows and for 840; 17 with 250, 75
    with 560, 215 with 900.
    """
    return 0.0075 + 1e-8 * n * m + 5e-8 * m**2 + 2.4e-10 * m**3


def estimate(
    settings: GenesSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimated seconds and bytes of a fit on one core, good to a factor of two.

    Includes the steps (half were used before the bound converged) and the other models, some 60
    steps each, the exact ones up to 1,500 rows; they are the members of a stack, and each fold
    refits them in fewer steps. Measured on one thread: a step of DHGP takes 6 ms with 252 rows; a
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
    n_bytes = 490e6 + 8 * 12 * n * (n if exact else m)
    return 0.4 + steps * step + others, n_bytes
