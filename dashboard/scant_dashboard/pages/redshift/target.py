"""The learned column of a redshift run; in a visitor's table it may be any number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scant.events import Report
from scant.studies import entry
from scant_dashboard.plots.base import target_name

NAMES = next(column.aliases for column in entry("redshift").table.columns if column.name == "z")
REDSHIFTS = {"z", *(name.replace("_", "") for name in NAMES)}
OUTLIER = 0.15  # of 1 + z; a larger error is catastrophic (Almosallam 2017, section 6.2)
RELATIVE = ("F_", "bias", "median bias", "sigma_", "outlier")  # beginnings of names of scores


def is_redshift(metadata: Mapping[str, Any]) -> bool:
    """Whether a run learns redshifts; only for them are errors relative to 1 + z a convention."""
    name = target_name(metadata)
    return not name or re.sub(r"[\W_]+", "", name.lower()) in REDSHIFTS


def is_relative(score: str) -> bool:
    """Whether a score refers to errors relative to 1 + z."""
    return score.startswith(RELATIVE)


def applicable(report: Report, metadata: Mapping[str, Any]) -> Report:
    """Return a report without the scores that have no meaning for the target."""
    if is_redshift(metadata):
        return report
    return replace(report, metrics=tuple(m for m in report.metrics if not is_relative(m.name)))
