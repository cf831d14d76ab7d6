"""The form, the readout, the replay: what they hold and what they say."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from bokeh.document import Document

from scant.errors import BadInput
from scant.events import Changed, Finished, Phase, Queued, Started, State
from scant.studies import entry
from scant_dashboard.controls.replay import Replay
from scant_dashboard.controls.run_bar import RunBar
from scant_dashboard.controls.settings_form import SettingsForm
from scant_dashboard.controls.status import NAMES, duration, number, reading, sentence
from scant_dashboard.live.run_state import RunState
from tests.dashboard.fakes import point, report, snapshot

REDSHIFT, AGGREGATION = entry("redshift"), entry("aggregation")


@pytest.fixture
def form() -> SettingsForm:
    return SettingsForm(REDSHIFT.settings, REDSHIFT.presets)


@pytest.fixture
def history() -> RunState:
    return RunState("r", SimpleNamespace(owner="me"))


def test_the_form_starts_from_the_defaults_of_every_setting(form: SettingsForm) -> None:
    assert form.read() == REDSHIFT.settings().values()
    assert set(form.widgets) == set(REDSHIFT.settings.names())


@pytest.mark.parametrize(
    ("word", "says"), [("many", "whole number"), ("-3", "at least"), ("", "whole number")]
)
def test_what_is_not_allowed_is_marked_and_explained(
    form: SettingsForm, word: str, says: str
) -> None:
    form.widgets["n_basis"].value = word
    with pytest.raises(BadInput, match=says):
        form.read()
    assert form.widgets["n_basis"].error_state
    assert "n_basis" in form._message.object
    form.widgets["n_basis"].value = "30"
    assert form.read()["n_basis"] == 30
    assert not form.widgets["n_basis"].error_state


def test_markup_in_a_setting_is_shown_as_text(form: SettingsForm) -> None:
    form.widgets["n_basis"].value = "<img src=x onerror=alert(1)>"
    with pytest.raises(BadInput):
        form.read()
    assert "<img" not in form._message.object


def test_settings_that_exclude_each_other_are_refused(form: SettingsForm) -> None:
    form.fill({"log_target": "yes", "weights": "normalized"})
    with pytest.raises(BadInput, match="exclude"):
        form.read()


def test_a_link_fills_the_form_and_warns_of_what_it_cannot_follow(form: SettingsForm) -> None:
    warnings = form.fill_from_query({"n_basis": "12", "colour": "blue", "seed": "x"})
    assert form.read()["n_basis"] == 12
    assert len(warnings) == 2
    assert "no setting 'colour'" in warnings[0]
    assert "'seed' must be a whole number" in warnings[1]


def test_presets_fill_and_are_named_while_they_hold(form: SettingsForm) -> None:
    form._preset["quick"].clicks += 1
    for name, value in REDSHIFT.presets["quick"].items():
        assert form.read()[name] == value
    assert form._preset["quick"].variant == "contained"
    assert form._preset["demo"].variant == "outlined"
    form.widgets["seed"].value = "9"
    assert form._preset["quick"].variant == "outlined"


def test_the_scarcity_slider_and_its_number_follow_each_other(form: SettingsForm) -> None:
    form.scarcity.value = 100
    assert form.read()["training_size"] == 100
    form.widgets["training_size"].value = "137"
    assert form.read()["training_size"] == 137
    assert form.scarcity.value == 100


def test_a_data_set_of_its_own_scarcity_has_its_slider() -> None:
    form = SettingsForm(AGGREGATION.settings, AGGREGATION.presets, ["n_groups"])
    slider, field = form._scarcities["n_groups"], form.widgets["n_groups"]
    assert slider.label == "Scarcity: groups of counties"
    assert not slider.visible
    assert not field.visible
    form.show_scarcity("n_groups")
    assert slider.visible
    assert field.visible
    slider.value = 50
    assert form.read()["n_groups"] == 50
    field.value = "12"
    assert (form.read()["n_groups"], slider.value) == (12, 10)
    slider.value = 0
    assert form.read()["n_groups"] == 0


def test_the_status_begins_with_the_state(history: RunState) -> None:
    history.apply([Queued(2, 40.0)])
    assert sentence(history) == "queued, place 2, starts within about 40 s"
    for state in State:
        history.apply([Changed(state, "A reason.")])
        assert reading(history)["text"].startswith(NAMES.get(state, state.value))


def test_the_figures_of_a_running_run(history: RunState) -> None:
    history.apply([Started("cpu", 100), *(point(s) for s in range(1, 11))])
    facts = dict(map(tuple, reading(history)["facts"]))
    assert facts["step"] == "10 of 100"
    assert facts["time per step"] == "100 ms"
    assert facts["time left, at most"] == "9.0 s"
    assert reading(history)["fraction"] == pytest.approx(0.1)


def test_the_status_names_what_follows_the_steps(history: RunState) -> None:
    history.apply([Started("cpu", 100), Changed(State.RUNNING), *map(point, range(1, 41))])
    assert reading(history)["fraction"] == 0.4
    history.apply([Phase("making the report")])
    assert sentence(history) == "running: making the report"
    assert reading(history)["fraction"] == 0
    history.apply([Phase("comparing with 5 other methods", 2, 5, 20.4)])
    assert (
        sentence(history) == "running: comparing with 5 other methods, 2 of 5 done, about 20 s left"
    )
    status = reading(history)
    assert status["fraction"] == 0.4
    assert "time left, at most" not in dict(status["facts"])
    history.apply([point(41)])  # of the fit on all rows
    assert sentence(history) == "running"
    assert "time left, at most" in dict(reading(history)["facts"])


def test_a_recording_is_marked(history: RunState) -> None:
    history.recorded = True
    history.apply([Finished(State.CONVERGED, "Converged.", report())])
    assert "recorded" in sentence(history)


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        (None, {"Train"}),
        (State.QUEUED, {"Pause", "Stop"}),
        (State.RUNNING, {"Pause", "Stop"}),
        (State.PAUSED, {"Train", "Resume", "Stop"}),
        (State.CONVERGED, {"Train"}),
        (State.FAILED, {"Train"}),
    ],
)
def test_the_buttons_offered(state: State | None, offered: set[str], history: RunState) -> None:
    bar = RunBar(*[lambda: None] * 4)
    if state is not None:
        history.apply([Changed(state)])
    bar.show(history if state else None, may_steer=True)
    assert {name for name, button in bar.buttons.items() if button.visible} == offered
    bar.show(history if state else None, may_steer=False)
    assert {name for name, button in bar.buttons.items() if button.visible} == {"Train"}


def test_a_replay_shows_each_step_with_the_snapshot_of_its_time(history: RunState) -> None:
    history.apply([Started("cpu", 9), *(point(s) for s in range(1, 10)), snapshot(9)])
    shown = []
    replay = Replay(Document(), lambda *told: shown.append(told))
    replay.offer(history, lambda: [snapshot(1), snapshot(5), snapshot(9)])
    replay._begin()
    for step in (4, 6, 2):
        replay._slider.value = step
    steps = [(step, snap and snap.step, first) for step, snap, first in shown]
    assert steps == [(1, 1, 0), (4, None, 1), (6, 5, 4), (2, 1, 0)]
    replay._end()
    assert shown[-1] == (None, None, 0)
    assert not replay.playing


def test_a_replay_says_whether_it_moves_by_itself(history: RunState) -> None:
    """What is held, or has come to its end, is read at once: no later step would bring it."""
    history.apply([Started("cpu", 9), *(point(s) for s in range(1, 10))])
    moving: dict[int, bool] = {}
    replay = Replay(Document(), lambda step, *_: moving.update({step or 0: replay.moving}))
    replay.offer(history, list)
    replay._begin()
    replay._frame()
    held = int(replay._slider.value)
    assert moving == {1: False, held: True}
    replay._toggle_play()
    assert not moving[held]
    replay._toggle_play()
    while replay.moving:
        replay._frame()
    assert moving[8]
    assert not moving[9]


def test_numbers_and_times_as_people_say_them() -> None:
    assert number(-0.123456) == "\u22120.1235"
    assert number(math.nan) == "not finite"
    assert [duration(s) for s in (0.0421, 3.21, 42, 600, 9000)] == [
        "42 ms",
        "3.2 s",
        "42 s",
        "10 min",
        "2.5 h",
    ]
