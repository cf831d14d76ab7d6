"""Preprocessing of genes tables: training rows, scales, outputs shown first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from scant.errors import BadInput
from scant.models.replicated.data import Data
from scant.studies.genes.settings import GenesSettings
from scant.studies.genes.table import SPLITS, Replicas, held_out, hidden_rows, kept_share
from scant.studies.split import EVERYTHING, divide

SHOWN = 8  # outputs in a snapshot
GRID = 64  # inputs of a curve
MOST_SAMPLES = 200  # names of replicas; with more, outputs have only their own


def split(
    s: GenesSettings, observed: Replicas, group: Int[np.ndarray, " n"] | None = None
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Masks of the training rows and of the held-out rows.

    Args:
        s: Settings.
        observed: The table.
        group: Group of each row (`scant.studies.split.groups`), if groups are held out whole.

    Raises:
        BadInput: A replica to hide is absent, or there are too few training rows.
    """
    has_value = np.isfinite(observed.y)
    test = held_out(observed, s.split, s.seed) | hidden_rows(observed, s.hidden, s.seed)
    if not test.any() and s.test_share:
        if group is None and min(map(len, observed.replicas)) > 2:
            test = held_out(observed, SPLITS[2], s.seed)
        else:
            n_test = round(s.test_share * len(observed))
            test[divide(len(observed), s.seed, test=n_test, group=group).test] = True
    train = has_value & ~test
    if s.refit == EVERYTHING:
        train = has_value
    elif s.keep < 1:
        train = kept_share(observed, train, s.keep, s.seed)
    if train.sum() < 4:
        raise BadInput(
            f"Too few rows are left to learn from: {int(train.sum())}, and at least 4 are needed. "
            "Add rows, hide fewer replicas, or keep a larger share."
        )
    return train, test & has_value


def parts(
    s: GenesSettings, observed: Replicas, test: Bool[np.ndarray, " n"]
) -> list[Int[np.ndarray, " _"]] | None:
    """Rows that further fits hold out: another replica of each output; none if the user chose.

    Args:
        s: Settings.
        observed: The table.
        test: Rows held out in this fit.

    Returns:
        None where rows are held out one by one.
    """
    if observed.test.any() or s.hidden or s.split != SPLITS[0]:
        return []
    if min(map(len, observed.replicas)) <= 2:
        return None
    order = np.random.default_rng([s.seed, 10]).permutation(len(observed.samples))
    result: list[list[int]] = [[] for _ in range(max(map(len, observed.replicas)) - 1)]
    for d in range(len(observed.outputs)):
        candidates = np.flatnonzero((observed.output == d) & ~test)
        fold = np.unique(order[observed.sample[candidates]], return_inverse=True)[1]
        for row, part in zip(candidates.tolist(), fold.tolist()):
            result[part].append(row)
    return [np.array(part) for part in result if part]


def names(observed: Replicas) -> list[list[str]]:
    """Replicas of each output in queries: its own, then those of other outputs.

    If an output was never measured on a sample, this replica is missing.
    """
    if len(observed.samples) > MOST_SAMPLES:
        return observed.replicas
    return [[*own, *(s for s in observed.samples if s not in own)] for own in observed.replicas]


def data_of(
    observed: Replicas,
    rows: Bool[np.ndarray, " n"],
    replicas: list[list[str]],
    device: torch.device,
) -> Data:
    """Rows in the models' form, in the table's units.

    Raises:
        BadInput: There are no rows.
    """
    output, replica, x, y = (
        torch.as_tensor(column[rows]).to(device)
        for column in (observed.output, observed.replica, observed.x, observed.y)
    )
    return Data.of(output, replica, x, y, replicas)


def shown(observed: Replicas, test: Bool[np.ndarray, " n"]) -> list[int]:
    """Outputs in a snapshot: those with held-out rows first."""
    order = [*np.unique(observed.output[test]).tolist()]
    order += [d for d in range(len(observed.outputs)) if d not in set(order)]
    return sorted(order[:SHOWN])


def metadata_of(
    s: GenesSettings,
    observations: Replicas,
    train: Bool[np.ndarray, " n"],
    test: Bool[np.ndarray, " n"],
) -> dict[str, Any]:
    """Labels of the arrays on a page (`events.Started`)."""
    chosen = shown(observations, test)
    return {
        "outputs": list(observations.outputs),
        "replicas": [list(names) for names in observations.replicas],
        "shown": [observations.outputs[d] for d in chosen],
        "split": s.split,
        **({"moderated": True} if s.model == "stack" else {}),
        "range": [float(observations.x.min()), float(observations.x.max())],
        "rows": {"training": int(train.sum()), "test": int(test.sum())},
        "observed": {
            name: values.tolist()
            for name, values in observed(observations, train, test, chosen).items()
        },
    }


def observed(
    observations: Replicas,
    train: Bool[np.ndarray, " n"],
    test: Bool[np.ndarray, " n"],
    outputs: list[int],
) -> dict[str, np.ndarray]:
    """Training and held-out points of some outputs; `output` is an index into these."""
    rows = np.flatnonzero((train | test) & np.isin(observations.output, outputs))
    index = {d: i for i, d in enumerate(outputs)}
    return {
        "x": observations.x[rows],
        "y": observations.y[rows],
        "output": np.array([index[d] for d in observations.output[rows].tolist()], dtype=np.int64),
        "replica": observations.replica[rows],
        "test": test[rows],
    }


def units(
    s: GenesSettings, observed: Replicas, train: Bool[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Mean and deviation of each output's values: the units of the scores.

    The publication standardizes each output over all its values before it splits them. Scores here
    are of values standardized alike, so that scales of outputs do not matter. For a stack they are
    standardized by the training rows, if there are any: with few rows, the mean of all values
    reveals much of the held-out ones to another model.
    """
    results = []
    for d in range(len(observed.outputs)):
        in_output = (observed.output == d) & np.isfinite(observed.y)
        y = observed.y[
            in_output & train if s.model == "stack" and (in_output & train).sum() > 1 else in_output
        ]
        spread = float(y.std()) if len(y) else 0.0
        results.append((float(y.mean()) if len(y) else 0.0, spread if spread > 0 else 1.0))
    centre, width = np.array(results).T
    return centre, width
