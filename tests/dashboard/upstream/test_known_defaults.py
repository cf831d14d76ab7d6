"""Defaults that are remembered are those that Bokeh works out, for each class, theme and model."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.document import Document
from bokeh.models import LinearAxis, PanTool, Plot, Scatter, Title, Toolbar
from bokeh.plotting import figure
from bokeh.themes import Theme

from scant_dashboard.upstream import known_defaults


@pytest.fixture(autouse=True)
def installed() -> None:
    known_defaults.install()


@pytest.mark.parametrize("model", [Plot, Scatter, LinearAxis, Toolbar])
def test_a_default_is_what_it_was(model: type) -> None:
    one, other = model(), model()
    for name in sorted(model.properties()):
        if name == "id" or name not in model.properties(_with_props=True):
            continue
        descriptor = model.lookup(name)
        try:
            known = [getattr(m, name) for m in (one, other, one)]
        except Exception:  # a value that must be given
            continue
        value = descriptor.instance_default(model())
        if isinstance(value, known_defaults.FIXED):
            assert known == [value] * 3, name


def test_a_subclass_a_theme_and_a_change_have_their_own() -> None:
    assert figure().title.text == "" != Title(text="other").text
    plain, themed = LinearAxis(), LinearAxis()
    before = plain.axis_label_text_font_size
    Document(theme=Theme(json={"attrs": {"Axis": {"axis_label_text_font_size": "31px"}}})).add_root(
        themed
    )
    assert themed.axis_label_text_font_size == "31px"
    assert plain.axis_label_text_font_size == before == LinearAxis().axis_label_text_font_size
    plain.axis_label_text_font_size = "7px"
    assert LinearAxis().axis_label_text_font_size == before
    one, other = Toolbar(), Toolbar()
    one.tools.append(PanTool())  # a list is nobody else's
    assert other.tools == []


def test_bokeh_works_a_default_out_each_time() -> None:
    axis, asked = LinearAxis(), []
    get = PropertyDescriptor._get_default
    original = getattr(get, "__wrapped__", get)
    with patch.object(
        PropertyDescriptor, "instance_default", lambda self, obj: asked.append(self.name)
    ):
        for _ in range(2):
            original(LinearAxis.lookup("axis_label_standoff"), axis)
        assert asked == ["axis_label_standoff"] * 2, "Bokeh remembers by itself: drop the patch"
