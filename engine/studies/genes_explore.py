"""Answers to what a person asks of a fitted genes study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from engine import metrics
from engine.datasets.naming import listed
from engine.errors import BadInput
from engine.studies import genes_models as models
from engine.studies import genes_rows as rows

if TYPE_CHECKING:
    from engine.studies.genes import Study

AT_ONCE = 12  # outputs of one question
WARM_STEPS = 10  # of L-BFGS, after a replica is hidden
WARM_ROWS = 1500  # above which the hyperparameters stay where they are
BAND = 1.96  # deviations of a 95% band
CURVE = ("mean", "std_f", "std_y")


def answer(study: Study, question: str, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that the catalog promises for `question`.

    Raises:
        BadInput: A question that this study does not know, an output or replica that it has not.
    """
    if question == "curves":
        return curves(study, asked)
    if question == "hide":
        return hide(study, asked)
    if question == "new":
        found = study.new(study.output(str(asked.get("output", ""))))
        return {"grid": study.grid, **dict(zip(CURVE, found))}
    raise BadInput(f"Nothing is known of {question!r}; ask 'curves', 'hide' or 'new'.")


def curves(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """Curves of some outputs, with their data."""
    named = asked.get("outputs", ())
    named = [w.strip() for w in named.split(",")] if isinstance(named, str) else list(named)
    if not 1 <= len(named) <= AT_ONCE:
        raise BadInput(f"Ask for 1 to {AT_ONCE} outputs at once; got {len(named)}.")
    outputs = [study.output(str(name)) for name in named]
    points = rows.observed(study.seen, study.learnt, study.test, outputs)
    return {
        **study.curves(outputs),
        **{f"seen_{name}": values.astype(float) for name, values in points.items()},
    }


def hide(study: Study, asked: dict[str, Any]) -> dict[str, np.ndarray]:
    """A replica's curve with and without its data, the model refitted warm in between."""
    d = study.output(str(asked.get("output", "")))
    own = study.seen.replicas[d]
    name = str(asked.get("replica", ""))
    if name not in own:
        raise BadInput(
            f"There is no replica {name!r} of {study.seen.outputs[d]}; it has {listed(own)}."
        )
    r = own.index(name)
    fewer = study.data.without(d, r)
    if not bool((fewer.output == d).any()):
        raise BadInput(
            f"Nothing of {study.seen.outputs[d]!r} would be left to learn from without {name!r}; "
            "choose a replica of an output that has others."
        )
    generator = torch.Generator().manual_seed(study.settings.seed)
    steps = WARM_STEPS if len(fewer.y) <= WARM_ROWS else 0
    model = models.without(study.model, fewer, study.settings, generator, steps)
    grid = study.grid
    where = np.full(len(grid), d), np.full(len(grid), r)
    seen = study.seen
    mine = (seen.output == d) & (seen.replica == r) & np.isfinite(seen.y)
    x, y = seen.x[mine], seen.y[mine]
    expected, _, spread = study.ask(np.full(len(x), d), np.full(len(x), r), x, model)
    error = metrics.nmse(y, expected) if len(y) > 1 and y.std() > 0 else np.nan
    return {
        "grid": grid,
        **{f"before_{k}": v for k, v in zip(CURVE, study.ask(*where, grid))},
        **{f"after_{k}": v for k, v in zip(CURVE, study.ask(*where, grid, model))},
        "x": x,
        "y": y,
        "nmse": np.array([error]),
        "inside": np.array([np.count_nonzero(np.abs(y - expected) <= BAND * spread)]),
    }
