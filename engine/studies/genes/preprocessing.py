"""Preprocessing of genes tables: training rows, scales, the outputs shown first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scant.errors import BadInput
from scant.models.replicated.data import Data
from scant.studies.genes.entry import GenesSettings
from scant.studies.genes.table import Replicas, held_out, hidden_rows, kept_share

SHOWN = 8  # outputs that a snapshot shows
GRID = 64  # inputs of a curve
MOST_SAMPLES = 200  # names of replicas up to which every output may be asked for all


def split(
    s: GenesSettings, seen: Replicas
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Which rows are learnt from, and which are held out to be predicted.

    Raises:
        BadInput: A replica to hide that is not there, or too few rows to learn from.
    """
    known = np.isfinite(seen.y)
    test = held_out(seen, s.split, s.seed) | hidden_rows(seen, s.hidden, s.seed)
    learnt = known & ~test
    if s.keep < 1:
        learnt = kept_share(seen, learnt, s.keep, s.seed)
    if learnt.sum() < 4:
        raise BadInput(
            f"Only {int(learnt.sum())} rows are left to learn from; at least 4 are needed. Bring "
            "more rows, hide fewer replicas, or keep a larger share."
        )
    return learnt, test & known


def names(seen: Replicas) -> list[list[str]]:
    """The replicas that each output may be asked for: its own, then those of other outputs.

    If an output was never measured on a sample, this replica is missing.
    """
    if len(seen.samples) > MOST_SAMPLES:
        return seen.replicas
    return [[*own, *(s for s in seen.samples if s not in own)] for own in seen.replicas]


def data_of(
    seen: Replicas,
    rows: Bool[np.ndarray, " n"],
    replicas: list[list[str]],
    device: torch.device,
) -> Data:
    """Rows as the models take them, in the table's units.

    Raises:
        BadInput: There are none.
    """
    output, replica, x, y = (
        torch.as_tensor(column[rows]).to(device)
        for column in (seen.output, seen.replica, seen.x, seen.y)
    )
    return Data.of(output, replica, x, y, replicas)


def shown(seen: Replicas, test: Bool[np.ndarray, " n"]) -> list[int]:
    """Outputs that a snapshot shows: those with rows held out before others."""
    wanted = [*np.unique(seen.output[test]).tolist()]
    wanted += [d for d in range(len(seen.outputs)) if d not in set(wanted)]
    return sorted(wanted[:SHOWN])


def metadata_of(
    s: GenesSettings,
    seen: Replicas,
    learnt: Bool[np.ndarray, " n"],
    test: Bool[np.ndarray, " n"],
) -> dict[str, Any]:
    """What labels the arrays on a page (`events.Started`)."""
    chosen = shown(seen, test)
    return {
        "outputs": list(seen.outputs),
        "replicas": [list(names) for names in seen.replicas],
        "shown": [seen.outputs[d] for d in chosen],
        "split": s.split,
        "range": [float(seen.x.min()), float(seen.x.max())],
        "rows": {"training": int(learnt.sum()), "test": int(test.sum())},
        "observed": {
            name: values.tolist() for name, values in observed(seen, learnt, test, chosen).items()
        },
    }


def observed(
    seen: Replicas,
    learnt: Bool[np.ndarray, " n"],
    test: Bool[np.ndarray, " n"],
    outputs: list[int],
) -> dict[str, np.ndarray]:
    """The points of some outputs, `output` counting within these; rows left out are left out."""
    rows = np.flatnonzero((learnt | test) & np.isin(seen.output, outputs))
    place = {d: i for i, d in enumerate(outputs)}
    return {
        "x": seen.x[rows],
        "y": seen.y[rows],
        "output": np.array([place[d] for d in seen.output[rows].tolist()], dtype=np.int64),
        "replica": seen.replica[rows],
        "test": test[rows],
    }


def units(seen: Replicas) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Mean and deviation of each output's known values: the units that scores are told in.

    The publication standardizes each output over all its values before it splits them; so that
    outputs count alike, whatever their scales, scores here are of values so standardized.
    """
    found = []
    for d in range(len(seen.outputs)):
        y = seen.y[(seen.output == d) & np.isfinite(seen.y)]
        spread = float(y.std()) if len(y) else 0.0
        found.append((float(y.mean()) if len(y) else 0.0, spread if spread > 0 else 1.0))
    centre, width = np.array(found).T
    return centre, width
