"""What the browser tells the labeling widget, and what no press of a button sends."""

from __future__ import annotations

import pytest

from scant_dashboard.controls.labeling_widget import LabelingWidget


@pytest.mark.parametrize("name", ["turn", "row", "value"])
@pytest.mark.parametrize("number", ["NaN", float("nan"), float("inf"), 1.5, True, [1], {}])
def test_what_no_press_sends_is_left_alone(name: str, number: object) -> None:
    heard: list[object] = []
    widget = LabelingWidget(heard.append)
    press = {"act": "label", "turn": 1, "row": 2, "value": 0}
    widget._handle_msg(press)
    widget._handle_msg({"act": "undo", "turn": 3, "row": None})
    widget._handle_msg({**press, name: number})
    widget._handle_msg("label")
    assert heard == [press, {"act": "undo", "turn": 3, "row": None}]
