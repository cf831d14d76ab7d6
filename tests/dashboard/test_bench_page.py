"""The page of `scant bench --out`: what its panels say and show, and that nothing escapes it."""

from __future__ import annotations

import pandas as pd
from bokeh.models import Line, Scatter

from scant_dashboard.bench_page import _panel, page

SIZES = ["n", "m", "classes"]
SEEN = pd.DataFrame(
    {
        "model": "gpz",
        "method": ["Scant", "Scant", "Scant", "Scant", "a <i>rival</i>"],
        "work": "step of Adam",
        "n": [4000, 1000, 4000, 4000, 4000],
        "m": [25, 25, 100, 25, None],
        "classes": None,
        "varies": ["base", "n", "m", "base", "base"],
        "device": ["cpu", "cpu", "cpu", "cuda", "cpu"],
        "dtype": "float64",
        "share": [0.25, None, None, None, None],
        "ms": [12.5, 3.25, 1234.5, 1.0, 40.0],
        "cpu_ms": [11.5, 3.0, 1234.0, None, 39.0],
        "peer_ms": [29.0, None, 126.0, None, None],
        "peer": ["GPz", None, "GPz; slower: 175", None, None],
        "note": None,
    }
).astype(dict.fromkeys(SIZES, "Int64"))
GROWTH = pd.DataFrame(
    [{"model": "gpz", "method": "Scant", "device": "cpu", "size": "n", "power": 0.97}]
).assign(dtype="float64")


def test_every_method_and_size_is_drawn_and_cuda_is_dashed() -> None:
    plot = _panel(SEEN, "gpz")
    lines = [r for r in plot.renderers if isinstance(r.glyph, Line)]
    dots = [r for r in plot.renderers if isinstance(r.glyph, Scatter)]
    drawn = {tuple(r.data_source.data["x"]) for r in lines}
    assert drawn == {(1000, 4000), (25, 100), (4000,)}
    dashed = [r.data_source.data["ms"].tolist() for r in lines if r.glyph.line_dash]
    assert dashed == [[1.0]]
    stars = [r.data_source.data for r in dots if r.glyph.marker == "star"]
    assert [list(s["x"]) for s in stars] == [[4000, 100]]  # where their cases stand
    assert [i.label.value for i in plot.legend[0].items] == [
        "Scant",
        "Scant, cuda",
        "a <i>rival</i>",
        "others",
    ]


def test_a_panel_says_what_it_shows_and_no_method_is_markup() -> None:
    html = page(SEEN, GROWTH, ["Measured <today>."])
    assert "Scant: 11.5 ms (25% of the rate of the machine); Scant, cuda: 1 ms;" in html
    assert "; a &lt;i&gt;rival&lt;/i&gt;: 39 ms." in html
    assert "It grows as Scant: n^0.97." in html
    assert "Measured &lt;today&gt;." in html
    assert "<i>rival" not in html.partition("<body>")[2].partition("<script")[0]


def test_a_table_without_a_figure_is_still_a_page() -> None:
    html = page(
        SEEN.assign(ms=None, cpu_ms=None, note="failed: RuntimeError: full"), GROWTH[:0], []
    )
    assert "failed: RuntimeError: full" in html
