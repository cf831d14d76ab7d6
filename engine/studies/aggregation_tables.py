"""The publication's three experiments (Yousefi 2021, section 5.3): ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.datasets import fertility, particulates, poisson_toy
from engine.events import Finished, Report
from engine.fitting import fit

PUBLISHED = {
    ("Poisson toy", "both tasks", "SMSE"): 0.464,
    ("Poisson toy", "both tasks", "SNLP"): -0.822,
    ("Poisson toy", "task 1 alone", "SMSE"): 0.9699,
    ("Poisson toy", "task 1 alone", "SNLP"): -0.095,
    ("PM2.5", "filter and counter", "SMSE"): 0.439,
    ("PM2.5", "filter alone", "SMSE"): 0.657,
}
SCORES = ("SMSE", "SNLP", "coverage of the 95% interval")
COUNTS = (50, 100, 200, 500, 1000, 1640)


def reproduce(quick: bool, data: str | None) -> pd.DataFrame:
    """SMSE, SNLP and coverage of every experiment, with deviations over seeds.

    Args:
        quick: One seed and few sizes: some minutes.
        data: A folder with the authors' Poisson draw, the Canadian grid and the Kampala instruments
            in `poisson_toy`, `fertility` and `pm25_kampala`, as `engine.datasets.published` reads
            them; None: generated stand-ins.

    Returns:
        Columns `experiment`, `method`, `metric`, `ours`, `spread`, `published`.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    folder = None if data is None else Path(data)
    for seed in range(1 if quick else 5):
        for experiment, method, table, values in _cases(seed, quick, folder):
            report = _run(table, {**values, "seed": seed})
            for name, metric, value in _scores(method, report):
                found.setdefault((experiment, name, metric), []).append(value)
    return pd.DataFrame(
        [
            {
                "experiment": experiment,
                "method": method,
                "metric": metric,
                "ours": round(float(np.mean(values)), 4),
                "spread": round(float(np.std(values)), 4) if len(values) > 1 else None,
                "published": PUBLISHED.get((experiment, method, metric)),
            }
            for (experiment, method, metric), values in found.items()
        ]
    )


def _cases(
    seed: int, quick: bool, folder: Path | None
) -> Iterator[tuple[str, str, pd.DataFrame, dict[str, Any]]]:
    """Experiment, method, table and settings."""
    yield from _toy(seed, folder)
    yield from _births(seed, quick, folder)
    yield from _dust(seed, folder)


def _toy(seed: int, folder: Path | None) -> Iterator[tuple[str, str, pd.DataFrame, dict[str, Any]]]:
    table = poisson_toy.simulate(seed)
    if folder is not None:
        from engine.datasets.published import poisson_draw

        table = poisson_draw(folder / "poisson_toy")
    values = {"likelihood": "poisson", "fine_rows": 1000, "n_inducing": 125}
    other = str(table["task"].unique()[1])
    yield "Poisson toy", "both tasks", table, values
    yield "Poisson toy", "task 1 alone", table, {**values, "leave_out": other}


def _births(
    seed: int, quick: bool, folder: Path | None
) -> Iterator[tuple[str, str, pd.DataFrame, dict[str, Any]]]:
    cells = fertility.simulate(seed, noise="births", orders=(1,))
    if folder is not None:
        from engine.datasets.published import canada

        cells = canada(folder / "fertility")
    for step in (5, 2):
        for n in COUNTS[:3] if quick else COUNTS:
            table = fertility.experiment(cells, step, n, seed)
            values = {"fine_rows": n, "likelihood": "gaussian"}
            coarse = str(table["task"].unique()[1])
            name = f"births, {n} cells"
            yield name, f"with {step}x{step} boxes", table, values
            if step == 5:
                yield name, "cells alone", table, {**values, "leave_out": coarse}


def _dust(
    seed: int, folder: Path | None
) -> Iterator[tuple[str, str, pd.DataFrame, dict[str, Any]]]:
    table = particulates.simulate(seed)
    if folder is not None:
        from engine.datasets.published import kampala

        table = kampala(folder / "pm25_kampala", start="2019-03-19")  # the counter's days
    values = {"likelihood": "gaussian", "lengthscale": 0.75, "n_inducing": 200}
    yield "PM2.5", "filter and counter", table, values
    yield "PM2.5", "filter alone", table, {**values, "leave_out": particulates.COUNTER}


def _run(table: pd.DataFrame, values: dict[str, Any]) -> Report:
    *_, last = fit("aggregation", table, **values)
    assert isinstance(last, Finished)
    return last.report


def _scores(method: str, report: Report) -> Iterator[tuple[str, str, float]]:
    """Method, metric and value, of the run and of the baselines on its rows."""
    for m in report.metrics:
        if m.name in SCORES:
            yield method if m.source == "run" else f"{m.method} ({method})", m.name, m.value
