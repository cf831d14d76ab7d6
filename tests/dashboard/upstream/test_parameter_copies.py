"""An object's own parameter is what Param would have made, and nobody else's."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import panel as pn
import panel_material_ui as pmui
import param
import pytest
from param import parameterized

from scant_dashboard.upstream import parameter_copies


@pytest.fixture(autouse=True)
def installed() -> None:
    parameter_copies.install()


def slots(parameter: param.Parameter) -> dict[str, Any]:
    return {name: getattr(parameter, name) for name in type(parameter)._all_slots_}


@pytest.mark.parametrize("kind", [pmui.Button, pmui.Select, pn.pane.HTML, pn.Column])
def test_a_copy_is_what_param_makes(kind: type[param.Parameterized]) -> None:
    copied = parameterized._instantiate_param_obj
    original = getattr(copied, "__wrapped__", copied)
    assert original is not copied
    owner = kind()
    for name, parameter in kind.param.objects(instance=False).items():
        ours, theirs = slots(copied(parameter, owner)), slots(original(parameter, owner))
        assert ours.pop("owner") is theirs.pop("owner") is owner
        for slot, value in theirs.items():
            assert ours[slot] is value or ours[slot] == value, f"{name}.{slot}"


def test_what_is_changed_in_one_object_is_not_in_another() -> None:
    one, other = pmui.Select(options=["a"]), pmui.Select(options=["a"])
    seen: list[Any] = []
    one.param.watch(lambda event: seen.append(event.new), "options")
    one.param["value"].label = "mine"
    one.options = ["a", "b"]
    assert seen == [["a", "b"]]
    assert other.param["value"].label != "mine"
    assert other.options == ["a"]
    assert pmui.Select.param["options"].watchers == {}


def test_a_flag_that_changes_is_set_and_heard_of() -> None:
    class Thing(param.Parameterized):
        size = param.Number(1.0, constant=True)

    thing, heard = Thing(), []
    thing.param.watch(lambda event: heard.append(event.new), "size", what="constant")
    with param.edit_constant(thing):
        thing.size = 2.0
    assert thing.size == 2.0
    assert heard == [False, True]
    with pytest.raises(TypeError):
        thing.size = 3.0


def test_param_asks_each_slot_whether_it_is_bound() -> None:
    asked = []
    original = parameterized._instantiate_param_obj
    original = getattr(original, "__wrapped__", original)
    get = parameterized.Parameter.__getattribute__

    def noted(self: Any, key: str) -> Any:
        asked.append(key)
        return get(self, key)

    with patch.object(parameterized.Parameter, "__getattribute__", noted):
        original(pmui.Button.param["label"])
    assert "precedence" in asked, "Param reads slots as they stand: drop the patch"
