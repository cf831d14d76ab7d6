"""Rivals beside a redshift fit: on the same held-out rows, whole and with bands missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy import ndarray

from scant import metrics
from scant.deadline import Deadline
from scant.predictive import MixturePredictive
from scant.predictive.mixture_scores import pit_ks
from scant.rivals.by_part import everywhere, part
from scant.rivals.comparison import RowScores, row_scores
from scant.rivals.knocked_out import NAMES, Blocks, ask, methods, without
from scant.studies.redshift.capacity import RIVAL_ROWS
from scant.studies.redshift.fitted import FittedGPz, ScoredPredictive
from scant.studies.redshift.preprocessing import Features
from scant.verdict import Part

MISSING_ROWS = 500  # test rows from which bands are removed
PAIRS = 20_000  # of basis functions, in all models: a pattern of missing bands takes so long
PATTERNS = 5  # ways in which bands are missing, for each count of them: more take time only
Rows = Float[ndarray, " n"]
Answers = Mapping[str, RowScores]  # by method


class Beside(NamedTuple):
    """What all methods say.

    Attributes:
        whole: Rivals, of all held-out rows as they are.
        missing: Scores with so many bands missing, as the catalog's `missing` has them.
        scores: This model's other scores, as its `missing_scores` has them.
        parts: Who is ahead, part by part.
        notes: On rivals that failed.
    """

    whole: Answers
    missing: Float[ndarray, "13 k"]
    scores: Float[ndarray, "7 k"]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def beside(
    fitted: FittedGPz, learn: pd.DataFrame, scored: ScoredPredictive, deadline: Deadline
) -> Beside:
    """Fit the rivals and score all methods (Figs. 6.17-6.18 of Almosallam 2017).

    Bands that a row may lack are removed at random from each, with their errors. Rivals have
    learned from copies that lack bands, too (`scant.rivals.knocked_out`).

    Args:
        fitted: This run's model.
        learn: Training and validation rows, of which rivals learn from the first `RIVAL_ROWS`.
        scored: The model's predictions of the held-out rows.
        deadline: Of rivals, then of scores with bands missing.
    """
    held, bands = fitted.held, fitted.features.optional
    table = held.iloc[:MISSING_ROWS].reset_index(drop=True)
    generator = np.random.default_rng(fitted.settings.seed)
    patterns = patterns_of(fitted)
    counts = range(min(5, max(len(bands), 1)))
    hidden = [hide(generator, len(table), len(bands), count, patterns) for count in counts]
    blocks, measured = blocks_of(fitted.features), table_of(fitted.features, table)
    queries = [table_of(fitted.features, held), *(without(measured, blocks, h) for h in hidden[1:])]
    answers, notes = rivals(fitted, learn, blocks, queries, scored.y, deadline)
    whole = {name: each[0] for name, each in answers.items()}
    parts = everywhere(scored.y, own_scores(scored), whole, fitted.settings.target)
    results, others = [], []
    missing = deadline.units(zip(counts, hidden), "scores with bands missing", minimum=1)
    for count, off in missing:
        less = table.copy()
        less[bands] = less[bands].mask(off)
        for band, gone in zip(bands, off.T):
            if f"{band}_lim" in less:  # not observed, not even down to a limit
                less[f"{band}_lim"] = less[f"{band}_lim"].mask(gone)
        mine = scored if not count and len(table) == len(held) else fitted.score(less)
        theirs = {n: each[count].rows(slice(len(table))) for n, each in answers.items()}
        results.append([count, *row_of(mine, theirs)])
        error = metrics.normalized_error(mine.y, mine.mean)
        point = metrics.sigma_mad(error), metrics.far_share(error, 0.15)
        others.append([count, *point, *summary(mine)])
        if count:
            at = Part("missing", start=count, stop=count, rows=len(table))
            parts += part(at, mine.y, own_scores(mine), theirs)
    return Beside(whole, np.array(results).T, np.array(others).T, tuple(parts), notes)


def rivals(
    fitted: FittedGPz,
    learn: pd.DataFrame,
    blocks: Blocks,
    queries: list[Float[ndarray, "_ d"]],
    y: Rows,
    deadline: Deadline,
) -> tuple[dict[str, list[RowScores]], tuple[str, ...]]:
    """What each rival says of each table asked, and which could not say anything.

    The truth of a table is that of the first held-out rows.
    """
    learn = learn.iloc[:RIVAL_ROWS]
    x, known = table_of(fitted.features, learn), learn[fitted.settings.target].to_numpy(float)
    ends = np.cumsum([len(q) for q in queries])[:-1]
    answers, notes = dict[str, list[RowScores]](), list[str]()
    for name, method in deadline.units(methods(), "baselines of rows with gaps"):
        try:
            told = ask(method, x, known, blocks, np.concatenate(queries), fitted.settings.seed)
        except Exception as error:  # of code that is not ours; the run is not to be lost by it
            reason = next(iter(str(error).splitlines()), "it failed without a message.")
            notes.append(f"{name} was not compared: {reason[:200]}")
            continue
        each = zip(*(np.split(column, ends) for column in told))
        answers[name] = [
            row_scores(y[: len(mean)], MixturePredictive.gaussian(mean, variance))
            for mean, variance in each
        ]
    return answers, tuple(notes)


def own_scores(scored: ScoredPredictive) -> RowScores:
    """This run's predictions, as rivals are scored."""
    return RowScores(scored.mean, scored.log_density, crps=scored.scores.crps)


