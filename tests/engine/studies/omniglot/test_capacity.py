"""Sizes that were left to the program: chosen from the table, and used to the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st

import scant
from scant.events import Fitted
from scant.studies.auto import CHOSEN
from scant.studies.omniglot.capacity import SHARE
from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.settings import OmniglotSettings
from scant.training.api import restore

FEW = {"time_budget": 5.0, "max_steps": 12, "n_inducing": 10}


def counts(outputs: int, classes: int) -> dict[str, dict[str, int]]:
    labels = {str(c): 10 for c in range(classes)}
    return {"output": {str(d): 100 for d in range(outputs)}, "label": labels, "p0": {}}


@limited(deadline=None, max_examples=40)
@given(
    st.integers(10, 200_000), st.integers(1, 2000), st.integers(1, 60), st.integers(2, 900),
    st.floats(5, 3600),
)  # fmt: skip
def test_every_size_is_chosen_and_within_the_budget(
    rows: int, columns: int, outputs: int, classes: int, budget: float
) -> None:
    settings = OmniglotSettings(time_budget=budget, baselines=False, calibrate=False)
    known = counts(outputs, classes)
    made, chosen = ENTRY.settled(settings, rows, columns, known)
    assert set(chosen) == {
        "n_latent", "n_inducing", "batch_size", "max_steps", "restarts", "features"
    }  # fmt: skip
    assert (made, chosen)[1] == ENTRY.settled(settings, rows, columns, known)[1]
    seconds = ENTRY.estimate(made, rows, columns, known)[0] - 1
    assert seconds <= 1.2 * SHARE * budget or made.max_steps == 100


def test_more_time_and_more_rows_give_more() -> None:
    def size(rows: int, budget: float) -> tuple[int, int]:
        settings = OmniglotSettings(time_budget=budget)
        made, _ = ENTRY.settled(settings, rows, 400, counts(3, 90))
        return made.n_inducing, made.max_steps

    assert size(60, 600.0)[0] < size(3000, 600.0)[0]
    assert size(3000, 10.0) < size(3000, 600.0)


def rings(n: int = 90) -> pd.DataFrame:
    """Three classes, one inside the other."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    label = np.digitize((x**2).sum(1), [0.8, 2.4])
    return pd.DataFrame({"output": "all", "label": [f"ring {c}" for c in label], "a": x[:, 0],
                         "b": x[:, 1]})  # fmt: skip


def shades(n: int = 80) -> pd.DataFrame:
    """Gray images of 5 x 5 pixels: a bright half."""
    rng = np.random.default_rng(1)
    up = rng.integers(0, 2, n)
    x = rng.uniform(0.1, 0.5, (n, 5, 5))
    x[up == 1, :2] += 0.4
    x[up == 0, 3:] += 0.4
    table = pd.DataFrame(x.reshape(n, 25), columns=[f"p{i}" for i in range(25)])
    return table.assign(output="all", label=np.where(up, "up", "down"))


@pytest.mark.slow
@pytest.mark.parametrize("table", [rings(), shades()], ids=["columns", "images"])
def test_an_own_table_is_fitted_with_what_was_chosen_and_comes_back(table: pd.DataFrame) -> None:
    run = scant.fit("omniglot", table, own=True, baselines=False, device="cpu", **FEW)
    blob, end = b"", None
    for event in run:
        blob = event.blob if isinstance(event, Fitted) else blob
        end = event
    chosen: dict[str, Any] = run.study.metadata[CHOSEN]
    assert chosen["n_latent"][0] in (2, 3)
    assert ("pixels" in chosen) == ("p0" in table)
    if "p0" in table:
        assert chosen["pixels"][0] == "gray"
        assert run.study.metadata["kernel"] == "rbf-ard"
    assert "an average" in end.report.limits[0]
    (recall,) = [m.value for m in end.report.metrics if m.name == "recall"]
    assert recall > 0.75
    back = restore("omniglot", OmniglotSettings(**FEW).values(), blob, "cpu")
    pd.testing.assert_frame_equal(
        back.predict(table.head(20)), run.study.predict(table.head(20)), rtol=1e-6
    )
