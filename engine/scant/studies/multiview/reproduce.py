"""The publication's experiments (Kandemir and Hamprecht 2015, 5.1-5.3): models on equal splits.

Each is run with the publication's models and settings ("as published", `published_methods`); SO2
and cell events with ours, too: lengthscales and variances of every kernel are learned, SGP is
variational, and SO2 is learned as ln(1 + y) (`own_methods`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_rel
from sklearn.metrics import average_precision_score, f1_score

from scant.errors import BadInput
from scant.metrics import nlpd, nmse
from scant.studies.multiview import published_methods
from scant.studies.multiview import table as views
from scant.studies.multiview.data import MultiviewData
from scant.studies.multiview.own_methods import (
    AVERAGED,
    CLASSIFIERS,
    EXACT,
    INDUCING,
    REGRESSIONS,
    Classify,
    Index,
    Rows,
    averaged,
    by_view,
)
from scant.studies.multiview.report import EVENTS, SO2
from scant.studies.multiview.simulate import cell_events
from scant.studies.multiview.simulate import so2 as so2_toy
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

MORE = 30  # inducing inputs, of which the closed bound is the better one
ROWS = 2000  # of each repeat; half are learned from
SO2_OURS, EVENTS_OURS, SURVIVAL = "SO2, ln(1 + y)", "cell events, ours", "survival, as published"
HALVES = "rows and halves of them"
EVENTS_SOURCE = "simulated, stand-in for the sequences of the publication"
SURVIVAL_SOURCE = "simulated, stand-in for the tissue of the publication"


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """NMSE of SO2 a day ahead and of survival times, and F1 of cell events from eight views.

    Args:
        quick: Two repeats and four pairs of sequences, not 20 and 56.
        data: A folder with `so2_beijing_standin/so2_24h_ahead.parquet`; None: simulated SO2. Both
            stand in for the publication's, as simulated cell events and patients do.
        fit: Not used here.
    """
    table, source = so2(data)
    observed = views.of(cell_events.candidates())
    tissue = cache(published_methods.tissue)  # made by the first run that needs it
    pairs = drawn_pairs(len(observed.groups), 4 if quick else None)
    repeats = 2 if quick else 20
    regressions: dict[str, Callable[..., published_methods.Scored]] = {
        SO2: published_scores,
        SO2_OURS: regression_scores,
        f"{SO2_OURS}, {MORE} inducing inputs": partial(regression_scores, inducing=MORE),
    }
    classifiers = {EVENTS: PUBLISHED_CLASSIFIERS, EVENTS_OURS: CLASSIFIERS}
    survival = Experiment(SURVIVAL, SURVIVAL_SOURCE, "patients that are learned from")
    # Expensive and cheap runs alternate, so that an interrupted table has some of each.
    for repeat in range(repeats):
        for name, score in regressions.items():
            experiment = Experiment(name, source, HALVES)
            yield Run(
                f"{name}, repeat {repeat}", partial(_scores, experiment, score, table, repeat)
            )
        yield Run(f"{SURVIVAL}, repeat {repeat}", partial(_survival, survival, tissue, repeat))
        if repeat < len(pairs):
            few = pairs[repeat::repeats]
            for name, methods in classifiers.items():
                experiment = Experiment(name, EVENTS_SOURCE, "pairs of sequences")
                do = partial(_events, experiment, observed, few, methods)
                yield Run(f"{name}, part {repeat}", do)


def compared(scores: Sequence[Score]) -> list[Score]:
    """For every method and metric, p of a paired t-test against DFGP over the same splits."""
    values: dict[tuple[Experiment, str, str], list[float]] = {}
    for one in scores:
        values.setdefault(one[:3], []).append(one.value)
    results = []
    for (experiment, method, metric), of in values.items():
        own = values[experiment, "DFGP", metric]
        if method != "DFGP" and len(of) > 1 and of != own:
            p = float(ttest_rel(of, own).pvalue)
            results.append(Score(experiment, method, f"p of {metric}", p))
    return results


def so2(folder: Path | None) -> tuple[pd.DataFrame, str]:
    """Inputs and `y`, and whose they are.

    Raises:
        BadInput: The folder has no such file.
    """
    if folder is None:
        return so2_toy.ahead(so2_toy.hourly()), "simulated, stand-in for the SO2 set of 2006"
    path = folder / "so2_beijing_standin" / "so2_24h_ahead.parquet"
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    table = pd.read_parquet(path).drop(columns="time").rename(columns={"so2_plus24h": "y"})
    return table, "Beijing, stand-in for the SO2 set of 2006"


def _scores(
    experiment: Experiment, score: Callable[..., published_methods.Scored], *args: object
) -> list[Score]:
    return [Score(experiment, *one) for one in score(*args)]


def _survival(
    experiment: Experiment, tissue: Callable[[], published_methods.Tissue], repeat: int
) -> list[Score]:
    return _scores(experiment, published_methods.survival_scores, *tissue(), repeat)


def _events(
    experiment: Experiment,
    observed: MultiviewData,
    pairs: list[tuple[int, int]],
    methods: Mapping[str, Classify],
) -> list[Score]:
    return [
        Score(experiment, *one) for pair in pairs for one in event_scores(observed, *pair, methods)
    ]


# --- SO2 ------------------------------------------------------------------------------------------


def _halves(table: pd.DataFrame, seed: int) -> tuple[torch.Tensor, Rows, torch.Tensor, Rows]:
    """Inputs and levels of a random half of random rows, and of the other half."""
    inputs = torch.tensor(table.drop(columns="y").to_numpy(dtype=np.float64))
    y = table["y"].to_numpy(dtype=np.float64)
    drawn = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    train, test = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
    return inputs[train], y[train], inputs[test], y[test]


def published_scores(table: pd.DataFrame, seed: int) -> published_methods.Scored:
    """Scores of the publication's models on the rows of `regression_scores`."""
    return published_methods.level_scores(*_halves(table, seed), seed)


