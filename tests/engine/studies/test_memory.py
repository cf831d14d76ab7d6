"""No step and no prediction of any learner takes more than its machine has, nor than it says.

Every learner is fitted to a table of many columns and to one of many rows, with missing cells
where the study takes them, in a process that may hold 2 GB beyond what its imports hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.studies import entry
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
SHAPES = {"many columns": (300, 200), "many rows": (2000, 60)}
PROGRAM = Path(__file__).with_name("fit_within_memory.py")
BUDGET = 10.0
FEW_STEPS = {"max_steps": 20}


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
    yield "redshift", {"gap_seconds": 10}, values
    yield "redshift", {"incomplete": "use"}, values
    yield "redshift", {"covariance": "VC", "n_basis": 20}, values
    yield "redshift", {"missing": "basis functions", "n_basis": 20, "covariance": "GD"}, values
    yield "aggregation", {}, supports
    yield "clamp", {"repeats": 1, "budget": 60, "baselines": False}, patches
    for model in MULTIVIEW:
        yield "multiview", {"model": model, "repeats": 1, "baselines": False, **FEW_STEPS}, views
    for model in MITOSIS:
        yield "mitosis", {"model": model, "baselines": False, **FEW_STEPS}, classes
    for model in OMNIGLOT:
        yield "omniglot", {"model": model, **FEW_STEPS}, outputs
    for model in GENES:
        yield "genes", {"model": model, **FEW_STEPS}, curves


CASES = list(learners())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("study", "settings", "make"),
    CASES,
    ids=["-".join(map(str, (study, *some.values()))) for study, some, _ in CASES],
)
def test_a_learner_stays_within_memory_and_within_what_it_says(
    study: str, settings: dict[str, Any], make: Maker, shape: str, tmp_path: Path
) -> None:
    table = make(*SHAPES[shape])
    table.to_parquet(tmp_path / "table.parquet")
    given = {"seed": 0, **settings}
    spec = entry(study)
    if "time_budget" in spec.settings.names():
        given["time_budget"] = BUDGET
    arguments = [study, json.dumps(given), str(tmp_path / "table.parquet"), str(LIMIT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-1500:]
    held = json.loads(done.stdout.splitlines()[-1])["bytes"]
    assert spec.estimate is not None
    every = counts(table, spec.table)
    settled, _ = spec.settled(spec.parse(table, given), *table.shape, every)
    assert held <= spec.estimate(settled, *table.shape, every)[1]
