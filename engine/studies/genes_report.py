"""The figures a genes run ends with: ours, and the other models on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from engine import metrics
from engine.catalog.genes import MODELS
from engine.events import Metric, Report
from engine.studies import genes_models as models
from engine.studies import genes_rows as rows

if TYPE_CHECKING:
    from engine.studies.genes import Study

FIT_STEPS = 80
EVIDENCE = "bound or log evidence (nats a row)"


def write_report(study: Study, score: float) -> Report:
    """Metrics of the held-out rows and curves of the first shown output, by every model.

    Args:
        score: What training came to, in nats a row.
    """
    snapshot = study.snapshot()
    first = [study.output(name) for name in study.words["shown"][:1]]
    most = snapshot["mean"].shape[1]
    found = on_test_rows(study)
    told = [*scores(study, found, "this run", "run"), Metric("this run", EVIDENCE, score)]
    notes = []
    if not study.test.any():
        notes.append(
            "No row is held out, so there is nothing to score; hide a replica, choose a split, or "
            "mark rows with 1 in a column 'test'."
        )
    curves = []
    for name, label in MODELS.items() if study.settings.baselines else ():
        if name == study.settings.model:
            continue
        if name in models.EXACT and models.size(name, study.data) > models.MOST_ROWS:
            notes.append(
                f"{label} is left out of the comparison: it is exact, and {len(study.data.y):,} "
                "rows are too many for it."
            )
            continue
        model, bound = models.fitted(name, study.data, study.settings, FIT_STEPS)
        told += scores(study, on_test_rows(study, model), label, "baseline")
        told.append(Metric(label, EVIDENCE, bound, source="baseline"))
        own = study.curves(first, model)
        curves.append(np.stack([_padded(own[which][0], most) for which in ("mean", "std_y")]))
    compared = np.stack(curves, 1) if curves else np.empty((2, 0, most, rows.GRID))
    return Report(
        tuple(told),
        {
            **snapshot,
            **arrays_of(study, found),
            "compare_mean": compared[0],
            "compare_std": compared[1],
        },
        tuple(notes),
    )


def _padded(values: Float[np.ndarray, "r g"], count: int) -> Float[np.ndarray, "c g"]:
    return np.pad(values, ((0, count - len(values)), (0, 0)), constant_values=np.nan)


def on_test_rows(study: Study, model: models.Model | None = None) -> Float[np.ndarray, "3 n"]:
    """What a model, by default the study's, says of the held-out rows (see `Study.ask`)."""
    seen, test = study.seen, study.test
    return study.ask(seen.output[test], seen.replica[test], seen.x[test], model)


def scores(study: Study, found: Float[np.ndarray, "3 n"], method: str, source: str) -> list[Metric]:
    """NMSE, NLPD and coverage, of values in units of their output's mean and deviation."""
    seen, test = study.seen, study.test
    if test.sum() < 2:
        return []
    centre, width = (values[seen.output[test]] for values in rows.units(seen))
    y, mean = (seen.y[test] - centre) / width, (found[0] - centre) / width
    variance = (found[2] / width) ** 2
    levels = metrics.LEVELS if source == "run" else metrics.LEVELS[-1:]
    covered = metrics.coverage(y, mean, variance, levels)
    values = {
        "NMSE": metrics.nmse(y, mean),
        "NLPD": metrics.nlpd(y, mean, variance),
        **{f"coverage of the {100 * n:.0f}% interval": 100 * share for n, share in covered.T},
    }
    return [Metric(method, name, float(value), source=source) for name, value in values.items()]


def arrays_of(study: Study, found: Float[np.ndarray, "3 n"]) -> dict[str, np.ndarray]:
    """The held-out rows, in the table's units."""
    seen, test = study.seen, study.test
    y = seen.y[test]
    covered = metrics.coverage(y, found[0], found[2] ** 2) if len(y) else np.empty((2, 0))
    return {
        "test_y": y,
        "test_mean": found[0],
        "test_std_f": found[1],
        "test_std_y": found[2],
        "test_output": seen.output[test],
        "test_replica": seen.replica[test],
        "test_std_noise": np.sqrt(np.maximum(found[2] ** 2 - found[1] ** 2, 0)),
        "pit": metrics.pit(y, found[0], found[2] ** 2),
        "coverage": covered,
    }
