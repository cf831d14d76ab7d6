"""Reproduction of the publication's three experiments (Yousefi 2021, section 5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scant.events import Metric
from scant.studies.aggregation.published import AIR, SETTINGS
from scant.studies.aggregation.report import slow_baselines
from scant.studies.aggregation.settings import FIXED
from scant.studies.aggregation.simulate import fertility, particulates, poisson
from scant.studies.published import values as as_published
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score, finish

SCORES = ("SMSE", "SNLP", "SNLP of a Gaussian", "coverage of the 95% interval")
BIRTHS, DUST, DAYS = "births", "PM2.5", "PM2.5, day by day"
AS_PUBLISHED = ", as published"
VARIES = "cells and starts"  # between repeats
COUNTS = (50, 100, 200, 500, 1000, 1640)
FEW = 500  # cells; below, boxes help according to the publication
FOUR = 200  # cells of each order with our settings, too
VARYING = "heteroscedastic"
DUST_VALUES = {"fine_rows": 80, "likelihood": "gaussian", "lengthscale": 0.75, "n_inducing": 200}


class Case(NamedTuple):
    """An experiment's method on one draw.

    Attributes:
        experiment: The experiment.
        method: Name of the method.
        table: Long form, with a split.
        values: Settings other than those of the page or of the publication.
        ours: Whether to run it with the settings of the page, too.
        day: Day of March 2019 if days are the repeats; 0 if seeds are.
    """

    experiment: Experiment
    method: str
    table: pd.DataFrame
    values: dict[str, Any]
    ours: bool = True
    day: int = 0


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """SMSE, SNLP and coverage of every experiment, seed after seed: ours and as published.

    Args:
        quick: One seed and few sizes.
        data: A folder with the authors' Poisson draw, the Canadian grid and the Kampala instruments
            in `poisson_toy`, `fertility` and `pm25_kampala`, as
            `scant.studies.aggregation.published_data` reads
            them; None: generated stand-ins.
        fit: `scant.fit`.
    """
    for seed in range(1 if quick else 5):
        for case in _cases(seed, quick, data):
            stated = AIR if case.experiment.name in (DUST, DAYS) else SETTINGS
            published = case._replace(
                method=f"{case.method}{AS_PUBLISHED}",
                values={**as_published(stated), **case.values},
            )
            ours = case._replace(values={**FIXED, **case.values})
            for variant in (ours, published) if case.ours else (published,):
                repeat = f"{case.day} March" if case.day else f"seed {seed}"
                key = f"{variant.experiment.name}, {variant.method}, {repeat}"
                yield Run(key, partial(_scores_of, fit, variant, seed))


def _scores_of(fit: Fit, case: Case, seed: int) -> list[Score]:
    """Scores of a run; baselines are scored once, in runs with our settings."""
    ours = not case.method.endswith(AS_PUBLISHED)
    slow = ours and case.experiment.name.startswith(BIRTHS) and "boxes" in case.method
    metrics = _run(fit, case.table, {**case.values, "seed": seed}, slow)
    selected = [m for m in metrics if ours or m.source == "run"]
    return [Score(case.experiment, *values) for values in _scores(case.method, selected)]


def _cases(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    yield from _toy(seed, folder)
    yield from _births(seed, quick, folder)
    yield from _orders(seed, quick, folder)
    yield from _dust(seed, folder)
    if folder is not None and seed == 0:
        yield from _days(folder)


def _toy(seed: int, folder: Path | None) -> Iterator[Case]:
    name = "Poisson toy"
    draws = {Experiment(name, "drawn as published", "draws and starts"): poisson.simulate(seed)}
    if folder is not None:
        from scant.studies.aggregation.published_data import poisson_draw

        authors_draw = Experiment(
            f"{name}, the authors' draw", "the authors' draw, one of five", "starts"
        )
        draws[authors_draw] = poisson_draw(folder / "poisson_toy")
    values = {"likelihood": "poisson", "fine_rows": 1000, "n_inducing": 125}
    for experiment, table in draws.items():
        other = str(table["task"].unique()[1])
        yield Case(experiment, "both tasks", table, values)
        yield Case(experiment, "task 1 alone", table, {**values, "leave_out": other})


def _cells(seed: int, folder: Path | None) -> tuple[pd.DataFrame, str]:
    if folder is None:
        return fertility.simulate(seed, noise="births"), "simulated births, stand-in for Canada's"
    from scant.studies.aggregation.published_data import canada

    return canada(folder / "fertility"), "births of Canada, the publication's"


def _orders(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    """First and second births, in cells and in boxes: with constant noise, and with noise that
    varies."""
    cells, source = _cells(seed, folder)
    for n in (FOUR,) if quick else COUNTS:
        experiment = Experiment(f"four outputs, {n} cells", source, VARIES)
        for step in (5, 2):
            table = fertility.experiment(cells, step, n, seed, orders=(1, 2))
            boxes = "" if step == 5 else f", {step}x{step} boxes"
            for noise, likelihood in (("one noise", "gaussian"), ("noise varies", VARYING)):
                values = {"fine_rows": n, "likelihood": likelihood}
                ours = n == FOUR and step == 5
                yield Case(experiment, f"{noise}{boxes}", table, values, ours)


def _births(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    cells, source = _cells(seed, folder)
    for step in (5, 2):
        quick_counts = COUNTS[:3:2] if step == 5 else COUNTS[:1]
        for n in quick_counts if quick else COUNTS:
            table = fertility.experiment(cells, step, n, seed)
            values = {"fine_rows": n, "likelihood": "gaussian"}
            coarse = str(table["task"].unique()[1])
            experiment = Experiment(f"{BIRTHS}, {n} cells", source, VARIES)
            name = f"with {step}x{step} boxes"
            yield Case(experiment, name, table, values)
            if n < FEW and not quick:
                table = fertility.experiment(cells, step, n, seed, of_all=False)
                yield Case(experiment, f"{name} of training cells", table, values, ours=False)
            if step == 5:
                yield Case(experiment, "cells alone", table, {**values, "leave_out": coarse})


def _dust(seed: int, folder: Path | None) -> Iterator[Case]:
    table = particulates.simulate(seed)
    experiment = Experiment(DUST, "simulated, stand-in for Kampala", "draws and starts")
    if folder is not None:
        from scant.studies.aggregation.published_data import kampala

        table = kampala(folder / "pm25_kampala", start="2019-03-19")  # the counter's days
        source = "Kampala, 3 days, stand-in for the publication's 9"
        experiment = Experiment(DUST, source, "starts")
    yield Case(experiment, "filter and counter", table, DUST_VALUES)
    alone = {**DUST_VALUES, "leave_out": particulates.COUNTER}
    yield Case(experiment, "filter alone", table, alone)


def _days(folder: Path) -> Iterator[Case]:
    """Single days, the repeats of the publication: nine of the filter, three of both."""
    from scant.studies.aggregation.published_data import kampala

    alone = Experiment(DAYS, "Kampala, 9 days, the publication's", "days")
    both = Experiment(DAYS, "Kampala, 3 days, stand-in for the publication's 9", "days")
    for day in range(13, 22):
        start, end = (f"2019-03-{d}" for d in (day, day + 1))
        table = kampala(folder / "pm25_kampala", start=start, end=end)
        counted = table["task"] == particulates.COUNTER
        if counted.any():
            yield Case(both, "filter and counter", table, DUST_VALUES, ours=False, day=day)
        yield Case(alone, "filter alone", table[~counted], DUST_VALUES, ours=False, day=day)


def _run(fit: Fit, table: pd.DataFrame, values: dict[str, Any], more: bool) -> list[Metric]:
    """Metrics of a run and of its baselines; with `more`, also of slow baselines."""
    run = fit("aggregation", table, own=False, **values)
    report = finish(run)
    more_metrics = slow_baselines(run.study.posterior, run.study.data.train) if more else ()
    return [*report.metrics, *more_metrics]


def _scores(method: str, metrics: Sequence[Metric]) -> Iterator[tuple[str, str, float]]:
    """Method, metric and value, of the run and of the baselines on its rows."""
    for m in metrics:
        if m.name in SCORES:
            yield method if m.source == "run" else f"{m.method} ({method})", m.name, m.value
