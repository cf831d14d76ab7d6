"""Tables and a fitted study that files of tests share; none changes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.events import Report
from scant.studies.omniglot import simulate
from scant.studies.omniglot.study import Study
from tests.engine.studies.multiview import views
from tests.engine.studies.omniglot.alphabets import CPU, SIZES, TIDY, settings
from tests.engine.studies.studying import run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tables of publications and fits of real data take minutes."""
    for item in items:
        if item.path.name in ("test_reproduce.py", "test_real.py"):
            study = f"engine/scant/studies/{item.path.parent.name}"
            item.add_marker(
                pytest.mark.slow(study, "engine/scant/models", "engine/scant/reproduce")
            )


@pytest.fixture(scope="session")
def classes() -> pd.DataFrame:
    return views.classes()


@pytest.fixture(scope="session")
def values() -> pd.DataFrame:
    return views.values()


@pytest.fixture(scope="session")
def lives() -> pd.DataFrame:
    return views.lives()


@pytest.fixture(scope="session")
def drawings() -> pd.DataFrame:
    """Two alphabets of three and four characters by ten people, at 12 x 12 pixels."""
    return simulate.alphabets(0, 12, sizes=SIZES, drawers=10, variation=TIDY).frame()


@pytest.fixture(scope="session")
def features() -> pd.DataFrame:
    """Classes as clouds of points in three dimensions; buildings of two and three floors."""
    rng = np.random.default_rng(0)
    names = [("north", "1"), ("north", "2"), ("south", "1"), ("south", "2"), ("south", "3")]
    rows = [
        {"output": o, "label": c, **dict(zip("abc", rng.normal(2 * np.eye(5)[i, :3], 0.6)))}
        for i, (o, c) in enumerate(names)
        for _ in range(15)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def alphabets(drawings: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(max_steps=80, n_inducing=20, n_latent=4), drawings, CPU)
    return study, run(study)
