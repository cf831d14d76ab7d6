"""Estimated cost of a mitosis fit, and the limits that it sets."""

from __future__ import annotations

import math

from scant.studies.base import Counts, until_rest
from scant.studies.mitosis.settings import EARLY, LATENT, NETWORK, MitosisSettings
from scant.studies.split import GROUP, SPLIT, SplitCounts, planned

STEPS = {"sclvm": 200, "bgplvm": 150, "dgplvm": 60}  # of models that are compared
LATENT_MAX_ROWS = 2500  # up to which latent variable models are compared
MOST_MODELED = 1500  # rows of the latent variable model, where a GP classifier learns from all
MOST_KNOWN = 20_000  # rows of the GP classifier
DGPLVM_MAX_ROWS = 1000  # rows, for its cost is cubic in them
MOST_VALIDATION = 500
MOST_TEST = 1000  # held-out rows that are scored, as published
LOOK = {NETWORK: 0.006, EARLY: 0.018}  # seconds that an image is looked at, with its turns
MODELED = 20  # components of that, which the latent variable model learns
VALIDATION_SHARE = 0.25  # of what is not held out, for temperatures and thresholds


def parts(s: MitosisSettings, rows: int, counts: Counts) -> SplitCounts:
    """Rows that the fit divides a table into, labels that were not counted guessed."""
    label = counts.get("label", {})
    rare = label.get(s.positive_class, 0) or min(label.values(), default=max(2, rows // 12))
    known = sum(label.values()) or rows
    groups = 0 if s.split_by else len(counts.get(GROUP.name, {}))
    held = planned(s, known, counts)
    if not counts.get(SPLIT.name):
        test, groups = _held(s.test_share, known, groups)
        held = SplitCounts(known - test, 0, test, rows)
    spared = _held(VALIDATION_SHARE, held.train, groups)[0] if s.tempered else 0
    train = held.train - (held.validation or spared)
    rare = min(round(rare * train / known), s.rare_rows or rare)
    return SplitCounts(
        min(train, round(rare * (1 + s.imbalance))) if s.imbalance else train,
        min(held.validation or spared, MOST_VALIDATION),
        min(held.test, MOST_TEST),
        rows,
    )


def _held(share: float, rows: int, groups: int) -> tuple[int, int]:
    """Rows that are held out, in whole groups of one size, and the number of groups left."""
    if groups < 2:
        return round(share * rows), groups
    taken = math.ceil(share * groups - 1e-9)
    return round(rows * taken / groups), groups - taken


def n_classes(counts: Counts) -> int:
    """Classes of a table; two where they were not counted."""
    return len(counts.get("label", {})) or 2


def modeled(settings: MitosisSettings, train: int) -> int:
    """Of so many rows to learn from, those of the latent variable model."""
    return train if settings.classifier == LATENT else min(train, MOST_MODELED)


def step_seconds(rows: int, points: int, dims: int, width: int) -> float:
    """Seconds that a step of SCLVM takes.

    Args:
        rows: That are learned from.
        points: Inducing points of all classes.
        dims: Latent dimensions.
        width: Columns or components.
    """
    return 0.0035 + 8.5e-10 * rows * points * points * dims + 1.3e-9 * rows * points * width


def estimate(
    settings: MitosisSettings, rows: int, columns: int, counts: Counts
) -> tuple[float, float]:
    """Seconds and bytes that a fit takes on one core, good to a factor of two.

    Counted: reading; what a network sees in images; the steps (half were used before the bound
    settled); the compared models' own steps; placing the held-out rows. Labels that were not
    counted are guessed: two, a twelfth of the rows rare. Measured, one thread, ten latent
    dimensions, 60 inducing points in all: a step of SCLVM takes 9 to 11 ms of tables of 400 and 569
    rows, 16 to 18 ms of 1,140 and 1,320; of BGPLVM 7 ms of 400.
    """
    s = settings
    n, spared, test, _ = parts(s, rows, counts)
    known, n = min(n + spared, MOST_KNOWN), modeled(s, n)
    classes = n_classes(counts)
    m = s.n_inducing * (2 if s.model == "bgplvm" else classes)
    q = s.n_shared_dims + s.n_private_dims
    width = min(n, s.n_components or min(columns, s.size**2))
    looks = LOOK.get(s.features, 0.0) if "p0" in counts or columns > 400 else 0.0
    width += MODELED if looks else 0
    bound = step_seconds(n, m, q, width)
    cubic = 0.0025 + 1.7e-10 * min(n, DGPLVM_MAX_ROWS) ** 3
    placing = 1.3e-8 * test * m * m * q
    steps = until_rest(s.max_steps, s.patience, 0.4) * s.restarts * 1.1
    seconds = 0.5 + looks * rows + 3e-6 * rows * min(columns, 2000) * 0.5
    seconds += steps * (cubic if s.model == "dgplvm" else bound) + 2 * placing
    compared = list(STEPS) if s.baselines and s.classifier == LATENT else [s.model]
    again = [name for name in compared if name != s.model]
    again += compared if s.baselines and looks else []  # on pixels alone
    for name in again:
        if n <= (DGPLVM_MAX_ROWS if name == "dgplvm" else LATENT_MAX_ROWS):
            seconds += STEPS[name] * (cubic if name == "dgplvm" else bound) + placing
    seconds += 1.0 if s.baselines else 0.0
    if s.classifier != LATENT:
        seconds += 2.0 + 0.004 * min(known, 1000) * classes + 2e-4 * known
    held = 8 * (3 * rows * min(columns, 2000) + 6 * n * m + 4 * n * width)
    return seconds, 500e6 + held