def row_of(scored: ScoredPredictive, theirs: Answers) -> list[float]:
    """RMSE, mean log-likelihood and CRPS: each of this run, then of `NAMES`; NaN of those that are
    not here."""
    answers = [own_scores(scored), *(theirs.get(name) for name in NAMES)]
    nan = float("nan")
    return [
        *(nan if p is None else metrics.rmse(scored.y, p.value) for p in answers),
        *(nan if p is None or p.log_density is None else p.log_density.mean() for p in answers),
        *(nan if p is None or p.crps is None else p.crps.mean() for p in answers),
    ]


def blocks_of(features: Features) -> Blocks:
    """Of each column of `table_of`, the number of its band; -1: no row lacks it."""
    number = {band: k for k, band in enumerate(features.optional)}
    return np.array([number.get(features.bands[k], -1) for k in features.owners])


def table_of(features: Features, table: pd.DataFrame) -> Float[ndarray, "n d"]:
    """What rivals see: bands and log errors as they are, NaN where missing."""
    table = table.copy()
    for band in features.bands:  # a rival knows no limits: fainter than one counts as just as faint
        if f"{band}_lim" in table and band in table:
            table[band] = table[band].fillna(table[f"{band}_lim"])
    measured = features.measured(table)
    return np.where(np.isfinite(measured), measured, np.nan)


def patterns_of(fitted: FittedGPz) -> int:
    """Ways in which bands are missing that there is time for."""
    pairs = sum(len(model.centres) ** 2 for model in fitted.members.models)
    return min(max(PAIRS // pairs, 1), PATTERNS)


def hide(
    generator: np.random.Generator, n: int, bands: int, count: int, patterns: int = PATTERNS
) -> Bool[ndarray, "n bands"]:
    """Which `count` bands each row lacks: one of so many random choices, row by row in turn."""
    chosen = np.zeros((patterns, bands), dtype=bool)
    for pattern in chosen:
        pattern[generator.permutation(bands)[:count]] = True
    return chosen[np.arange(n) % patterns]


def summary(
    scored: ScoredPredictive, rows: ndarray | slice = slice(None)
) -> tuple[float, float, float, float]:
    """Mean log-likelihood, CRPS and CDE loss of some rows, and the PIT's distance from uniform."""
    return (
        float(scored.log_density[rows].mean()),
        float(scored.scores.crps[rows].mean()),
        float(scored.scores.cde[rows].mean()),
        pit_ks(scored.pit[rows]),
    )
