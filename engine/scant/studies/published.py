"""What publications print: the settings of their experiments, and the scores of their tables.

A study's preset "as published" is built from its `published.SETTINGS`, which a test compares with
the study's settings: none may be missing. Scores are in `data/published/scores.csv`, the only place
where they are written down: reports, tables of `scant reproduce` and pages read them from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple

import pandas as pd

from scant.package_data import package_file

KEYS = ["experiment", "method", "metric"]


class Stated(NamedTuple):
    """Value of a setting in a publication.

    Attributes:
        value: Value that the preset "as published" gives to the setting.
        where: Section, table or equation that states it; "authors' program: …" where only their
            code does; or "not stated: …" with the reason for the value.
    """

    value: Any
    where: str


class Printed(NamedTuple):
    """Score that a publication prints.

    Attributes:
        experiment: Name of the experiment in our results.
        method: Name of the method in our results.
        metric: Name of the metric.
        value: Value in the publication.
        spread: Deviation that is printed with it; None without one.
        where: Table, figure or section.
    """

    experiment: str
    method: str
    metric: str
    value: float
    spread: float | None
    where: str


def values(settings: Mapping[str, Stated]) -> dict[str, Any]:
    """Return the values of a preset by name of the setting."""
    return {name: stated.value for name, stated in settings.items()}


def settings(study: str) -> Mapping[str, Stated]:
    """Return the settings of a study's preset "as published", with the section of each."""
    stated: Mapping[str, Stated] = import_module(f"scant.studies.{study}.published").SETTINGS
    return stated


@cache
def scores() -> pd.DataFrame:
    """Return all known scores that are not ours.

    Returns:
        Table with the columns `study`, `experiment`, `method` and `metric`, as in our results;
        `value` and `spread`; `where` for a score that a publication prints; `by` for one that we
        measured with the authors' program, with its version, settings and date.
    """
    file = package_file("published", "scores.csv")
    return pd.read_csv(StringIO(file.read_text(encoding="utf-8")))


def printed(study: str, experiment: str) -> list[Printed]:
    """Return the scores that the publication of a study prints for an experiment."""
    table = scores()
    own = table[
        (table["study"] == study) & (table["experiment"] == experiment) & table["by"].isna()
    ]
    return [
        Printed(
            experiment,
            str(row["method"]),
            str(row["metric"]),
            float(row["value"]),
            None if pd.isna(row["spread"]) else float(row["spread"]),
            str(row["where"]),
        )
        for row in own.to_dict("records")
    ]
