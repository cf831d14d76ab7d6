"""No step and no prediction of any learner takes more than its machine has, nor than it says.

Every learner is fitted to a table of many columns, and the first of each study to one of many rows,
with missing cells where the study takes them, in a process that may hold 2 GB beyond what its
imports hold. Few steps show it: memory does not grow with their number.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scant
from scant.events import USABLE, Finished
from scant.runs.limits import Size, cost_of
from scant.studies import STUDIES, entry
from scant.studies.genes.settings import MODELS as GENES
from scant.studies.mitosis.settings import MODELS as MITOSIS
from scant.studies.multiview.settings import MODELS as MULTIVIEW
from scant.studies.omniglot.settings import MODELS as OMNIGLOT
from scant.tables.schema import counts

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is of Linux"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
LIMIT = 2_000_000_000  # bytes beyond the imports
MANY_COLUMNS, MANY_ROWS = (300, 200), (2000, 60)
BUDGET = 3.0
FEW_STEPS = {"max_steps": 5}


def _columns(rows: int, columns: int, missing: float = 0.02) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of a few latent factors, and a value that depends on these."""
    generator = np.random.default_rng(0)
    factors = generator.normal(size=(rows, 6))
    x = factors @ generator.normal(size=(6, columns))
    x += 0.3 * generator.normal(size=x.shape)
    x[generator.random(x.shape) < missing] = np.nan
    y = np.sin(factors[:, 0]) + 0.5 * factors[:, 1] + 0.1 * generator.normal(size=rows)
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(columns)]), y


def values(rows: int, columns: int) -> pd.DataFrame:
    x, y = _columns(rows, columns - 1)
    return x.assign(z=y)


def classes(rows: int, columns: int) -> pd.DataFrame:
    x, y = _columns(rows, columns - 1)
    return x.assign(label=np.where(y > 1, "rare", "usual"))


def patches(rows: int, columns: int) -> pd.DataFrame:
    """Of clamp, whose columns lack nothing."""
    x, y = _columns(rows, columns - 1, missing=0.0)
    return x.assign(label=np.where(y > 1, "rare", "usual"))


def views(rows: int, columns: int) -> pd.DataFrame:
    """Of multiview, whose columns lack nothing."""
    x, y = _columns(rows, columns - 1, missing=0.0)
    x.columns = pd.Index([f"{'ab'[k % 2]}.{k}" for k in range(columns - 1)])
    return x.assign(y=y)


def outputs(rows: int, columns: int) -> pd.DataFrame:
    """Of omniglot, whose columns lack nothing."""
    x, y = _columns(rows, columns - 2, missing=0.0)
    label = pd.qcut(y, 5, labels=list("abcde")).astype(str)
    return x.assign(output=[f"o{k % 4}" for k in range(rows)], label=label)


def curves(rows: int, columns: int) -> pd.DataFrame:
    """Of genes, whose tables have a row for each number: as many as the other tables have rows."""
    k, generator = np.arange(rows), np.random.default_rng(0)
    x = (k // 12) / rows
    y = np.sin(20 * x + k % 4) + 0.1 * generator.normal(size=rows)
    replica = (k // 4 % 3).astype(str)
    return pd.DataFrame({"output": (k % 4).astype(str), "replica": replica, "x": x, "y": y})


def supports(rows: int, columns: int) -> pd.DataFrame:
    """Of aggregation: averages over intervals, of two tasks."""
    k, generator = np.arange(rows), np.random.default_rng(0)
    low = (k // 2).astype(float)
    high = low + np.where(k % 2, 5.0, 1.0)
    y = np.sin(low / 30) + 0.1 * generator.normal(size=rows)
    return pd.DataFrame(
        {"task": np.where(k % 2, "coarse", "fine"), "x_lo": low, "x_hi": high, "y": y}
    )


Maker = Callable[[int, int], pd.DataFrame]


def learners() -> Iterator[tuple[str, dict[str, Any], Maker]]:
    """Every study with every model that its settings offer."""
    yield "redshift", {"gap_seconds": 3}, values
    yield "redshift", {"incomplete": "use", "n_basis": 10}, values
    yield "redshift", {"covariance": "VC", "n_basis": 20}, values
    yield "redshift", {"missing": "basis functions", "n_basis": 20, "covariance": "GD"}, values
    yield "aggregation", {}, supports
    yield "aggregation", {"refit": "everything"}, supports
    yield "clamp", {"repeats": 1, "budget": 60, "baselines": False}, patches
    for model in MULTIVIEW:
        yield "multiview", {"model": model, "repeats": 1, "baselines": False, **FEW_STEPS}, views
    yield "multiview", {"model": "dfgp", "refit": "everything", **FEW_STEPS}, views
    for model in MITOSIS:
        yield "mitosis", {"model": model, "baselines": False, **FEW_STEPS}, classes
    for model in OMNIGLOT:
        yield "omniglot", {"model": model, **FEW_STEPS}, outputs
    for model in GENES:
        yield "genes", {"model": model, **FEW_STEPS}, curves


CASES = [(*case, MANY_COLUMNS) for case in learners()]
FIRST = {case[0]: case for case in reversed([*learners()])}.values()
CASES += [(*case, MANY_ROWS) for case in FIRST]


def added(study: str, settings: dict[str, Any], table: pd.DataFrame) -> int:
    """The largest resident size in bytes that a fit and a prediction add, within the limit."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + LIMIT, resource.RLIM_INFINITY))
    before = _peak()
    run = scant.fit(study, table, own=False, **settings)
    *_, last = run
    assert isinstance(last, Finished)
    assert last.state in USABLE, last.reason
    assert len(run.study.predict(table.head(100))) == 100
    return _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture(scope="module")
def apart() -> Iterator[ProcessPoolExecutor]:
    """Runs each call in a process of its own, a copy of one that has imported everything."""
    server = multiprocessing.get_context("forkserver")
    rivals = ["sklearn.ensemble", "sklearn.gaussian_process", "sklearn.svm"]
    server.set_forkserver_preload(
        [__name__, *(f"scant.studies.{name}.study" for name in STUDIES), *rivals]
    )
    with ProcessPoolExecutor(1, server, max_tasks_per_child=1) as pool:
        yield pool


@pytest.mark.parametrize(
    ("study", "settings", "make", "shape"),
    CASES,
    ids=["-".join(map(str, (study, *some.values(), *shape))) for study, some, _, shape in CASES],
)
def test_a_learner_stays_within_memory_and_within_what_it_says(
    study: str,
    settings: dict[str, Any],
    make: Maker,
    shape: tuple[int, int],
    apart: ProcessPoolExecutor,
) -> None:
    table, spec = make(*shape), entry(study)
    given = {"seed": 0, **settings}
    if "time_budget" in spec.settings.names():
        given["time_budget"] = BUDGET
    held = apart.submit(added, study, given, table).result()
    every = counts(table, spec.table)
    cost = cost_of(spec, spec.parse(table, given), Size(*table.shape, every))
    assert cost is not None
    assert held <= cost.bytes
