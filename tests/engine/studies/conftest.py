"""Tables and a fitted study that files of tests share; none changes them."""

from __future__ import annotations

import pandas as pd
import pytest

from scant.events import Report
from scant.studies.omniglot.study import Study
from tests.engine.studies import cases
from tests.engine.studies.omniglot.alphabets import CPU, settings
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
    return cases.table("classes")


@pytest.fixture(scope="session")
def values() -> pd.DataFrame:
    return cases.table("values")


@pytest.fixture(scope="session")
def lives() -> pd.DataFrame:
    return cases.table("lives")


@pytest.fixture(scope="session")
def drawings() -> pd.DataFrame:
    return cases.table("drawings")


@pytest.fixture(scope="session")
def features() -> pd.DataFrame:
    return cases.table("features")


@pytest.fixture(scope="session")
def alphabets(drawings: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(max_steps=80, n_inducing=20, n_latent=4), drawings, CPU)
    return study, run(study)
