"""Shares of the classes, of which the labels are not known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from scant.studies.mitosis.classifier import estimated_shares, weighted
from scant.studies.mitosis.settings import PRIORS
from scant.studies.mitosis.study import Study
from tests.engine.studies.mitosis.nuclei import CPU, clouds, settings
from tests.engine.studies.studying import run, value


def calibrated(rare: float, rows: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a class, for this share of it, of rows with another share; and the rows'."""
    rng = np.random.default_rng(5)
    label = (rng.random(rows) >= rare).astype(int)
    x = rng.normal(np.where(label, 0.0, 2.0), 1.0)
    odds = np.exp(2 * x - 2) * share / (1 - share)
    return np.stack([odds, np.ones(rows)], 1) / (1 + odds)[:, None], label


def test_shares_of_many_rows_are_found_and_those_of_none_stay() -> None:
    share = np.array([0.05, 0.95])
    p, label = calibrated(0.3, 20_000, 0.05)
    found = estimated_shares(p, share)
    assert found == pytest.approx([0.3, 0.7], abs=0.02)
    right = weighted(p, found / share)
    assert right[:, 0].mean() == pytest.approx((label == 0).mean(), abs=0.02)
    assert estimated_shares(p[:0], share) == pytest.approx(share)
    few = estimated_shares(calibrated(0.3, 60, 0.05)[0], share)
    assert 0.05 < few[0] < 0.2  # few rows say little


def shifted_table() -> pd.DataFrame:
    """A rare class that is met more often than it was collected."""
    table = clouds({"few": 160, "many": 700})
    own = table.groupby("label").cumcount()
    held = np.where(table["label"] == "few", own >= 20, own >= 400)
    return table.assign(split=np.where(held, "test", "train"))


@pytest.mark.slow
def test_the_run_is_for_the_shares_of_rows_held_out_and_comes_back() -> None:
    table = shifted_table()
    values = {"classifier": "GP", "imbalance": 0, "max_steps": 10}
    before, after = (Study(settings(prior=p, **values), table, CPU) for p in (PRIORS[0], PRIORS[3]))
    plain, moved = run(before), run(after)
    assert after.chances.shift[0] > 2 > 1 > after.chances.shift[1]
    assert value(moved, "mean log probability (nats)") > value(plain, "mean log probability (nats)")
    assert any("look to be of class 'few'" in note for note in moved.notes)
    assert not any("look to be" in note for note in plain.notes)
    query = table.drop(columns=["label", "split"]).head(40)
    kept = Study.restore(after.settings, *after.fitted(), torch.device("cpu"))
    pd.testing.assert_frame_equal(kept.predict(query), after.predict(query), rtol=1e-5)
