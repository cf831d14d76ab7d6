"""Likelihoods of the tasks, set or chosen by the values; checks of values against them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput
from scant.models.mtgpa.likelihoods import CATEGORICAL
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.aggregation.supports import Supports
from scant.studies.auto import AUTO
from scant.studies.query import names_in
from scant.tables.column_matching import listed
from scant.tables.schema import RowNumbers

MOST_COUNTED = 100.0  # mean of counts; noise of larger ones is mostly not Poisson noise


def fitting(y: Float[np.ndarray, " n"], exposure: Float[np.ndarray, " n"]) -> str:
    """Choose a likelihood by the values; exposures that differ indicate counts.

    Overdispersion cannot be tested before a field is fitted, so the size of the counts decides:
    Poisson noise is the smallest part of the variation of large counts.
    """
    populated = len(exposure) > 0 and float(np.ptp(exposure)) > 0
    whole = len(y) > 0 and bool((y == np.round(y)).all() and (y >= 0).all())
    if whole and y.max() <= 1 and not populated:
        return "bernoulli"
    if whole and y.mean() <= MOST_COUNTED:
        return "poisson"
    if populated:
        return "negative_binomial" if whole else "gaussian_rate"
    return "gaussian"


def counts_of(
    rate: Float[np.ndarray, " n"], exposure: Float[np.ndarray, " n"], per: float
) -> Float[np.ndarray, " n"]:
    """Convert rates per `per` units of the exposure to counts."""
    return np.round(rate * exposure / per)


def likelihoods(settings: AggregationSettings, observed: Supports) -> list[str]:
    """Likelihood of each task; tasks with class labels are categorical.

    Raises:
        BadInput: A value is impossible under the likelihood that was set, a task or likelihood is
            unknown, or rates cannot become counts without exposures.
    """
    per = settings.rate_per
    if per and not (observed.exposure != 1).any():
        raise BadInput(
            f"Setting 'rate_per' is {per:g}, so y holds rates, but the table has no column "
            "'exposure' with their denominators; name the column with the population, or set "
            "rate_per to 0."
        )
    chosen = named(settings.likelihoods, observed)
    for t, task in enumerate(observed.tasks):
        if task in chosen:
            continue
        if task in observed.labels:
            chosen[task] = CATEGORICAL
            continue
        rows = (observed.task == t) & np.isfinite(observed.y)
        y, exposure = observed.y[rows], observed.exposure[rows]
        if settings.likelihood == AUTO:
            chosen[task] = fitting(counts_of(y, exposure, per) if per else y, exposure)
        else:
            chosen[task] = settings.likelihood
    check_values(observed, chosen, rates=per > 0)
    return [chosen[task] for task in observed.tasks]


def named(text: str, observed: Supports) -> dict[str, str]:
    """Parse likelihoods by task, as in "task=poisson, other=gaussian"."""
    allowed = [str(name) for name in AggregationSettings.param["likelihood"].objects[1:]]
    result = {}
    for entry in names_in(text):
        task, _, kind = (part.strip() for part in entry.rpartition("="))
        if task not in observed.tasks or kind not in allowed:
            raise BadInput(
                f"Setting 'likelihoods' has {entry!r}; give TASK=LIKELIHOOD with a task of "
                f"{listed(observed.tasks)} and a likelihood of {listed(allowed)}."
            )
        if task in observed.labels and kind != CATEGORICAL:
            raise BadInput(
                f"Setting 'likelihoods' has {entry!r}, but the values of task {task!r} are labels "
                "of classes; leave the task out, whose likelihood is then categorical."
            )
        result[task] = kind
    return result


def check_values(
    supports: Supports,
    likelihoods: Mapping[str, str],
    *,
    rates: bool = False,
    rows: RowNumbers | None = None,
) -> None:
    """Check that each value is possible under its task's likelihood.

    Args:
        supports: The observations; NaN values are skipped.
        likelihoods: By task "poisson" or "negative_binomial" (counts), "bernoulli" (0 or 1),
            "categorical" (whole numbers) or any other (all numbers).
        rates: Whether y are counts divided by exposures, which need not be whole.
        rows: Row numbers for messages; counted from 0 where None.

    Raises:
        BadInput: A value is impossible; the message names its row.
    """
    y, at = supports.y, np.arange(len(supports)) if rows is None else np.asarray(rows)
    count_rule = (y < 0, "a rate of zero or more", "a Gaussian")
    if not rates:
        count_rule = ((y < 0) | (y != np.round(y)), "a count (0, 1, 2 …)", "a Gaussian")
    rules = {
        "poisson": count_rule,
        "negative_binomial": count_rule,
        "bernoulli": ((y != 0) & (y != 1), "0 or 1", "another"),
        "categorical": (y != np.round(y), "the whole number of a class", "another"),
    }
    for t, task in enumerate(supports.tasks):
        likelihood = likelihoods.get(task, "gaussian")
        if likelihood not in rules:
            continue
        invalid, required, alternative = rules[likelihood]
        bad = np.flatnonzero(invalid & ~np.isnan(y) & (supports.task == t))
        if len(bad):
            more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
            raise BadInput(
                f"the table, column 'y', row {at[bad[0]]}: got {y[bad[0]]:g}{more}, but the "
                f"{likelihood} likelihood of task {task!r} needs {required}; correct it or choose "
                f"{alternative} likelihood."
            )
