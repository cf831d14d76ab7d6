"""Names of 0.1.0 go on working: in stored runs and uploads, in links and in commands."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy import text

from scant.store import Store
from scant.studies import STUDIES, entry
from scant.studies.aliases import ADDED, SETTINGS, VALUES, current_run, current_settings
from scant_dashboard.controls.settings_form import SettingsForm

# As 0.1.0 stored them and wrote them into links: the first setting of each study that was renamed.
BEFORE = {
    "aggregation": {"optimiser": "em", "standardise": "each task"},
    "clamp": {"batch": 30, "components": 4, "features": "columns"},
    "events": {"inducing_points": 12, "inducing_inputs": "fixed", "train_rows": 80, "log_y": "no"},
    "genes": {"inducing_outputs": 2, "inducing_inputs": 9, "batch_outputs": 3, "optimiser": "adam"},
    "mitosis": {"inducing_points": 7, "shared": 2, "private": 3, "rare": "mitosis"},
    "omniglot": {"inducing_points": 11, "batch_rows": 5},
    "redshift": {"positive": True},
}
NOW = {True: "yes"}  # values that have another name, too


@pytest.mark.parametrize("study", STUDIES)
def test_every_former_name_leads_to_a_setting(study: str) -> None:
    names = entry(study).settings.names()
    assert set(SETTINGS[study].values()) <= set(names)
    assert not set(SETTINGS[study]) & set(names)
    assert entry(study).settings.study == study


@pytest.mark.parametrize("study", VALUES)
def test_every_former_value_leads_to_a_value(study: str) -> None:
    settings = entry(study).settings
    for name, values in VALUES[study].items():
        for former, value in values.items():
            assert former not in settings.param[name].objects
            assert settings.parse({name: former}).values()[name] == value


@pytest.mark.parametrize("former", BEFORE)
def test_a_stored_run_opens_with_its_settings(former: str, store: Store) -> None:
    result, values = entry(former), BEFORE[former]
    run = store.add_run(former, values, "demo", "owner")
    frame = pd.DataFrame({"a": [1.0]})
    upload = store.add_upload(frame, owner="owner", name="a.csv", study=former)
    assert store.upload(upload).study == result.name
    record = store.run(run)
    assert record.study == result.name
    settings = result.settings.parse(record.settings)
    for name, value in values.items():
        assert getattr(settings, SETTINGS[result.name][name]) == NOW.get(value, value)
    with store.engine.connect() as db:  # what was stored stays as it was
        assert db.execute(text("select study from runs")).scalar() == former


@pytest.mark.parametrize("former", BEFORE)
def test_a_link_fills_the_form(former: str) -> None:
    result = entry(former)
    form = SettingsForm(result.settings, result.presets)
    query = {name: str(value).lower() for name, value in BEFORE[former].items()}
    assert form.fill_from_query(query) == []
    read = form.read()
    for name, value in BEFORE[former].items():
        assert str(read[SETTINGS[result.name][name]]) == str(NOW.get(value, value))


def test_what_is_older_than_a_setting_is_as_it_was(store: Store) -> None:
    """A run or link of before exact inference is variational; one of today says what it is."""
    run = store.add_run("aggregation", {"n_inducing": 30}, "demo", "owner")
    older = ADDED["aggregation"]
    assert store.run(run).settings == {"n_inducing": 30, **older}
    assert (older["inference"], older["stack"]) == ("variational", False)
    result = entry("aggregation")
    form = SettingsForm(result.settings, result.presets)
    form.fill_from_query({"n_inducing": "30"})
    assert form.read()["inference"] == "variational"
    today = result.settings.parse({"n_inducing": 30})
    own = {name: result.settings.param[name].default for name in older}
    assert today.changed() == {**own, "n_inducing": 30}
    form.fill_from_query({name: str(value) for name, value in today.changed().items()})
    assert form.read() == today.values()


def test_of_two_names_of_a_setting_the_newer_counts() -> None:
    assert current_settings("genes", {"batch_size": 1, "batch_outputs": 2}) == {"batch_size": 1}


def test_a_demonstration_is_found_under_the_name_of_its_study() -> None:
    assert current_run("demo-events") == "demo-multiview"
    assert current_run("a-events") == "a-events"


def test_demonstrations_of_a_former_name_are_replaced(store: Store) -> None:
    store.add_run("events", {}, "demo", "", run_id="demo-events", demonstration=True)
    assert "demo-multiview" in store.import_shipped()
    assert [run.id for run in store.runs() if run.study == "multiview"] == ["demo-multiview"]
