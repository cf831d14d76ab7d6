"""Which models a stack is made of, and their weights from rows that are held out once more."""

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
FOLD_SHARE = 0.15  # of an output's rows, where no whole replica is held out
LEAST_ROWS = 8  # that weights are learned from; of fewer all weigh the same
STEPS = 40  # of L-BFGS, after a fold is taken away: fewer leave what the models knew of it
LEAST_STEPS = 10
FEW_ROWS = 400  # of which so many steps are taken; of more, fewer


def members(s: GenesSettings, outputs: int, rows: int, level: bool = True) -> list[GenesSettings]:
    """The settings of each model to train, the quickest first; of a single model its restarts.

    Args:
        s: Of the run.
        outputs: How many there are.
        rows: To learn from.
        level: Whether a model without curves is among them; runs of before have none.
    """
    if s.model != "stack":
        return [s] * s.restarts
    many = outputs > 1
    wanted: list[tuple[str, dict[str, int], bool]] = [
        ("independent", {}, True),
        ("level", {}, level),
        ("hgp", {}, True),
        ("dhgp", {}, many),
        ("hlmc", {"n_latent_dims": 1}, many),
        ("hmogp-lv", {}, many),
        ("hlmc", {"n_latent_dims": 2}, outputs > 2 and rows <= models.MOST_ROWS / 2),
    ]
    return [_changed(s, model=model, **sizes) for model, sizes, fits in wanted if fits]


def called(s: GenesSettings) -> str:
    """A member's name."""
    name = {**MODELS, **OTHERS}[s.model]
    return f"{name} of {s.n_latent_dims}" if s.model == "hlmc" else name


def _changed(s: GenesSettings, **values: object) -> GenesSettings:
    return type(s)(**{**s.values(), **values})


def stacked(
    fitted: FittedReplicas, trained: list[models.Model], deadline: Deadline = NEVER
) -> Stack:
    """The models with their weights: from the rows that each fold takes away from training.

    A fold is held out as the test rows are: a replica of each output, or a share of its rows.

    Args:
        fitted: Whose rows these are.
        trained: On all of them; each is refitted warm to what a fold leaves.
        deadline: Of refitting, the first fold excepted.
    """
    names = [str(k) for k in range(len(trained))]
    told: list[list[MixturePredictive]] = [[] for _ in trained]
    truth = list[np.ndarray]()
    steps = max(LEAST_STEPS, min(STEPS, STEPS * FEW_ROWS // len(fitted.data.y)))
    every = folds(fitted.observed, fitted.train, fitted.test, fitted.settings.seed)
    for fold in deadline.units(every, "folds of the stack", minimum=1):
        inside = torch.as_tensor(fold[fitted.train]).to(fitted.data.y.device)
        rest, asked = fitted.data.at(~inside), fitted.data.at(inside)
        generator = torch.Generator().manual_seed(fitted.settings.seed)
        truth.append(asked.y.cpu().numpy())
        for model, parts in zip(trained, told):
            other = models.without(model, rest, fitted.settings, generator, steps)
            assert not isinstance(other, Stack), "members are single models"
            mean, variance, noise = (
                v.detach().cpu().numpy()
                for v in other.predict(asked.output, asked.replica, asked.x)
            )
            parts.append(MixturePredictive.gaussian(mean, variance + noise, noise))
    y, weights = np.concatenate(truth), np.full(len(trained), 1 / len(trained))
    if len(y) >= LEAST_ROWS:
        left_out = {name: MixturePredictive.concat(parts) for name, parts in zip(names, told)}
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
        mine = rng.permutation(np.flatnonzero(train & (observed.output == d)))
        replicas = rng.permutation(np.unique(observed.replica[mine]))
        for f, fold in enumerate(out):
            if whole and len(replicas) > 1:
                fold[mine[observed.replica[mine] == replicas[f % len(replicas)]]] = True
            elif not whole:
                size = int(FOLD_SHARE * len(mine))
                fold[mine[f * size : (f + 1) * size]] = True
    return [fold for fold in np.unique(out, axis=0) if fold.any()]  # of two replicas there are two


def _whole_replicas(observed: Replicas, test: Bool[np.ndarray, " n"]) -> bool:
    """Whether most held-out rows are of replicas that are held out as a whole."""
    pair = observed.output * (1 + observed.replica.max(initial=0)) + observed.replica
    missing = ~np.isin(pair, pair[~test])
    return bool((missing & test).sum() > 0.5 * test.sum())


def limits(model: models.Model, members: list[GenesSettings]) -> tuple[str, ...]:
    """The models that predict, with their weights, and which one has latent positions."""
    names = [called(s) for s in members]
    if not isinstance(model, Stack):
        return (sentence({names[0]: 1.0}),)
    weights = dict(zip(names, model.weights.tolist()))
    few = len(weights) > 1 and len(set(weights.values())) == 1
    by = f"equal shares, because fewer than {LEAST_ROWS} rows can be left out" if few else LEFT_OUT
    positions = (
        f"Latent positions are of {MODELS['hmogp-lv']}; correlations of outputs and shares of the "
        "levels are averages with the same weights."
    )
    return (sentence(weights, by), positions)