def regression_scores(
    table: pd.DataFrame, seed: int, inducing: int = INDUCING
) -> published_methods.Scored:
    """Method, metric and value on a random half of random rows.

    Models learn ln(1 + y): the target is skewed. Predictions are the means of y and not of its
    logarithm, so that squared errors are fair; densities are those of the logarithm.

    Args:
        table: Column `y`, and inputs.
        seed: Of the draw and of the models.
        inducing: Inducing inputs of every sparse GP. With more than the published ten, models of
            two layers have the closed bound, and the Student-t process, which has none, is left
            out.
    """
    x, y, new, truth = _halves(table, seed)
    results: published_methods.Scored = []
    for method, fit in REGRESSIONS.items():
        if inducing > INDUCING and method == EXACT:
            continue
        log = torch.as_tensor(np.log1p(y))
        mean, variance = (v.numpy() for v in fit(x, log, new, inducing, seed))
        back = np.expm1(mean + variance / 2)
        value = nlpd(np.log1p(truth), mean, variance)
        results += [(method, "NMSE", nmse(truth, back)), (method, "NLPD of ln(1 + y)", value)]
    return results


# --- cell events ----------------------------------------------------------------------------------


def drawn_pairs(groups: int, count: int | None) -> list[tuple[int, int]]:
    """`count` ordered pairs of groups in random order; all for None."""
    pairs = list(permutations(range(groups), 2))
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))[:count]]


def event_scores(
    observed: MultiviewData, n_train: int, test: int, methods: Mapping[str, Classify]
) -> published_methods.Scored:
    """Method, metric and value: F1 and average precision of a group's events.

    Args:
        observed: Classes, groups and views.
        n_train: Number of the group that is learned from.
        test: Number of the group that is predicted.
        methods: Methods by name.
    """
    rows, others = (np.flatnonzero(observed.group == group) for group in (n_train, test))
    truth, result = observed.target[others], []
    for method, fit in methods.items():
        score, threshold = fit(observed, rows, others)
        f1 = float(f1_score(truth, score > threshold, zero_division=0.0))
        result += [
            (method, "F1", f1),
            (method, "average precision", float(average_precision_score(truth, score))),
        ]
    return result


def _as_published(
    method: str, observed: MultiviewData, rows: Index, others: Index
) -> tuple[Rows, float]:
    """A network with a neuron a view and the publication's settings."""
    training_rows, new = (
        [torch.as_tensor(x) for x in by_view(observed, which)] for which in (rows, others)
    )
    y = torch.as_tensor(observed.target[rows])
    return published_methods.event_probability(method, training_rows, y, new), 0.5


PUBLISHED_CLASSIFIERS: dict[str, Classify] = {
    "DFGP": partial(_as_published, "DFGP"),
    "DFGP-WP": partial(_as_published, "DFGP-WP"),
    AVERAGED: averaged,  # slack, weights of the classes and widths are not stated
}
