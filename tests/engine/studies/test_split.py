"""Rows are divided by marks, groups and shares; all of an own table's rows are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.events import Checkpoint, Finished, Fitted, Progress, State
from scant.studies import STUDIES, entry
from scant.studies.aliases import recorded_settings
from scant.studies.split import counts_of, divide, groups, marks
from scant.tables.schema import counts
from scant.training.api import Fit, fit, restore
from scant.training.control import Control
from tests.tiny import fixed

FAST = {**fixed("redshift"), "n_basis": 5, "max_steps": 4, "restarts": 1}


def galaxies(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    u, g, noise = rng.normal(size=(3, n))
    return pd.DataFrame(
        {"z": 0.5 + 0.1 * u + 0.02 * noise, "u": u, "g": g, "night": np.arange(n) // 10}
    )


def test_shares_are_drawn_by_the_seed_and_nothing_is_lost() -> None:
    parts = divide(100, 3, test=20, validation=10)
    assert [len(rows) for rows in parts] == [70, 10, 20]
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert (divide(100, 3, test=20).test == parts.test).all()
    assert not (divide(100, 4, test=20).test == parts.test).all()
    everything = divide(100, 3, test=20, validation=10, everything=True)
    assert sorted(everything.train) == sorted(np.concatenate([parts.train, parts.test]))


def test_marks_win_and_what_they_leave_open_is_drawn() -> None:
    frame = pd.DataFrame({"split": ["test"] * 5 + [None, "train", "odd"] * 5})
    parts = divide(20, 0, test=9, validation=3, marked=marks(frame))
    assert sorted(parts.test) == list(range(5))
    assert len(parts.validation) == 3
    assert len(parts.train) == 12


@pytest.mark.parametrize(
    ("by", "column"),
    [("site", list("abcdefghij") * 20), ("time", np.arange(200.0)), ("x,y", np.arange(200) % 20)],
)
def test_groups_times_and_places_stay_together(by: str, column: Any) -> None:
    frame = pd.DataFrame(dict.fromkeys(by.split(","), column))
    group = groups(frame, by)
    parts = divide(200, 1, test=40, validation=20, group=group)
    sides = [set(group[rows]) for rows in parts]
    assert sum(map(len, sides)) == len(set(group))
    assert 20 <= len(parts.test) <= 60
    if by == "time":  # in blocks of neighbors
        assert all(np.ptp(np.flatnonzero(group == g)) < 10 for g in set(group))


def test_a_column_group_is_kept_together_unasked_and_an_unknown_one_is_refused() -> None:
    assert groups(pd.DataFrame({"group": list("ab")}), "") is not None
    assert groups(pd.DataFrame({"x": [1.0, 2.0]}), "") is None
    assert groups(pd.DataFrame({"x_lo": [1.0, 2.0], "x_hi": [2.0, 3.0]}), "x") is not None
    with pytest.raises(BadInput, match="'split_by' names 'county'"):
        groups(pd.DataFrame({"x": [1.0]}), "county")


def test_an_own_table_is_used_wholly_and_the_demonstration_as_it_is_pinned() -> None:
    run = fit("redshift", galaxies(), device="cpu", **FAST)
    assert run.study.metadata["rows"] == {"training": 280, "validation": 40, "test": 80}
    assert run.study.notes[0] == "280 rows to train on, 40 to validate, 80 to test, of 400."
    less = fit("redshift", galaxies(), device="cpu", training_size=100, **FAST)
    assert less.study.notes[0].endswith("80 to test, of 400; 206 are not used.")
    demo = entry("redshift").parse("demo", {})
    assert (demo.values()["training_size"], demo.values()["test_size"]) == (2000, 2000)
    assert entry("redshift").parse("upload:1", {}).values()["training_size"] == 0


@pytest.mark.parametrize("by", ["night", "where"])
def test_a_study_divides_by_a_column_that_is_a_feature_or_a_text(by: str) -> None:
    table = galaxies().assign(where=lambda t: "night " + (t["night"] // 4).astype(str))
    run = fit("redshift", table, device="cpu", split_by=by, **FAST)
    study: Any = run.study
    assert "where" not in study.features.bands
    assert not set(study.data.learn[by]) & set(study.data.held[by])


def test_the_counts_are_known_before_the_fit() -> None:
    result = entry("redshift")
    table = galaxies()
    planned = result.parts(result.settings(), len(table), counts(table, result.table))
    study = fit("redshift", table, device="cpu").study
    assert planned == counts_of(study.metadata, len(table))
    assert all(entry(study).parts is not None for study in STUDIES if study != "clamp")


def test_the_seed_of_a_fit_draws_no_other_demonstration() -> None:
    result = entry("genes")
    one, two = (fit("genes", device="cpu", seed=seed).table for seed in (0, 1))
    other = fit("genes", device="cpu", data_seed=1).table
    assert two is not None
    assert other is not None
    assert one.equals(two)
    assert not one.equals(other)
    # A link or a run of before means both by its seed.
    assert recorded_settings("genes", {"seed": 3})["data_seed"] == 3
    assert recorded_settings("genes", {"seed": 3, "data_seed": 1})["data_seed"] == 1
    assert result.parse("demo", {"seed": 3}).data_seed == result.presets["demo"]["data_seed"]


@pytest.mark.slow
def test_fit_on_everything_predicts_from_all_rows_and_keeps_the_scores() -> None:
    once = list(fit("redshift", galaxies(), device="cpu", **FAST))
    run = fit("redshift", galaxies(), device="cpu", refit="everything", **FAST)
    events = list(run)
    first, last = once[-1], events[-1]
    assert [m.value for m in first.report.metrics] == [m.value for m in last.report.metrics]
    assert "fit on everything (360 training rows)" in last.report.notes[-1]
    steps = [e.step for e in events if isinstance(e, Progress)]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) == events[0].total_steps
    models = [e.blob for e in events if isinstance(e, Fitted)]
    query = galaxies().drop(columns="z")[:5]
    kept = restore("redshift", {"refit": "everything", **FAST}, models[-1], "cpu").predict(query)
    assert run.study.metadata["rows"]["training"] == 360
    assert np.allclose(kept["mean"], run.study.predict(query)["mean"])
    split = restore("redshift", FAST, models[0], "cpu").predict(query)
    assert not (kept["mean"] == split["mean"]).any()


@pytest.mark.slow
def test_a_pause_while_it_fits_on_everything_loses_only_that_fit() -> None:
    def run(checkpoint: bytes | None, control: Control | None = None) -> Fit:
        values = {**FAST, "refit": "everything"}
        return fit("redshift", galaxies(), device="cpu", checkpoint=checkpoint, control=control,
                   **values)  # fmt: skip

    whole = list(run(None))[-1]
    control, blob, states = Control(), b"", []
    for event in run(None, control):
        if isinstance(event, Progress) and event.step == 6:
            control.pause()
        if isinstance(event, Checkpoint):
            blob = event.blob
        if isinstance(event, Finished):
            states.append(event.state)
    assert states == [State.PAUSED]
    *_, again = resumed = list(run(blob))
    assert resumed[0].step == 4
    assert again.report.metrics == whole.report.metrics
    assert again.report.notes == whole.report.notes


def _own(study: str) -> pd.DataFrame:
    """A table without marks, as somebody brings it."""
    rng = np.random.default_rng(1)
    x, n = np.linspace(0, 10, 48), 48
    kind = np.where(np.arange(n) % 3 == 0, "rare", "usual")
    return {
        "aggregation": pd.DataFrame({"task": "level", "x": x, "y": np.sin(x)}),
        "genes": pd.DataFrame(
            {"output": "g", "replica": (np.arange(n) % 4).astype(str), "x": x, "y": np.sin(x)}
        ),
        "omniglot": pd.DataFrame({"output": "o", "label": kind, "a": rng.normal(size=n), "b": x}),
        "mitosis": pd.DataFrame({"label": kind, "a": rng.normal(size=n), "b": x}),
        "multiview": pd.DataFrame({"label": kind, "a": rng.normal(size=n), "b": x}),
        "redshift": galaxies(100),
    }[study]


@pytest.mark.parametrize("study", [s for s in STUDIES if s != "clamp"])
def test_an_own_table_without_marks_is_scored_and_used_wholly(study: str) -> None:
    table = _own(study)
    rows = fit(study, table, device="cpu").study.metadata["rows"]
    assert sum(rows.values()) == len(table)
    assert 2 <= rows["test"] <= 0.34 * len(table)
    marked = table.assign(split=["test" if i % 4 == 0 else "train" for i in range(len(table))])
    study_of = fit(study, marked, device="cpu").study
    assert study_of.metadata["rows"]["test"] == sum(study_of.roles == "test") == len(table) // 4
    assert (study_of.roles[::4] == "test").all()
    everything = fit(study, table, device="cpu", refit="everything")
    again = everything._refit()
    assert (
        again.metadata.get("chosen", {}).keys()
        == everything.study.metadata.get("chosen", {}).keys()
    )
    whole = again.metadata["rows"]
    assert whole["training"] + whole.get("validation", 0) == len(table)
