"""Estimated cost of a mitosis fit, and limits on numbers of rows."""

from __future__ import annotations

import math

from scant.studies.base import Counts, until_rest
from scant.studies.mitosis.settings import EARLY, LATENT, NETWORK, MitosisSettings
from scant.studies.split import GROUP, SPLIT, SplitCounts, planned

STEPS = {"sclvm": 200, "bgplvm": 150, "dgplvm": 60}  # training steps of compared models
LATENT_MAX_ROWS = 2500  # training rows of compared latent variable models
MOST_MODELED = 1500  # training rows of the latent variable model beside a GP classifier
MOST_KNOWN = 20_000  # training rows of the GP classifier
DGPLVM_MAX_ROWS = 1000  # training rows; the cost is cubic in them
MOST_VALIDATION = 500
MOST_TEST = 1000  # held-out rows that are scored, as published
LOOK = {NETWORK: 0.006, EARLY: 0.018}  # seconds of the network per image, with rotated copies
MODELED = 20  # components of network features that the latent variable model learns
VALIDATION_SHARE = 0.25  # share of the other rows, for temperatures and thresholds


def parts(s: MitosisSettings, rows: int, counts: Counts) -> SplitCounts:
    """Return the split of a table's rows; label counts that are missing are guessed."""
    label = counts.get("label", {})
    n_rare = label.get(s.positive_class, 0) or min(label.values(), default=max(2, rows // 12))
    n_labeled = sum(label.values()) or rows
    n_groups = 0 if s.split_by else len(counts.get(GROUP.name, {}))
    counts_by_role = planned(s, n_labeled, counts)
    if not counts.get(SPLIT.name):
        n_test, n_groups = _held(s.test_share, n_labeled, n_groups)
        counts_by_role = SplitCounts(n_labeled - n_test, 0, n_test, rows)
    n_validation = _held(VALIDATION_SHARE, counts_by_role.train, n_groups)[0] if s.tempered else 0
    n_train = counts_by_role.train - (counts_by_role.validation or n_validation)
    n_rare = min(round(n_rare * n_train / n_labeled), s.rare_rows or n_rare)
    return SplitCounts(
        min(n_train, round(n_rare * (1 + s.imbalance))) if s.imbalance else n_train,
        min(counts_by_role.validation or n_validation, MOST_VALIDATION),
        min(counts_by_role.test, MOST_TEST),
        rows,
    )


def _held(share: float, rows: int, groups: int) -> tuple[int, int]:
    """Return the number of held-out rows, in whole groups of one size, and of other groups."""
    if groups < 2:
        return round(share * rows), groups
    n_taken = math.ceil(share * groups - 1e-9)
    return round(rows * n_taken / groups), groups - n_taken


def n_classes(counts: Counts) -> int:
    """Number of classes of a table; two if they were not counted."""
    return len(counts.get("label", {})) or 2


def modeled(settings: MitosisSettings, n_train: int) -> int:
    """Number of training rows of the latent variable model."""
    return n_train if settings.classifier == LATENT else min(n_train, MOST_MODELED)


def step_seconds(rows: int, points: int, dims: int, width: int) -> float:
    """Seconds per step of SCLVM.

    Args:
        rows: Number of training rows.
        points: Inducing points of all classes.
        dims: Latent dimensions.
        width: Columns or components.
    """
    return 0.0035 + 8.5e-10 * rows * points * points * dims + 1.3e-9 * rows * points * width


def estimate(
    settings: MitosisSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Estimate seconds and bytes of a fit on one core, to a factor of two.

    Included: reading; network features of images; the steps (half were used before the bound
    converged); the steps of compared models; inference of the held-out rows. Missing label counts
    are guessed: two classes, a twelfth of the rows rare. Measured with one thread, ten latent
    dimensions and 60 inducing points in total: a step of SCLVM takes 9 to 11 ms for tables of 400
    and 569 rows, 16 to 18 ms for 1,140 and 1,320; a step of BGPLVM takes 7 ms for 400.
    """
    s = settings
    n, n_validation, n_test, _ = parts(s, rows, counts)
    n_gp, n = min(n + n_validation, MOST_KNOWN), modeled(s, n)
    classes = n_classes(counts)
    m = s.n_inducing * (2 if s.model == "bgplvm" else classes)
    q = s.n_shared_dims + s.n_private_dims
    width = min(n, s.n_components or min(columns, s.size**2))
    seconds_per_image = LOOK.get(s.features, 0.0) if "p0" in counts or columns > 400 else 0.0
    width += MODELED if seconds_per_image else 0
    bound = step_seconds(n, m, q, width)
    cubic = 0.0025 + 1.7e-10 * min(n, DGPLVM_MAX_ROWS) ** 3
    placing = 1.3e-8 * n_test * m * m * q
    steps = until_rest(s.max_steps, s.patience, 0.4) * s.restarts * 1.1
    seconds = 0.5 + seconds_per_image * rows + 3e-6 * rows * min(columns, 2000) * 0.5
    seconds += steps * (cubic if s.model == "dgplvm" else bound) + 2 * placing
    compared = list(STEPS) if s.baselines and s.classifier == LATENT else [s.model]
    refitted = [name for name in compared if name != s.model]
    refitted += compared if s.baselines and seconds_per_image else []  # on pixels alone
    for name in refitted:
        if n <= (DGPLVM_MAX_ROWS if name == "dgplvm" else LATENT_MAX_ROWS):
            seconds += STEPS[name] * (cubic if name == "dgplvm" else bound) + placing
    seconds += 1.0 if s.baselines else 0.0
    if s.classifier != LATENT:
        seconds += 2.0 + 0.004 * min(n_gp, 1000) * classes + 2e-4 * n_gp
    arrays = 8 * (3 * rows * min(columns, 2000) + 6 * n * m + 4 * n * width)
    return seconds, 500e6 + arrays
