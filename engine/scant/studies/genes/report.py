"""Report of a genes run: its scores, and those of other models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from scant.deadline import NEVER, Deadline
from scant.evaluate.scores import COVERAGE, WIDEST, coverage, metrics_of
from scant.events import Metric, Report
from scant.predictive.scored import Scored
from scant.studies.genes import models
from scant.studies.genes import preprocessing as rows
from scant.studies.genes.fitted import FittedReplicas, columns
from scant.studies.genes.problem import answer_of, problem_of
from scant.studies.genes.settings import MODELS
from scant.studies.genes.table import Replicas
from scant.tables.column_matching import listed

FIT_STEPS = 80
FEW = 2  # rows of an output that may all be training rows
EVIDENCE = "bound or log evidence (nats a row)"


def write_report(
    fitted: FittedReplicas,
    score: float,
    trained: Mapping[str, tuple[models.Model, float]],
    deadline: Deadline = NEVER,
) -> Report:
    """Metrics of the held-out rows and curves of the first shown output, by every model.

    Args:
        score: Final objective of training, in nats a row.
        trained: Other models that are trained already, with their objectives.
        deadline: Deadline of the other models.
    """
    snapshot, first = fitted.snapshot(), fitted.shown[:1]
    observed, test = fitted.observed, fitted.test
    n_replicas = snapshot["mean"].shape[1]
    result, problem = fitted.on_test_rows(), problem_of(fitted)
    scored = problem.scored(answer_of(fitted, result))
    metrics = [
        *metrics_of(problem, scored, "this run", (*problem.scores, *COVERAGE), "run"),
        Metric("this run", EVIDENCE, score),
    ]
    notes = []
    if not test.any():
        notes.append(
            "No row is held out, so there is nothing to score; hide a replica, choose a split, or "
            "mark rows with 1 in a column 'test'."
        )
    notes += unscored(observed, test)
    curves = []
    others = [item for item in MODELS.items() if item[0] != fitted.settings.model]
    others = others if fitted.settings.baselines else []
    phase = "comparing with other models"
    for name, label in deadline.units(others, "other models", label=phase):
        if name in trained:
            model, bound = trained[name]
        elif name in models.EXACT and models.size(name, fitted.data) > models.MOST_ROWS:
            notes.append(
                f"{label} is left out of the comparison: it is exact, and {len(fitted.data.y):,} "
                "rows are too many for it."
            )
            continue
        else:
            model, bound = models.fitted(name, fitted.data, fitted.settings, FIT_STEPS)
        other = replace(fitted, model=model)
        other_scored = problem.scored(answer_of(other, other.on_test_rows()))
        metrics += metrics_of(problem, other_scored, label, (*problem.scores, WIDEST))
        metrics.append(Metric(label, EVIDENCE, bound, source="baseline"))
        moments = other.curves(first)
        curves.append(
            np.stack([_padded(moments[which][0], n_replicas) for which in ("mean", "std_y")])
        )
    compared = np.stack(curves, 1) if curves else np.empty((2, 0, n_replicas, rows.GRID))
    return Report(
        tuple(metrics),
        {
            **snapshot,
            **arrays_of(fitted, columns(result), scored),
            "compare_mean": compared[0],
            "compare_std": compared[1],
        },
        tuple(notes),
    )


def _padded(values: Float[np.ndarray, "r g"], count: int) -> Float[np.ndarray, "c g"]:
    return np.pad(values, ((0, count - len(values)), (0, 0)), constant_values=np.nan)


def unscored(observed: Replicas, test: Bool[np.ndarray, " n"]) -> list[str]:
    """Sentence on outputs with too few rows to hold one out; none if no row is held out."""
    has_value = np.isfinite(observed.y)
    names = [
        name
        for d, name in enumerate(observed.outputs)
        if has_value[observed.output == d].sum() <= FEW and not test[observed.output == d].any()
    ]
    if not names or not test.any():
        return []
    return [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} not scored: outputs with {FEW} rows "
        "or fewer have no held-out rows."
    ]


def arrays_of(
    fitted: FittedReplicas, result: Float[np.ndarray, "3 t"], scored: Scored
) -> dict[str, np.ndarray]:
    """Held-out rows, in the table's units, and the units of the scores."""
    observed, test = fitted.observed, fitted.test
    return {
        "test_y": observed.y[test],
        "test_mean": result[0],
        "test_std_f": result[1],
        "test_std_y": result[2],
        "test_output": observed.output[test],
        "test_unit": np.stack(fitted.units)[:, observed.output[test]],
        "test_replica": observed.replica[test],
        "test_std_noise": np.sqrt(np.maximum(result[2] ** 2 - result[1] ** 2, 0)),
        "pit": scored.pit,
        "coverage": coverage(scored) if len(scored) else np.empty((2, 0)),
    }
