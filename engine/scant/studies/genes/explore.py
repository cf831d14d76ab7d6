"""Queries of a fitted genes study."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from scant import metrics
from scant.errors import BadInput
from scant.studies.genes import models
from scant.studies.genes import preprocessing as rows
from scant.studies.genes.fitted import FittedReplicas
from scant.studies.query import names_in
from scant.tables.column_matching import listed

AT_ONCE = 12  # maximum outputs of a query
WARM_STEPS = 10  # of L-BFGS, after a replica is hidden
WARM_ROWS = 1500  # with more, the hyperparameters are kept
CURVE = ("mean", "std_f", "std_y")


def answer(fitted: FittedReplicas, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of the catalog entry of `question`.

    Raises:
        BadInput: The question, output or replica is unknown.
    """
    if question == "curves":
        return curves(fitted, query)
    if question == "hide":
        return hide(fitted, query)
    if question == "new":
        result = fitted.new(fitted.output(str(query.get("output", ""))))
        return {"grid": fitted.grid, **dict(zip(CURVE, result))}
    raise BadInput(f"There is no question {question!r}; there are 'curves', 'hide' and 'new'.")


def curves(fitted: FittedReplicas, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Curves of some outputs, with their data."""
    named = names_in(query.get("outputs", ()))
    if not 1 <= len(named) <= AT_ONCE:
        raise BadInput(f"Ask for 1 to {AT_ONCE} outputs at once; got {len(named)}.")
    outputs = [fitted.output(name) for name in named]
    points = rows.observed(fitted.observed, fitted.train, fitted.test, outputs)
    return {
        **fitted.curves(outputs),
        **{f"seen_{name}": values.astype(float) for name, values in points.items()},
    }


def hide(fitted: FittedReplicas, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """Curve of a replica with and without its data; the model is refitted warm without it."""
    d = fitted.output(str(query.get("output", "")))
    observed = fitted.observed
    replicas = observed.replicas[d]
    replica = str(query.get("replica", ""))
    if replica not in replicas:
        raise BadInput(
            f"There is no replica {replica!r} of {observed.outputs[d]}; it has {listed(replicas)}."
        )
    r = replicas.index(replica)
    fewer = fitted.data.without(d, r)
    if not bool((fewer.output == d).any()):
        raise BadInput(
            f"Nothing of {observed.outputs[d]!r} would be left to learn from without {replica!r}; "
            "choose a replica of an output that has others."
        )
    generator = torch.Generator().manual_seed(fitted.settings.seed)
    steps = WARM_STEPS if len(fewer.y) <= WARM_ROWS else 0
    model = models.without(fitted.model, fewer, fitted.settings, generator, steps)
    other, grid = replace(fitted, model=model), fitted.grid
    where = np.full(len(grid), d), np.full(len(grid), r)
    in_replica = (observed.output == d) & (observed.replica == r) & np.isfinite(observed.y)
    x, y = observed.x[in_replica], observed.y[in_replica]
    expected, _, spread = other.ask(np.full(len(x), d), np.full(len(x), r), x)
    error = metrics.nmse(y, expected) if len(y) > 1 and y.std() > 0 else np.nan
    return {
        "grid": grid,
        **{f"before_{k}": v for k, v in zip(CURVE, fitted.ask(*where, grid))},
        **{f"after_{k}": v for k, v in zip(CURVE, other.ask(*where, grid))},
        "x": x,
        "y": y,
        "nmse": np.array([error]),
        "inside": np.array([np.count_nonzero(metrics.within_95(y, expected, spread))]),
    }
