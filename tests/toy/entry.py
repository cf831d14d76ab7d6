"""The toy's catalog entry."""

from __future__ import annotations

import numpy as np
import pandas as pd
import param

from scant.studies.base import ArraySpec, Entry, Settings, Source
from scant.tables.schema import Column, TableSchema

made = 0


class ToySettings(Settings):
    """What the tests turn."""

    study = "toy"

    max_steps = param.Integer(40, bounds=(1, 100_000), doc="Steps of a restart.")
    restarts = param.Integer(1, bounds=(1, 10), doc="Restarts.")
    stages = param.Integer(1, bounds=(1, 10), doc="Stages of a restart.")
    patience = param.Integer(0, bounds=(0, 1000), doc="Steps without a better score.")
    delay = param.Number(0.0, bounds=(0, 10), doc="Seconds that a step takes at least.")
    nan_at = param.Integer(0, bounds=(0, 100_000), doc="Step at which the objective is NaN.")
    break_at = param.Integer(0, bounds=(0, 100_000), doc="Step at which the code breaks.")
    stuck_at = param.Integer(0, bounds=(0, 100_000), doc="Step that does not end.")
    hold = param.Integer(0, bounds=(0, 10**9), doc="Megabytes that every step takes and keeps.")
    seize_at = param.Integer(0, bounds=(0, 100_000), doc="Step that seizes the interpreter.")
    seize = param.Number(0.0, bounds=(0, 60), doc="Seconds of that, at least.")
    refuse = param.Boolean(False, doc="Refuse the table.")


def numbers(settings: Settings, rows: int | None = None) -> pd.DataFrame:
    """The demonstration: numbers between -1 and 2."""
    global made
    made += 1
    return pd.DataFrame({"y": np.linspace(-1, 2, rows or 50)})


def times_made() -> int:
    """How often this process has made the demonstration."""
    return made


ENTRY = Entry(
    name="toy",
    title="Toy",
    question="Where is the mean of these numbers?",
    settings=ToySettings,
    table=TableSchema(columns=(Column("y"),), minimum_rows=1),
    sources=(Source("demo", "Numbers", "fifty numbers", generator="toy.entry:numbers", kept=True),),
    snapshot=(ArraySpec("mean", "3", "1", "where the mean stands"),),
    report=(ArraySpec("mean", "3", "1", "where it ended"),),
    explore={"shifted": (ArraySpec("mean", "3", "1", "the mean plus `by`"),)},
)
