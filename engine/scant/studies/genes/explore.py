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

AT_ONCE = 12  # outputs of one question
WARM_STEPS = 10  # of L-BFGS, after a replica is hidden
WARM_ROWS = 1500  # above which the hyperparameters stay where they are
CURVE = ("mean", "std_f", "std_y")


def answer(fitted: FittedReplicas, question: str, query: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, an output or replica that it has not.
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
    """A replica's curve with and without its data, the model refitted warm in between."""
    d = fitted.output(str(query.get("output", "")))
    observed = fitted.observed
    own = observed.replicas[d]
    name = str(query.get("replica", ""))
    if name not in own:
        raise BadInput(
            f"There is no replica {name!r} of {observed.outputs[d]}; it has {listed(own)}."
        )
    r = own.index(name)
    fewer = fitted.data.without(d, r)
    if not bool((fewer.output == d).any()):
        raise BadInput(
            f"Nothing of {observed.outputs[d]!r} would be left to learn from without {name!r}; "
            "choose a replica of an output that has others."
        )
    generator = torch.Generator().manual_seed(fitted.settings.seed)
    steps = WARM_STEPS if len(fewer.y) <= WARM_ROWS else 0
    model = models.without(fitted.model, fewer, fitted.settings, generator, steps)
    other, grid = replace(fitted, model=model), fitted.grid
    where = np.full(len(grid), d), np.full(len(grid), r)
    mine = (observed.output == d) & (observed.replica == r) & np.isfinite(observed.y)
    x, y = observed.x[mine], observed.y[mine]
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
