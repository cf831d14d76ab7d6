"""The publication's three experiments (Yousefi 2021, section 5.3): ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scant.events import Finished, Metric
from scant.studies.aggregation.report import dependent
from scant.studies.aggregation.settings import FIXED
from scant.studies.aggregation.simulate import fertility, particulates, poisson
from scant.studies.reproduction import Fit, Runs, Score

PUBLISHED = {
    ("Poisson toy", "both tasks", "SMSE"): 0.464,
    ("Poisson toy", "both tasks", "SNLP"): -0.822,
    ("Poisson toy", "task 1 alone", "SMSE"): 0.9699,
    ("Poisson toy", "task 1 alone", "SNLP"): -0.095,
    ("PM2.5", "filter and counter", "SMSE"): 0.439,
    ("PM2.5", "filter alone", "SMSE"): 0.657,
}
Case = tuple[str, str, str, pd.DataFrame, dict[str, Any]]
SCORES = ("SMSE", "SNLP", "coverage of the 95% interval")
COUNTS = (50, 100, 200, 500, 1000, 1640)


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """SMSE, SNLP and coverage of every experiment, seed after seed.

    Args:
        quick: One seed and few sizes.
        data: A folder with the authors' Poisson draw, the Canadian grid and the Kampala instruments
            in `poisson_toy`, `fertility` and `pm25_kampala`, as
            `scant.studies.aggregation.published_data` reads
            them; None: generated stand-ins.
        fit: `scant.fit`.
    """
    for seed in range(1 if quick else 5):
        for experiment, source, method, table, values in _cases(seed, quick, data):
            metrics = _run(fit, table, {**values, "seed": seed}, "boxes" in method)
            yield [
                Score(experiment, source, name, metric, value, _theirs(experiment, name, metric))
                for name, metric, value in _scores(method, metrics)
            ]


def _theirs(experiment: str, method: str, metric: str) -> float | None:
    return PUBLISHED.get((experiment, method, metric))


def _cases(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    """Experiment, whose rows, method, table and settings."""
    yield from _toy(seed, folder)
    yield from _births(seed, quick, folder)
    yield from _orders(seed, folder)
    yield from _dust(seed, folder)


def _toy(seed: int, folder: Path | None) -> Iterator[Case]:
    table, source = poisson.simulate(seed), "drawn as published"
    if folder is not None:
        from scant.studies.aggregation.published_data import poisson_draw

        table, source = poisson_draw(folder / "poisson_toy"), "the authors' draw, one of five"
    values = {"likelihood": "poisson", "fine_rows": 1000, "n_inducing": 125}
    other = str(table["task"].unique()[1])
    yield "Poisson toy", source, "both tasks", table, values
    yield "Poisson toy", source, "task 1 alone", table, {**values, "leave_out": other}


def _cells(seed: int, folder: Path | None) -> tuple[pd.DataFrame, str]:
    if folder is None:
        return fertility.simulate(seed, noise="births"), "simulated births, stand-in for Canada's"
    from scant.studies.aggregation.published_data import canada

    return canada(folder / "fertility"), "births of Canada, the publication's"


def _orders(seed: int, folder: Path | None) -> Iterator[Case]:
    """First and second births, in cells and in boxes: with one noise each, and with one that
    varies."""
    cells, source = _cells(seed, folder)
    table = fertility.experiment(cells, 5, 200, seed, orders=(1, 2))
    for method, likelihood in (("one noise", "gaussian"), ("noise varies", "heteroscedastic")):
        values = {"fine_rows": 200, "likelihood": likelihood}
        yield "four outputs, 200 cells", source, method, table, values


def _births(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    cells, source = _cells(seed, folder)
    for step in (5, 2):
        few = COUNTS[:3:2] if step == 5 else COUNTS[:1]
        for n in few if quick else COUNTS:
            table = fertility.experiment(cells, step, n, seed)
            values = {"fine_rows": n, "likelihood": "gaussian"}
            coarse = str(table["task"].unique()[1])
            name = f"births, {n} cells"
            yield name, source, f"with {step}x{step} boxes", table, values
            if step == 5:
                yield name, source, "cells alone", table, {**values, "leave_out": coarse}


def _dust(seed: int, folder: Path | None) -> Iterator[Case]:
    table, source = particulates.simulate(seed), "simulated, stand-in for Kampala"
    if folder is not None:
        from scant.studies.aggregation.published_data import kampala

        table = kampala(folder / "pm25_kampala", start="2019-03-19")  # the counter's days
        source = "Kampala, 3 days, stand-in for the publication's 9"
    values = {"fine_rows": 80, "likelihood": "gaussian", "lengthscale": 0.75, "n_inducing": 200}
    yield "PM2.5", source, "filter and counter", table, values
    yield "PM2.5", source, "filter alone", table, {**values, "leave_out": particulates.COUNTER}


def _run(fit: Fit, table: pd.DataFrame, values: dict[str, Any], more: bool) -> list[Metric]:
    """Figures of a run and of its baselines; with `more`, of dependent GPs as well."""
    run = fit("aggregation", table, own=False, **{**FIXED, **values})
    *_, last = run
    assert isinstance(last, Finished)
    more_metrics = dependent(run.study.posterior, run.study.data.train) if more else ()
    return [*last.report.metrics, *more_metrics]


def _scores(method: str, metrics: Sequence[Metric]) -> Iterator[tuple[str, str, float]]:
    """Method, metric and value, of the run and of the baselines on its rows."""
    for m in metrics:
        if m.name in SCORES:
            yield method if m.source == "run" else f"{m.method} ({method})", m.name, m.value
