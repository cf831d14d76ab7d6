"""Scripts of ours touch Bokeh's insides in `assets/upstream` only, and each patch there is needed
still: the code that it mends stands in the library as it is installed.

Where one of these fails, upstream has changed it: see whether the patch can go.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import bokeh
import panel
import pytest

from tests.paths import ROOT

ASSETS = ROOT / "assets"
PATCHES = sorted((ASSETS / "upstream").glob("*.js"))
PRIVATE = re.compile(r"Bokeh\.require|\.prototype\b|__framePainter|\._[a-z]\w*")


@cache
def module(name: str) -> str:
    """A module of BokehJS, its name as in `Bokeh.require`."""
    script = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.js"
    _, _, rest = script.read_text(encoding="utf-8").partition(f"\n/* {name}.js */ function _(")
    return rest.partition("\n},\n")[0]


def method(of: str, name: str) -> str:
    """A method `name` of the class `of`, both with the module: `document/document Document`."""
    where, owner = of.split()
    _, _, rest = module(where).partition(f"\n    class {owner} ")
    body = rest.partition("\n    }\n")[0]
    match = re.search(rf"^        (?:async )?{name}\(.*?^        }}$", body, re.M | re.S)
    return match[0] if match else ""


def private(path: Path) -> list[str]:
    return PRIVATE.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*.js")), ids=lambda path: path.name)
def test_insides_of_libraries_are_touched_in_upstream_only(path: Path) -> None:
    assert private(path) == []


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name)
def test_a_patch_is_served_before_the_scripts_that_lean_on_it(path: Path) -> None:
    assert private(path), "a script without private names is no patch"
    page = (ROOT / "dashboard" / "scant_dashboard" / "template.py").read_text(encoding="utf-8")
    assert 0 < page.find(f"./assets/upstream/{path.name}") < page.find("./assets/page.js")


def test_bokeh_still_takes_models_that_were_sent_for_new_ones() -> None:
    finalize = method("document/document Document", "_apply_json_patch").partition("};")[0]
    assert "const finalize = (obj) => {" in finalize
    assert "this._new_models.add(obj);" in finalize


def test_bokeh_still_lays_out_the_whole_page() -> None:
    view = "models/layouts/layout_dom LayoutDOMView"
    invalidate = method(view, "invalidate_layout")
    assert "it would be better and more efficient to do a localized" in invalidate
    assert "this.parent.invalidate_layout();" in invalidate
    assert "this.parent.compute_layout();" in method(view, "compute_layout")


def test_bokeh_still_writes_sheets_that_have_not_changed() -> None:
    lines = method("core/dom InlineStyleSheet", "_update").splitlines()
    assert [line.strip() for line in lines[1:-1]] == ["this.el.textContent = css;"]


@pytest.mark.parametrize("name", ["_measure_layout", "_after_layout"])
def test_bokeh_still_measures_plots_that_are_not_laid_out(name: str) -> None:
    measure = method("models/plots/plot_canvas PlotView", name)
    assert re.search(r"\blayout\.\w+_panel\.", measure)
    assert not re.search(r"\blayout (!=|==)|\blayout\?", measure)


def test_bokeh_still_sends_each_change_at_once() -> None:
    changed = method("client/session ClientSession", "_document_changed")
    sent = re.findall(r"^            (?:if \(.*|return.*|this\._connection.*)$", changed, re.M)
    assert [line.strip() for line in sent] == [
        "if (events.length == 0) {",
        "this._connection.send(message);",
    ]
    assert "is_idle" not in changed


def test_bokeh_still_tells_nobody_of_a_connection_that_was_refused() -> None:
    connection = "client/connection ClientConnection"
    close = method(connection, "_on_close")
    assert "this._schedule_reconnect(" in close
    assert "send_event" not in close
    told = method(connection, "_schedule_reconnect")
    before = told.partition("send_event")[0]
    assert re.search(r"if \(this\.session == null\) \{\s+return;", before)


@pytest.mark.parametrize("name", ["font_value", "values"])
def test_bokeh_still_takes_sizes_of_glyphs_from_the_model_alone(name: str) -> None:
    """Of axes it asks the page's variables first."""
    text = "core/visuals/text"
    assert "_get_css_value" in method(f"{text} Text", "get_text_font_size")
    for visual, size in (("TextVector", "get(i)"), ("TextScalar", "value")):
        value = method(f"{text} {visual}", name)
        assert f"this.text_font_size.{size}" in value
        assert "_get_css_value" not in value


def test_bokeh_still_keeps_the_axis_of_a_color_bar_off_the_page() -> None:
    """An element that is not on the page has none of its variables."""
    bar = module("models/annotations/base_color_bar")
    assert "this._axis_view = await" in bar
    assert not re.search(r"_axis_view\.(el|render_to)\b|\bappend\(", bar)


def test_filepond_still_redraws_without_a_field() -> None:
    bundled = Path(panel.__file__).parent / "dist" / "bundled" / "filedropper"
    (script,) = bundled.glob("filepond@*/dist/filepond.min.js")
    assert '"__framePainter";if(window[' in script.read_text(encoding="utf-8").replace(" ", "")
