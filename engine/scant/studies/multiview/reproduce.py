"""The publication's experiments (Kandemir and Hamprecht 2015, 5.1-5.3): models on equal splits.

All run with the publication's models and settings ("as published", `published_methods`). SO2 and
cell events also run with our models (`own_methods`): lengthscales and variances of all kernels are
learned, SGP is variational, and SO2 is learned as ln(1 + y).
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

MORE = 30  # a number of inducing inputs for which the closed bound is the better one
ROWS = 2000  # rows of each repeat; half are for training
SO2_OURS, EVENTS_OURS, SURVIVAL = "SO2, ln(1 + y)", "cell events, ours", "survival, as published"
HALVES = "rows and halves of them"
EVENTS_SOURCE = "simulated, stand-in for the sequences of the publication"
SURVIVAL_SOURCE = "simulated, stand-in for the tissue of the publication"


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """NMSE of SO2 a day ahead and of survival times, and F1 of cell events from eight views.

    Args:
        quick: True for two repeats and four pairs of sequences instead of 20 and 56.
        data: Folder with `so2_beijing_standin/so2_24h_ahead.parquet`; None: simulated SO2. Both
            replace the publication's data, as simulated cell events and patients do.
        fit: Not used.
    """
    table, source = so2(data)
    observed = views.of(cell_events.candidates())
    tissue = cache(published_methods.tissue)  # computed by the first run that needs it
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
            subset = pairs[repeat::repeats]
            for name, methods in classifiers.items():
                experiment = Experiment(name, EVENTS_SOURCE, "pairs of sequences")
                job = partial(_events, experiment, observed, subset, methods)
                yield Run(f"{name}, part {repeat}", job)


def compared(scores: Sequence[Score]) -> list[Score]:
    """p of a paired t-test against DFGP over the same splits, for each method and metric."""
    values: dict[tuple[Experiment, str, str], list[float]] = {}
    for score in scores:
        values.setdefault(score[:3], []).append(score.value)
    results = []
    for (experiment, method, metric), method_values in values.items():
        dfgp_values = values[experiment, "DFGP", metric]
        if method != "DFGP" and len(method_values) > 1 and method_values != dfgp_values:
            p = float(ttest_rel(method_values, dfgp_values).pvalue)
            results.append(Score(experiment, method, f"p of {metric}", p))
    return results


def so2(folder: Path | None) -> tuple[pd.DataFrame, str]:
    """Inputs and `y`, and the name of the source.

    Raises:
        BadInput: The file is missing.
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
    selected = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    train, test = selected[: len(selected) // 2], selected[len(selected) // 2 :]
    return inputs[train], y[train], inputs[test], y[test]


def published_scores(table: pd.DataFrame, seed: int) -> published_methods.Scored:
    """Scores of the publication's models on the rows of `regression_scores`."""
    return published_methods.level_scores(*_halves(table, seed), seed)


def regression_scores(
    table: pd.DataFrame, seed: int, inducing: int = INDUCING
) -> published_methods.Scored:
    """Method, metric and value on a random half of random rows.

    Models learn ln(1 + y), since the target is skewed. Predictions are means of y and not of its
    logarithm, so that squared errors are fair; densities are of the logarithm.

    Args:
        table: Column `y`, and inputs.
        seed: Seed of the rows and of the models.
        inducing: Inducing inputs of each sparse GP. With more than the published ten, models of
            two layers have the closed bound, and the Student-t process, which has no inducing
            inputs, is left out.
    """
    x, y, new, truth = _halves(table, seed)
    results: published_methods.Scored = []
    for method, fit in REGRESSIONS.items():
        if inducing > INDUCING and method == EXACT:
            continue
        log = torch.as_tensor(np.log1p(y))
        mean, variance = (v.numpy() for v in fit(x, log, new, inducing, seed))
        predicted = np.expm1(mean + variance / 2)
        value = nlpd(np.log1p(truth), mean, variance)
        results += [(method, "NMSE", nmse(truth, predicted)), (method, "NLPD of ln(1 + y)", value)]
    return results


# --- cell events ----------------------------------------------------------------------------------


def drawn_pairs(groups: int, count: int | None) -> list[tuple[int, int]]:
    """Return `count` ordered pairs of groups in random order; None: all."""
    pairs = list(permutations(range(groups), 2))
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))[:count]]


def event_scores(
    observed: MultiviewData, n_train: int, test: int, methods: Mapping[str, Classify]
) -> published_methods.Scored:
    """Method, metric and value: F1 and average precision of a group's events.

    Args:
        observed: Classes, groups and views.
        n_train: Index of the training group.
        test: Index of the test group.
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
    """A network with a neuron per view and the publication's settings."""
    training_rows, new = (
        [torch.as_tensor(x) for x in by_view(observed, selected)] for selected in (rows, others)
    )
    y = torch.as_tensor(observed.target[rows])
    return published_methods.event_probability(method, training_rows, y, new), 0.5


PUBLISHED_CLASSIFIERS: dict[str, Classify] = {
    "DFGP": partial(_as_published, "DFGP"),
    "DFGP-WP": partial(_as_published, "DFGP-WP"),
    AVERAGED: averaged,  # slack, weights of the classes and widths are not stated
}
