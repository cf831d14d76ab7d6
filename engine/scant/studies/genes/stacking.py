"""Models of a stack, and their weights from rows that are held out in further folds."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool

from scant.deadline import NEVER, Deadline
from scant.ensemble import LEFT_OUT, Ensemble, sentence
from scant.models.replicated.stack import Stack
from scant.predictive import MixturePredictive
from scant.studies.genes import models
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.genes.settings import MODELS, OTHERS, GenesSettings
from scant.studies.genes.table import Replicas

FOLDS = 4
FOLD_SHARE = 0.15  # of an output's rows, if no whole replica is held out
LEAST_ROWS = 8  # for learned weights; with fewer, weights are equal
STEPS = 40  # of L-BFGS without a fold; with fewer, the models still fit it
LEAST_STEPS = 10
FEW_ROWS = 400  # up to which `STEPS` steps are taken; with more rows, fewer


def members(s: GenesSettings, outputs: int, rows: int, level: bool = True) -> list[GenesSettings]:
    """Settings of each model to train, the quickest first; for a single model its restarts.

    Args:
        s: Settings of the run.
        outputs: Number of outputs.
        rows: Number of training rows.
        level: Whether to include a model without curves; older runs have none.
    """
    if s.model != "stack":
        return [s] * s.restarts
    several = outputs > 1
    candidates: list[tuple[str, dict[str, int], bool]] = [
        ("independent", {}, True),
        ("level", {}, level),
        ("hgp", {}, True),
        ("dhgp", {}, several),
        ("hlmc", {"n_latent_dims": 1}, several),
        ("hmogp-lv", {}, several),
        ("hlmc", {"n_latent_dims": 2}, outputs > 2 and rows <= models.MOST_ROWS / 2),
    ]
    return [_changed(s, model=model, **sizes) for model, sizes, included in candidates if included]


def called(s: GenesSettings) -> str:
    """Name of a member."""
    name = {**MODELS, **OTHERS}[s.model]
    return f"{name} of {s.n_latent_dims}" if s.model == "hlmc" else name


def _changed(s: GenesSettings, **values: object) -> GenesSettings:
    return type(s)(**{**s.values(), **values})


def stacked(
    fitted: FittedReplicas, trained: list[models.Model], deadline: Deadline = NEVER
) -> Stack:
    """Stack the models, with weights from the rows that each fold removes from training.

    Folds are held out like the test rows: a replica of each output, or a share of its rows.

    Args:
        fitted: Model with the rows.
        trained: Models trained on all of them; each is refitted warm without each fold.
        deadline: Deadline of refitting, except for the first fold.
    """
    names = [str(k) for k in range(len(trained))]
    predictions: list[list[MixturePredictive]] = [[] for _ in trained]
    truth = list[np.ndarray]()
    steps = max(LEAST_STEPS, min(STEPS, STEPS * FEW_ROWS // len(fitted.data.y)))
    all_folds = folds(fitted.observed, fitted.train, fitted.test, fitted.settings.seed)
    for fold in deadline.units(all_folds, "folds of the stack", minimum=1):
        in_fold = torch.as_tensor(fold[fitted.train]).to(fitted.data.y.device)
        rest, query = fitted.data.at(~in_fold), fitted.data.at(in_fold)
        generator = torch.Generator().manual_seed(fitted.settings.seed)
        truth.append(query.y.cpu().numpy())
        for model, parts in zip(trained, predictions):
            other = models.without(model, rest, fitted.settings, generator, steps)
            assert not isinstance(other, Stack), "members are single models"
            mean, variance, noise = (
                v.detach().cpu().numpy()
                for v in other.predict(query.output, query.replica, query.x)
            )
            parts.append(MixturePredictive.gaussian(mean, variance + noise, noise))
    y, weights = np.concatenate(truth), np.full(len(trained), 1 / len(trained))
    if len(y) >= LEAST_ROWS:
        left_out = {
            name: MixturePredictive.concat(parts) for name, parts in zip(names, predictions)
        }
        weights = np.array(list(Ensemble.fit(left_out, y).weights.values()))
    return Stack(trained, torch.as_tensor(weights).to(fitted.data.y.device))


def folds(
    observed: Replicas, train: Bool[np.ndarray, " n"], test: Bool[np.ndarray, " n"], seed: int
) -> list[Bool[np.ndarray, " n"]]:
    """Rows to hold out of training, fold by fold; each leaves every output some of its rows."""
    out = [np.zeros(len(observed), dtype=bool) for _ in range(FOLDS)]
    rng = np.random.default_rng([seed, 9])
    whole = _whole_replicas(observed, test)
    for d in range(len(observed.outputs)):
        candidates = rng.permutation(np.flatnonzero(train & (observed.output == d)))
        replicas = rng.permutation(np.unique(observed.replica[candidates]))
        for f, fold in enumerate(out):
            if whole and len(replicas) > 1:
                fold[candidates[observed.replica[candidates] == replicas[f % len(replicas)]]] = True
            elif not whole:
                size = int(FOLD_SHARE * len(candidates))
                fold[candidates[f * size : (f + 1) * size]] = True
    return [fold for fold in np.unique(out, axis=0) if fold.any()]  # two replicas give two folds


def _whole_replicas(observed: Replicas, test: Bool[np.ndarray, " n"]) -> bool:
    """Return True if most held-out rows are of wholly held-out replicas."""
    pair = observed.output * (1 + observed.replica.max(initial=0)) + observed.replica
    missing = ~np.isin(pair, pair[~test])
    return bool((missing & test).sum() > 0.5 * test.sum())


def limits(model: models.Model, members: list[GenesSettings]) -> tuple[str, ...]:
    """Sentences on the models with their weights, and on latent positions."""
    names = [called(s) for s in members]
    if not isinstance(model, Stack):
        return (sentence({names[0]: 1.0}),)
    weights = dict(zip(names, model.weights.tolist()))
    equal = len(weights) > 1 and len(set(weights.values())) == 1
    by = (
        f"equal shares, because fewer than {LEAST_ROWS} rows can be left out" if equal else LEFT_OUT
    )
    positions = (
        f"Latent positions are of {MODELS['hmogp-lv']}; correlations of outputs and shares of the "
        "levels are averages with the same weights."
    )
    return (sentence(weights, by), positions)
