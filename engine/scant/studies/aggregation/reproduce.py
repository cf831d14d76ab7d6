"""The publication's three experiments (Yousefi 2021, section 5.3): ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from scant.events import Finished, Metric
from scant.studies.aggregation.published import AIR, SETTINGS
from scant.studies.aggregation.report import dependent
from scant.studies.aggregation.settings import FIXED
from scant.studies.aggregation.simulate import fertility, particulates, poisson
from scant.studies.published import values as as_published
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

Case = tuple[Experiment, str, pd.DataFrame, dict[str, Any]]
SCORES = ("SMSE", "SNLP", "SNLP of a Gaussian", "coverage of the 95% interval")
DUST, AS_PUBLISHED = "PM2.5", ", as published"
VARIES = "cells and starts"  # between repeats
COUNTS = (50, 100, 200, 500, 1000, 1640)


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
        for experiment, method, table, values in _cases(seed, quick, data):
            stated = AIR if experiment.name == DUST else SETTINGS
            for name, base in (
                (method, FIXED), (f"{method}{AS_PUBLISHED}", as_published(stated)),
            ):  # fmt: skip
                case = (experiment, name, table, {**base, **values, "seed": seed})
                key = f"{experiment.name}, {name}, seed {seed}"
                yield Run(key, partial(_scores_of, fit, *case))


def _scores_of(
    fit: Fit, experiment: Experiment, method: str, table: pd.DataFrame, values: dict[str, Any]
) -> list[Score]:
    """Scores of a run; ours has baselines, which would be the same beside the published model."""
    ours = not method.endswith(AS_PUBLISHED)
    metrics = _run(fit, table, values, ours and "boxes" in method)
    kept = [m for m in metrics if ours or m.source == "run"]
    return [Score(experiment, *one) for one in _scores(method, kept)]


def _cases(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    """Experiment, method, table and settings."""
    yield from _toy(seed, folder)
    yield from _births(seed, quick, folder)
    yield from _orders(seed, folder)
    yield from _dust(seed, folder)


def _toy(seed: int, folder: Path | None) -> Iterator[Case]:
    name = "Poisson toy"
    draws = {Experiment(name, "drawn as published", "draws and starts"): poisson.simulate(seed)}
    if folder is not None:
        from scant.studies.aggregation.published_data import poisson_draw

        own = Experiment(f"{name}, the authors' draw", "the authors' draw, one of five", "starts")
        draws[own] = poisson_draw(folder / "poisson_toy")
    values = {"likelihood": "poisson", "fine_rows": 1000, "n_inducing": 125}
    for experiment, table in draws.items():
        other = str(table["task"].unique()[1])
        yield experiment, "both tasks", table, values
        yield experiment, "task 1 alone", table, {**values, "leave_out": other}


def _cells(seed: int, folder: Path | None) -> tuple[pd.DataFrame, str]:
    if folder is None:
        return fertility.simulate(seed, noise="births"), "simulated births, stand-in for Canada's"
    from scant.studies.aggregation.published_data import canada

    return canada(folder / "fertility"), "births of Canada, the publication's"


def _orders(seed: int, folder: Path | None) -> Iterator[Case]:
    """First and second births, in cells and in boxes: with one noise each, and with one that
    varies."""
    cells, source = _cells(seed, folder)
    experiment = Experiment("four outputs, 200 cells", source, VARIES)
    table = fertility.experiment(cells, 5, 200, seed, orders=(1, 2))
    for method, likelihood in (("one noise", "gaussian"), ("noise varies", "heteroscedastic")):
        values = {"fine_rows": 200, "likelihood": likelihood}
        yield experiment, method, table, values


def _births(seed: int, quick: bool, folder: Path | None) -> Iterator[Case]:
    cells, source = _cells(seed, folder)
    for step in (5, 2):
        few = COUNTS[:3:2] if step == 5 else COUNTS[:1]
        for n in few if quick else COUNTS:
            table = fertility.experiment(cells, step, n, seed)
            values = {"fine_rows": n, "likelihood": "gaussian"}
            coarse = str(table["task"].unique()[1])
            experiment = Experiment(f"births, {n} cells", source, VARIES)
            yield experiment, f"with {step}x{step} boxes", table, values
            if step == 5:
                yield experiment, "cells alone", table, {**values, "leave_out": coarse}


def _dust(seed: int, folder: Path | None) -> Iterator[Case]:
    table = particulates.simulate(seed)
    experiment = Experiment(DUST, "simulated, stand-in for Kampala", "draws and starts")
    if folder is not None:
        from scant.studies.aggregation.published_data import kampala

        table = kampala(folder / "pm25_kampala", start="2019-03-19")  # the counter's days
        source = "Kampala, 3 days, stand-in for the publication's 9"
        experiment = Experiment(DUST, source, "starts")
    values = {"fine_rows": 80, "likelihood": "gaussian", "lengthscale": 0.75, "n_inducing": 200}
    yield experiment, "filter and counter", table, values
    yield experiment, "filter alone", table, {**values, "leave_out": particulates.COUNTER}


def _run(fit: Fit, table: pd.DataFrame, values: dict[str, Any], more: bool) -> list[Metric]:
    """Figures of a run and of its baselines; with `more`, of dependent GPs as well."""
    run = fit("aggregation", table, own=False, **values)
    *_, last = run
    assert isinstance(last, Finished)
    more_metrics = dependent(run.study.posterior, run.study.data.train) if more else ()
    return [*last.report.metrics, *more_metrics]


def _scores(method: str, metrics: Sequence[Metric]) -> Iterator[tuple[str, str, float]]:
    """Method, metric and value, of the run and of the baselines on its rows."""
    for m in metrics:
        if m.name in SCORES:
            yield method if m.source == "run" else f"{m.method} ({method})", m.name, m.value
