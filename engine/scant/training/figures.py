"""Figures of a run: common ones and those of `plots.py` of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from scant.errors import NotFound
from scant.events import Progress, Report
from scant.studies import entry

CURVE = "Objective"


def figures(
    study: str,
    report: Report,
    metadata: Mapping[str, Any],
    steps: Sequence[Progress],
) -> dict[str, Any]:
    """Return the figures of a run as HoloViews elements by title.

    Args:
        study: Name in `scant.studies.STUDIES`.
        report: Report of the run.
        metadata: Labels of the arrays (`events.Started.metadata`).
        steps: Training curve.
    """
    from scant.plotting.elements import Elements

    spec = entry(study)
    columns = [(p.step, p.restart, p.elbo) for p in steps]
    curve = np.array(columns, float).reshape(-1, 3).T
    units = {array.name: array.unit for array in spec.report}
    elements = Elements(report.arrays, units, spec.objective, metadata, curve)
    result = {CURVE: elements.elbo()} if len(steps) else {}
    module = f"scant.studies.{spec.name}.plots"
    if report.arrays and find_spec(module):
        result |= import_module(module).figures(elements)
    if elements.has("coverage"):
        result["Coverage of intervals"] = elements.coverage()
    if elements.has("reliability"):
        result["Reliability"] = elements.reliability()
    return {title: element.relabel(title) for title, element in result.items()}


def layout(
    study: str, report: Report, metadata: Mapping[str, Any], steps: Sequence[Progress]
) -> Any:
    """Return the figures of a run as a HoloViews layout for notebooks."""
    from scant.plotting.elements import side_by_side

    return side_by_side(figures(study, report, metadata, steps).values())


def plot(run: Any) -> Any:
    """Return the figures of a run as a HoloViews layout.

    Args:
        run: Finished run from `scant.fit`, or the id of a run in the store.

    Raises:
        NotFound: There is no such run, or it has no report.
    """
    if not isinstance(run, str):
        return run.plot()
    from scant.store import Store

    store = Store.open()
    record, report, trace = store.run(run), store.report(run), store.trace(run)
    if report is None:
        raise NotFound(f"Run {run} has no report; look at it once it has ended.")
    columns = (trace.step, trace.elbo, trace.seconds, trace.best, trace.score, trace.restart)
    steps = [Progress(*row) for row in zip(*(c.tolist() for c in columns))]
    return layout(record.study, report, record.metadata, steps)
