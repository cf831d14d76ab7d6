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
LEAST_ROWS = 10  # of these, to tell anything
DENSITY = ("mean log-likelihood", "CRPS", "CDE loss", "PIT-KS")
# Of this model alone; reports of before lack the last two.
ALSO = ("sigma_MAD", "outliers beyond 0.15", *DENSITY, "bias", "outliers beyond 3 sigma")
LEARNED = (
    "Scores with bands missing come from models of the remaining bands, trained as for a table to "
    "predict that lacks these bands."
)
PAIRS = 20_000  # of basis functions, in all models: a pattern of missing bands takes so long
PATTERNS = 5  # ways in which bands are missing, for each count of them: more take time only
Rows = Float[ndarray, " n"]
Answers = Mapping[str, Scored]  # by method


class Beside(NamedTuple):
    """Predictions and scores of all methods.

    Attributes:
        whole: Baselines' predictions of all held-out rows as they are.
        missing: Scores with so many bands missing, as the catalog's `missing` has them.
        scores: This model's other scores, as its `missing_scores` has them.
        parts: Who is ahead, part by part.
        notes: Sentences on baselines that failed.
    """

    whole: Answers
    missing: Float[ndarray, "13 k"]
    scores: Float[ndarray, "9 k"]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def beside(fitted: FittedGPz, problem: Problem, scored: Scored, deadline: Deadline) -> Beside:
    """Fit the baselines and score all methods (Figs. 6.17-6.18 of Almosallam 2017).

    Bands are removed with their errors, at random, from complete rows. Baselines learn from copies
    that lack bands (`scant.learners.knocked_out`), this model as for a table that lacks them.

    Args:
        fitted: This run's model.
        problem: Problem of the run; baselines learn from its first `RIVAL_ROWS` rows.
        scored: The model's predictions of the held-out rows.
        deadline: Time of baselines, then of scores with bands missing.
    """
    bands, complete = fitted.features.optional, fitted.complete
    counts = range(min(5, max(len(bands), 1)) if len(complete) >= LEAST_ROWS else 1)
    table = (complete if len(counts) > 1 else fitted.held).iloc[:MISSING_ROWS]
    index, table = table.index.to_numpy(), table.reset_index(drop=True)
    fitted = fitted.copy()  # models for these scores alone
    generator = np.random.default_rng(fitted.settings.seed)
    patterns = patterns_of(fitted)
    hidden = [hide(generator, len(table), len(bands), count, patterns) for count in counts]
    assert problem.blocks is not None
    measured = problem.x_test[index]
    queries = [problem.x_test, *(without(measured, problem.blocks, h) for h in hidden[1:])]
    answers, notes = baselines(problem, index, queries, fitted.settings.seed, deadline)
    whole = {name: each[0] for name, each in answers.items()}
    parts = everywhere(scored, whole, problem.by)
    results, others = [], []
    missing = deadline.units(zip(counts, hidden), "scores with bands missing", minimum=1)
    for count, off in missing:
        less = table.copy()
        less[bands] = less[bands].mask(off)
        for band, gone in zip(bands, off.T):
            if f"{band}_lim" in less:  # not observed, not even down to a limit
                less[f"{band}_lim"] = less[f"{band}_lim"].mask(gone)
        if count:
            fitted.meet(less)
        mine = fitted.score(less) if count else scored.rows(index)
        theirs = {n: each[count] if count else each[0].rows(index) for n, each in answers.items()}
        every = [mine, *(theirs.get(name) for name in NAMES)]
        kinds = zip(*(scores_of(problem, one, problem.scores) for one in every))
        results.append([count, *(value for kind in kinds for value in kind)])
        others.append([count, *scores_of(problem, mine, ALSO)])
        if count:
            at = Part("missing", start=count, stop=count, rows=len(table))
            parts += part(at, mine, theirs)
    if fitted.learned is not None and len(results) > 1:
        notes = (*notes, LEARNED)
    return Beside(whole, np.array(results).T, np.array(others).T, tuple(parts), notes)


def baselines(
    problem: Problem,
    index: Int[ndarray, " k"],
    queries: list[Float[ndarray, "_ d"]],
    seed: int,
    deadline: Deadline,
) -> tuple[dict[str, list[Scored]], tuple[str, ...]]:
    """Predictions of each baseline for each of the query tables, and notes on failures.

    The first table is all held-out rows; the others are copies of the rows at `index`.
    """
    truths = [problem.y_test, *[problem.y_test[index]] * (len(queries) - 1)]
    ends = np.cumsum([0, *map(len, queries)])
    every = replace(
        problem.learning_from(slice(RIVAL_ROWS)),
        x_test=np.concatenate(queries),
        y_test=np.concatenate(truths),
    )
    answers, notes = dict[str, list[Scored]](), list[str]()
    phase = "baselines of rows with gaps"
    for result in fit_all(every, learners(seed), deadline=deadline, phase=phase):
        if result.scored is not None:
            tables = [result.scored.rows(slice(*pair)) for pair in pairwise(ends)]
            answers[result.name] = tables
        elif result.note:
            notes.append(f"{result.name} was not compared: {result.reason}")
    return answers, tuple(notes)


def patterns_of(fitted: FittedGPz) -> int:
    """Ways in which bands are missing that there is time for: a model of each may be learned."""
    if fitted.learned is not None:
        return 1
    pairs = sum(len(model.centres) ** 2 for model in fitted.ensemble.models)
    return min(max(PAIRS // pairs, 1), PATTERNS)


def hide(
    generator: np.random.Generator, n: int, bands: int, count: int, patterns: int = PATTERNS
) -> Bool[ndarray, "n bands"]:
    """Which `count` bands each row lacks: one of so many random choices, row by row in turn."""
    chosen = np.zeros((patterns, bands), dtype=bool)
    for pattern in chosen:
        pattern[generator.permutation(bands)[:count]] = True
    return chosen[np.arange(n) % patterns]
