"""Baselines of a redshift fit on the same held-out rows, complete and with bands missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from scant.deadline import Deadline
from scant.evaluate.fitting import fit_all
from scant.evaluate.parts import everywhere, part
from scant.evaluate.scores import scores_of
from scant.learners.knocked_out import NAMES, learners, without
from scant.predictive.scored import Scored
from scant.problem import Problem
from scant.studies.redshift.capacity import RIVAL_ROWS
from scant.studies.redshift.fitted import FittedGPz
from scant.verdict import Part

MISSING_ROWS = 2000  # test rows from which bands are removed: all of the demonstration's
LEAST_ROWS = 10  # least number of these for scores
DENSITY = ("mean log-likelihood", "CRPS", "CDE loss", "PIT-KS")
# For this model alone; older reports lack the last two.
ALSO = ("sigma_MAD", "outliers beyond 0.15", *DENSITY, "bias", "outliers beyond 3 sigma")
LEARNED = (
    "Scores with bands missing come from models of the remaining bands, trained as for a table to "
    "predict that lacks these bands."
)
PAIRS = 20_000  # pairs of basis functions in all models: they set the time of a missing pattern
PATTERNS = 5  # missing patterns for each number of missing bands; more only take time
Rows = Float[ndarray, " n"]
Answers = Mapping[str, Scored]  # by method


class Beside(NamedTuple):
    """Predictions and scores of all methods.

    Attributes:
        whole: Predictions of the baselines for all held-out rows.
        missing: Scores by number of missing bands (`missing` of the catalog).
        scores: Further scores of this model (`missing_scores` of the catalog).
        parts: Comparisons by part of the data.
        notes: Sentences on baselines that failed.
    """

    whole: Answers
    missing: Float[ndarray, "13 k"]
    scores: Float[ndarray, "9 k"]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def beside(fitted: FittedGPz, problem: Problem, scored: Scored, deadline: Deadline) -> Beside:
    """Fit the baselines and score all methods (Figs. 6.17-6.18 of Almosallam 2017).

    Bands and their errors are removed at random from complete rows. Baselines learn from copies
    that lack bands (`scant.learners.knocked_out`), this model as for a table that lacks them.

    Args:
        fitted: Model of the run.
        problem: Problem of the run; baselines learn from its first `RIVAL_ROWS` rows.
        scored: Predictions of the model for the held-out rows.
        deadline: Time for baselines, then for scores with bands missing.
    """
    bands, complete = fitted.features.optional, fitted.complete
    counts = range(min(5, max(len(bands), 1)) if len(complete) >= LEAST_ROWS else 1)
    table = (complete if len(counts) > 1 else fitted.held).iloc[:MISSING_ROWS]
    index, table = table.index.to_numpy(), table.reset_index(drop=True)
    fitted = fitted.copy()  # models for these scores alone
    generator = np.random.default_rng(fitted.settings.seed)
    patterns = patterns_of(fitted)
    masks = [hide(generator, len(table), len(bands), count, patterns) for count in counts]
    assert problem.blocks is not None
    measured = problem.x_test[index]
    queries = [problem.x_test, *(without(measured, problem.blocks, mask) for mask in masks[1:])]
    answers, notes = baselines(problem, index, queries, fitted.settings.seed, deadline)
    whole = {name: each[0] for name, each in answers.items()}
    parts = everywhere(scored, whole, problem.by)
    results, further = [], []
    missing = deadline.units(zip(counts, masks), "scores with bands missing", minimum=1)
    for count, mask in missing:
        masked = table.copy()
        masked[bands] = masked[bands].mask(mask)
        for band, missing_rows in zip(bands, mask.T):
            if f"{band}_lim" in masked:  # not observed, not even down to a limit
                masked[f"{band}_lim"] = masked[f"{band}_lim"].mask(missing_rows)
        if count:
            fitted.meet(masked)
        own_scored = fitted.score(masked) if count else scored.rows(index)
        baseline_scored = {
            n: each[count] if count else each[0].rows(index) for n, each in answers.items()
        }
        all_scored = [own_scored, *(baseline_scored.get(name) for name in NAMES)]
        by_score = zip(*(scores_of(problem, one, problem.scores) for one in all_scored))
        results.append([count, *(value for kind in by_score for value in kind)])
        further.append([count, *scores_of(problem, own_scored, ALSO)])
        if count:
            missing_part = Part("missing", start=count, stop=count, rows=len(table))
            parts += part(missing_part, own_scored, baseline_scored)
    if fitted.learned is not None and len(results) > 1:
        notes = (*notes, LEARNED)
    return Beside(whole, np.array(results).T, np.array(further).T, tuple(parts), notes)


def baselines(
    problem: Problem,
    index: Int[ndarray, " k"],
    queries: list[Float[ndarray, "_ d"]],
    seed: int,
    deadline: Deadline,
) -> tuple[dict[str, list[Scored]], tuple[str, ...]]:
    """Predictions of each baseline for each query table, and notes on failures.

    The first table is all held-out rows; the others are copies of the rows at `index`.
    """
    targets = [problem.y_test, *[problem.y_test[index]] * (len(queries) - 1)]
    offsets = np.cumsum([0, *map(len, queries)])
    joint_problem = replace(
        problem.learning_from(slice(RIVAL_ROWS)),
        x_test=np.concatenate(queries),
        y_test=np.concatenate(targets),
    )
    answers, notes = dict[str, list[Scored]](), list[str]()
    phase = "baselines of rows with gaps"
    for result in fit_all(joint_problem, learners(seed), deadline=deadline, phase=phase):
        if result.scored is not None:
            tables = [result.scored.rows(slice(*pair)) for pair in pairwise(offsets)]
            answers[result.name] = tables
        elif result.note:
            notes.append(f"{result.name} was not compared: {result.reason}")
    return answers, tuple(notes)


def patterns_of(fitted: FittedGPz) -> int:
    """Number of missing patterns that there is time for; each may need a model."""
    if fitted.learned is not None:
        return 1
    pairs = sum(len(model.centres) ** 2 for model in fitted.ensemble.models)
    return min(max(PAIRS // pairs, 1), PATTERNS)


def hide(
    generator: np.random.Generator, n: int, bands: int, count: int, patterns: int = PATTERNS
) -> Bool[ndarray, "n bands"]:
    """Draw the `count` bands that each row lacks, from `patterns` random choices in turn."""
    missing = np.zeros((patterns, bands), dtype=bool)
    for pattern in missing:
        pattern[generator.permutation(bands)[:count]] = True
    return missing[np.arange(n) % patterns]
